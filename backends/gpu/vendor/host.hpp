#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/gpu/faults.hpp"
#include "backends/gpu/vendor/types.hpp"
#include "core/kernel.hpp"

// An emulated GPU driver: what backends/gpu is written over, with no hardware behind it. The header
// of each real vendor defines the same names over the vendor's runtime; this one says what they
// mean. Functions throw Error: out_of_memory, device_lost, unsupported, otherwise internal.
//
// Memory. A device's addresses are a range that is never accessible. The bytes lie in a second
// range at a fixed distance (access_offset), which kernels and copies reach. Both are address space
// alone until chunks are mapped.
//
// Work. Streams only queue. Unless DriverOptions::threads is set, work is done, in its stream's
// order, by the thread that synchronizes, and no earlier. A wait refers to a record that was queued
// before it, so waits form no cycle, and following them ends.
//
// Clock. All devices of a driver share a timeline that starts at 0. It is settled when work is
// queued, so it doesn't depend on who synchronizes first:
//   start  = max(end of the stream's last work, recorded time of events waited for,
//                end of the engine's last work, latest time that the host has synchronized with)
//   end    = start + seconds
// A device has three engines: compute (kernels, fills, copies inside the device), upload, download.
// Kernels take DeviceTimes::kernel_seconds, copies copy_seconds; fills and copies inside the device
// are priced as kernels that move that many bytes. Time spent by the host isn't in it.
namespace turnout::gpu::vendor {

struct Driver;  ///< what the devices of one backend share; thread-safe
struct EmulatedDevice;
struct StreamState;
struct EventState;
struct GraphState;

using DeviceHandle = std::shared_ptr<EmulatedDevice>;
using PoolHandle = std::shared_ptr<EmulatedDevice>;
using StreamHandle = std::shared_ptr<StreamState>;
using EventHandle = std::shared_ptr<EventState>;
using GraphHandle = std::shared_ptr<GraphState>;

/// Word before a device's number in its name.
inline constexpr const char* kName = "emulated";
/// Granularity in which memory is put behind a device's addresses.
inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
/// Fresh blocks are poisoned no further than this from either end: more would be committed.
inline constexpr std::size_t kPoisonBytes = std::size_t{64} << 20;
/// Four of them are a float that is not a number.
inline constexpr std::byte kPoison{0xFF};

// ---- Devices
// -------------------------------------------------------------------------------------

/// What a plugin was asked for: here "profiles=v100,mi210;threads=1", for hardware nothing. Error
/// invalid_argument for anything else.
DriverOptions parse_options(std::string_view text);
std::shared_ptr<Driver> open_driver(const DriverOptions& options);
Found find_devices(Driver& driver);
/// `index` among those found. The emulated clock reads `info`.
DeviceHandle open_device(const std::shared_ptr<Driver>& driver, int index, const DeviceInfo& info);
void close_device(const DeviceHandle& device);
/// Later calls of this thread are for this device.
void make_current(const DeviceHandle& device);
/// Throws device_lost when the device is.
void check_lost(const DeviceHandle& device);
/// For tests: faults that happen from now on. Error unsupported for hardware.
void set_faults(const DeviceHandle& device, const Faults& faults);

// ---- Memory
// --------------------------------------------------------------------------------------

/// The device's stream-ordered pool: what is released is kept for the next allocation.
PoolHandle make_pool(const DeviceHandle& device);
void destroy_pool(const PoolHandle& pool);
/// 256-byte aligned, ready when it returns; null when there is none, with more to say in `why`.
void* allocate(const PoolHandle& pool, const StreamHandle& stream, std::size_t bytes,
               std::string& why);
void release(const PoolHandle& pool, const StreamHandle& stream, void* address, std::size_t bytes);
/// Gives memory that is kept, but not in use, back to the system.
void trim(const PoolHandle& pool);
/// In use now, and the most there ever was.
Device::MemoryUse memory_use(const PoolHandle& pool);
/// Free now, and in all, on the whole device.
std::pair<std::size_t, std::size_t> memory_left(const DeviceHandle& device, const PoolHandle& pool);
/// Added to a device address to get one that kernels reach.
std::ptrdiff_t access_offset(const DeviceHandle& device);
/// True if [address, address + bytes) lies inside one allocation. Hardware can't tell: true.
bool is_live(const PoolHandle& pool, const void* address, std::size_t bytes);
/// True if `address` is in some device's range, so not host memory. Hardware isn't asked: false.
bool is_device_address(Driver& driver, const void* address);
/// Host memory that copies fast, 256-byte aligned; null when there is none.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* address);

// ---- Streams and events
// --------------------------------------------------------------------------

/// A queue. After an error the rest of what is queued is left out, until synchronize() throws it.
/// Work that nobody waited for when the stream is destroyed isn't done.
StreamHandle make_stream(const DeviceHandle& device);
void destroy_stream(const StreamHandle& stream);
void* native_handle(const StreamHandle& stream);
/// Runs the kernel's launcher: at once on hardware, queued here. `owner` is handed to the kernel.
void launch(const StreamHandle& stream, const PreparedKernel& kernel, const KernelArgs& args,
            turnout::Stream& owner);
void copy(const StreamHandle& stream, Direction direction, void* to, const void* from,
          std::size_t bytes);
void fill(const StreamHandle& stream, void* address, std::byte value, std::size_t bytes);
void synchronize(const StreamHandle& stream);

/// A point in a stream. Errors of the work before it are rethrown by every synchronize().
EventHandle make_event(const DeviceHandle& device);
void destroy_event(const EventHandle& event);
void record(const StreamHandle& stream, const EventHandle& event);
/// `event` has been recorded, by a stream of this driver.
void wait(const StreamHandle& stream, const EventHandle& event);
void synchronize_event(const EventHandle& event);
/// From the driver's origin (emulated) or from `origin`, an event of the same device.
double seconds(const EventHandle& origin, const EventHandle& event);

// ---- Peers and graphs
// ----------------------------------------------------------------------------

/// True if `to`'s streams may copy from `from`'s memory without the host; sets the way up.
bool connect_peers(const DeviceHandle& to, const DeviceHandle& from);
void copy_peer(const StreamHandle& stream, void* to, const DeviceHandle& to_device,
               const void* from, const DeviceHandle& from_device, std::size_t bytes);

/// What is queued between the two is kept, not done: kernels, copies and fills.
void begin_capture(const StreamHandle& stream);
GraphHandle end_capture(const StreamHandle& stream);
void launch_graph(const StreamHandle& stream, const GraphHandle& graph);
void destroy_graph(const GraphHandle& graph);

}  // namespace turnout::gpu::vendor
