#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "backends/gpu/faults.hpp"
#include "core/device.hpp"
#include "core/kernel.hpp"

// An emulated GPU driver: what backends/gpu is written over, with no hardware behind it. A header
// for a real vendor defines the same names over the vendor's runtime.
//
// Memory. A device's addresses are a range that is never accessible. The bytes lie in a second
// range at a fixed distance (access_offset), which kernels and copies reach. Both are address space
// alone until chunks are mapped.
//
// Work. Streams only queue. Work is done, in its stream's order, by the thread that synchronizes,
// and no earlier: a reader that doesn't wait for its writer finds poison. A wait refers to a record
// that was queued before it, so waits form no cycle, and following them ends.
//
// Clock. All devices of a driver share a timeline that starts at 0. It is settled when work is
// queued, so it doesn't depend on who synchronizes first:
//   start  = max(end of the stream's last work, recorded time of events waited for,
//                end of the engine's last work, latest time that the host has synchronized with)
//   end    = start + seconds
// A device has three engines: compute (kernels, fills, copies inside the device), upload, download.
// Kernels take roofline_seconds, copies copy_seconds; fills and copies inside the device are priced
// as kernels that move that many bytes. Time spent by the host isn't in it.
namespace turnout::gpu::vendor {

struct Driver;  ///< what the devices of one backend share; thread-safe
struct StreamState;
struct EventState;
struct Op;
using Lock = std::unique_lock<std::mutex>;

std::shared_ptr<Driver> open_driver();
/// True if `address` is in some device's range: then it isn't host memory.
bool is_device_address(Driver& driver, const void* address);

/// Host memory that copies fast, 256-byte aligned; null when there is none.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* address);

/// Granularity of map() and unmap().
inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
/// map() writes no more poison than this at either end of a block: more would have to be committed.
inline constexpr std::size_t kPoisonBytes = std::size_t{64} << 20;
/// Four of them are a float that is not a number.
inline constexpr std::byte kPoison{0xFF};

/// One device. The owner locks reserve(), map(), unmap(), forbid(), permit() and poison(); the
/// other methods are thread-safe.
class Device {
 public:
  /// `info` has to outlive it; the clock reads it.
  Device(std::shared_ptr<Driver> driver, const DeviceInfo& info);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Reserves address space for `bytes` or, where the process may not have that much, for half of
  /// it, a quarter ... Returns for how much. Error out_of_memory below one chunk. Called once.
  std::size_t reserve(std::size_t bytes);
  std::byte* address() const { return address_; }
  std::ptrdiff_t access_offset() const { return access_ - address_; }

  /// Puts memory behind whole chunks, or takes it away: a kernel that still uses it then faults.
  /// map() returns false when the system refuses.
  bool map(std::size_t offset, std::size_t bytes);
  void unmap(std::size_t offset, std::size_t bytes);
  /// Says that mapped bytes belong to no block (poisoned; an error under AddressSanitizer), or do.
  void forbid(std::size_t offset, std::size_t bytes);
  void permit(std::size_t offset, std::size_t bytes);
  /// Makes fresh bytes conspicuous: the first and last kPoisonBytes of the block.
  void poison(std::size_t offset, std::size_t bytes);

  /// Asked before queued work touches device memory; set before the first stream is made.
  using IsLive = std::function<bool(const void* address, std::size_t bytes)>;
  void set_liveness_check(IsLive is_live) { is_live_ = std::move(is_live); }
  void set_faults(const Faults& faults);
  /// Throws device_lost when the device is.
  void check_lost() const;

 private:
  friend class Stream;
  friend class Event;
  friend struct Driver;

  void release();
  void check_lost(const Lock& lock) const;
  void check_live(const void* address, std::size_t bytes, const char* what) const;
  void execute(const Op& op) const;

  std::shared_ptr<Driver> driver_;
  const DeviceInfo& info_;
  std::byte* address_ = nullptr;
  std::byte* access_ = nullptr;
  std::size_t reserved_bytes_ = 0;
  IsLive is_live_;
  // The driver's lock guards these.
  Faults faults_;
  std::int64_t launches_ = 0;
  double compute_end_ = 0, upload_end_ = 0, download_end_ = 0;
};

/// A point in a stream. Errors of the work before it are rethrown by every synchronize().
class Event {
 public:
  explicit Event(Device& device);
  void synchronize();
  double seconds() const;

 private:
  friend class Stream;
  std::shared_ptr<Driver> driver_;
  std::shared_ptr<EventState> state_;
};

/// A queue. After an error the rest of what is queued is left out, until synchronize() throws it.
/// Work that nobody waited for when the stream is destroyed isn't done.
class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// `stream` is handed to the kernel.
  void launch(const PreparedKernel& kernel, const KernelArgs& args, turnout::Stream& stream);
  void copy(void* to, bool to_is_device, const void* from, bool from_is_device, std::size_t bytes);
  void fill(void* address, std::byte value, std::size_t bytes);
  void record(Event& event);
  /// `event` has been recorded.
  void wait(Event& event);
  void synchronize();
  void* native_handle() const { return nullptr; }

 private:
  std::shared_ptr<StreamState> state_;
};

}  // namespace turnout::gpu::vendor
