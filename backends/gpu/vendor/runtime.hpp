#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/gpu/faults.hpp"
#include "backends/gpu/vendor/types.hpp"
#include "core/error.hpp"
#include "core/kernel.hpp"

// The names of host.hpp over a vendor's runtime. The two runtimes differ in a prefix, which
// TURNOUT_VENDOR(name) puts before a name, and in what cuda.hpp and hip.hpp define themselves:
// kName, kUncorrectable, describe(), allocate_pinned_status(), free_pinned().
namespace turnout::gpu::vendor {

struct Driver {};
using DeviceHandle = int;
using PoolHandle = TURNOUT_VENDOR(MemPool_t);
using StreamHandle = TURNOUT_VENDOR(Stream_t);
using EventHandle = TURNOUT_VENDOR(Event_t);
using GraphHandle = TURNOUT_VENDOR(GraphExec_t);
using Status = TURNOUT_VENDOR(Error_t);

/// Throws Error for any status but success: out_of_memory, device_lost (the context is unusable
/// after these), otherwise internal.
inline void check(Status status, const char* call) {
  if (status == TURNOUT_VENDOR(Success)) return;
  (void)TURNOUT_VENDOR(GetLastError)();  // so that the next call doesn't report it again
  const auto code = [status] {
    switch (status) {
      case TURNOUT_VENDOR(ErrorMemoryAllocation):
        return ErrorCode::out_of_memory;
      case TURNOUT_VENDOR(ErrorIllegalAddress):
      case TURNOUT_VENDOR(ErrorLaunchFailure):
      case kUncorrectable:
      case TURNOUT_VENDOR(ErrorNoDevice):
        return ErrorCode::device_lost;
      default:
        return ErrorCode::internal;
    }
  }();
  fail(code, "[{}] {}: {}", kName, call, TURNOUT_VENDOR(GetErrorString)(status));
}
#define TURNOUT_CHECK(name, ...) check(TURNOUT_VENDOR(name)(__VA_ARGS__), #name)

// ---- Devices
// -------------------------------------------------------------------------------------

inline DriverOptions parse_options(std::string_view text) {
  if (!text.empty()) fail(ErrorCode::invalid_argument, "[{}] unknown option '{}'", kName, text);
  return {};
}
inline std::shared_ptr<Driver> open_driver(const DriverOptions&) {
  return std::make_shared<Driver>();
}

inline Found find_devices(Driver&) {
  Found found;
  int count = 0;
  const Status status = TURNOUT_VENDOR(GetDeviceCount)(&count);
  if (status != TURNOUT_VENDOR(Success)) {
    (void)TURNOUT_VENDOR(GetLastError)();
    found.why_none = TURNOUT_VENDOR(GetErrorString)(status);
    return found;
  }
  for (int index = 0; index < count; ++index) found.devices.push_back(describe(index));
  if (count == 0) found.why_none = "the driver reports no device";
  return found;
}

inline DeviceHandle open_device(const std::shared_ptr<Driver>&, int index, const DeviceInfo&) {
  return index;
}
inline void close_device(DeviceHandle) {}
inline void make_current(DeviceHandle device) { TURNOUT_CHECK(SetDevice, device); }
inline void check_lost(DeviceHandle) {}  // every call says so itself
inline void set_faults(DeviceHandle, const Faults&) {
  fail(ErrorCode::unsupported, "[{}] faults are for emulated devices", kName);
}

// ---- Memory
// --------------------------------------------------------------------------------------

inline PoolHandle make_pool(DeviceHandle device) {
  TURNOUT_VENDOR(MemPoolProps) properties{};
  properties.allocType = TURNOUT_VENDOR(MemAllocationTypePinned);
  properties.location.type = TURNOUT_VENDOR(MemLocationTypeDevice);
  properties.location.id = device;
  PoolHandle pool{};
  TURNOUT_CHECK(MemPoolCreate, &pool, &properties);
  std::uint64_t keep = ~std::uint64_t{0};  // until trim()
  TURNOUT_CHECK(MemPoolSetAttribute, pool, TURNOUT_VENDOR(MemPoolAttrReleaseThreshold), &keep);
  return pool;
}
inline void destroy_pool(PoolHandle pool) { (void)TURNOUT_VENDOR(MemPoolDestroy)(pool); }

inline void* allocate(PoolHandle pool, StreamHandle stream, std::size_t bytes, std::string& why) {
  void* address = nullptr;
  const std::size_t wanted = bytes == 0 ? 1 : bytes;
  const Status status = TURNOUT_VENDOR(MallocFromPoolAsync)(&address, wanted, pool, stream);
  if (status == TURNOUT_VENDOR(ErrorMemoryAllocation)) {
    (void)TURNOUT_VENDOR(GetLastError)();
    why = std::string(": ") + TURNOUT_VENDOR(GetErrorString)(status);
    return nullptr;
  }
  check(status, "MallocFromPoolAsync");
  TURNOUT_CHECK(StreamSynchronize, stream);  // other streams may use it from here on
  return address;
}
inline void release(PoolHandle, StreamHandle stream, void* address, std::size_t) {
  (void)TURNOUT_VENDOR(FreeAsync)(address, stream);  // from destructors: nobody to tell
}
inline void trim(PoolHandle pool) {
  TURNOUT_CHECK(DeviceSynchronize);  // what was released is free only then
  TURNOUT_CHECK(MemPoolTrimTo, pool, 0);
}
inline Device::MemoryUse memory_use(PoolHandle pool) {
  std::uint64_t now = 0, peak = 0;
  TURNOUT_CHECK(MemPoolGetAttribute, pool, TURNOUT_VENDOR(MemPoolAttrUsedMemCurrent), &now);
  TURNOUT_CHECK(MemPoolGetAttribute, pool, TURNOUT_VENDOR(MemPoolAttrUsedMemHigh), &peak);
  return {static_cast<std::size_t>(now), static_cast<std::size_t>(peak)};
}
inline std::pair<std::size_t, std::size_t> memory_left(DeviceHandle device, PoolHandle) {
  make_current(device);
  std::size_t left = 0, all = 0;
  TURNOUT_CHECK(MemGetInfo, &left, &all);
  return {left, all};
}
inline std::ptrdiff_t access_offset(DeviceHandle) { return 0; }
inline bool is_live(PoolHandle, const void*, std::size_t) { return true; }
inline bool is_device_address(Driver&, const void*) { return false; }
inline void* allocate_pinned(std::size_t bytes) {
  void* address = nullptr;
  if (allocate_pinned_status(&address, bytes == 0 ? 1 : bytes) == TURNOUT_VENDOR(Success)) {
    return address;
  }
  (void)TURNOUT_VENDOR(GetLastError)();
  return nullptr;
}

// ---- Streams and events
// --------------------------------------------------------------------------

inline StreamHandle make_stream(DeviceHandle) {
  StreamHandle stream{};
  TURNOUT_CHECK(StreamCreateWithFlags, &stream, TURNOUT_VENDOR(StreamNonBlocking));
  return stream;
}
inline void destroy_stream(StreamHandle stream) { (void)TURNOUT_VENDOR(StreamDestroy)(stream); }
inline void* native_handle(StreamHandle stream) { return stream; }
inline void launch(StreamHandle, const PreparedKernel& kernel, const KernelArgs& args,
                   turnout::Stream& owner) {
  kernel.run(args, owner);
  TURNOUT_CHECK(PeekAtLastError);
}
inline void copy(StreamHandle stream, Direction direction, void* to, const void* from,
                 std::size_t bytes) {
  constexpr TURNOUT_VENDOR(MemcpyKind)
      kinds[] = {TURNOUT_VENDOR(MemcpyHostToDevice), TURNOUT_VENDOR(MemcpyDeviceToHost),
                 TURNOUT_VENDOR(MemcpyDeviceToDevice), TURNOUT_VENDOR(MemcpyHostToHost)};
  const auto kind = kinds[static_cast<int>(direction)];
  TURNOUT_CHECK(MemcpyAsync, to, from, bytes, kind, stream);
}
inline void fill(StreamHandle stream, void* address, std::byte value, std::size_t bytes) {
  TURNOUT_CHECK(MemsetAsync, address, std::to_integer<int>(value), bytes, stream);
}
inline void synchronize(StreamHandle stream) { TURNOUT_CHECK(StreamSynchronize, stream); }

inline EventHandle make_event(DeviceHandle) {
  EventHandle event{};
  TURNOUT_CHECK(EventCreate, &event);
  return event;
}
inline void destroy_event(EventHandle event) { (void)TURNOUT_VENDOR(EventDestroy)(event); }
inline void record(StreamHandle stream, EventHandle event) {
  TURNOUT_CHECK(EventRecord, event, stream);
}
inline void wait(StreamHandle stream, EventHandle event) {
  TURNOUT_CHECK(StreamWaitEvent, stream, event, 0);
}
inline void synchronize_event(EventHandle event) { TURNOUT_CHECK(EventSynchronize, event); }
inline double seconds(EventHandle origin, EventHandle event) {
  float milliseconds = 0;
  TURNOUT_CHECK(EventElapsedTime, &milliseconds, origin, event);
  return static_cast<double>(milliseconds) * 1e-3;
}

// ---- Peers and graphs
// ----------------------------------------------------------------------------

inline bool connect_peers(DeviceHandle to, DeviceHandle from) {
  int can = 0;
  TURNOUT_CHECK(DeviceCanAccessPeer, &can, to, from);
  if (can == 0) return false;
  make_current(to);
  const Status status = TURNOUT_VENDOR(DeviceEnablePeerAccess)(from, 0);
  if (status == TURNOUT_VENDOR(ErrorPeerAccessAlreadyEnabled)) {
    (void)TURNOUT_VENDOR(GetLastError)();
    return true;
  }
  check(status, "DeviceEnablePeerAccess");
  return true;
}
inline void copy_peer(StreamHandle stream, void* to, DeviceHandle to_device, const void* from,
                      DeviceHandle from_device, std::size_t bytes) {
  TURNOUT_CHECK(MemcpyPeerAsync, to, to_device, from, from_device, bytes, stream);
}
inline void begin_capture(StreamHandle stream) {
  TURNOUT_CHECK(StreamBeginCapture, stream, TURNOUT_VENDOR(StreamCaptureModeThreadLocal));
}
inline GraphHandle end_capture(StreamHandle stream) {
  TURNOUT_VENDOR(Graph_t) graph{};
  TURNOUT_CHECK(StreamEndCapture, stream, &graph);
  GraphHandle runnable{};
  const Status status = TURNOUT_VENDOR(GraphInstantiateWithFlags)(&runnable, graph, 0);
  (void)TURNOUT_VENDOR(GraphDestroy)(graph);
  check(status, "GraphInstantiateWithFlags");
  return runnable;
}
inline void launch_graph(StreamHandle stream, GraphHandle graph) {
  TURNOUT_CHECK(GraphLaunch, graph, stream);
}
inline void destroy_graph(GraphHandle graph) { (void)TURNOUT_VENDOR(GraphExecDestroy)(graph); }

#undef TURNOUT_CHECK

}  // namespace turnout::gpu::vendor
