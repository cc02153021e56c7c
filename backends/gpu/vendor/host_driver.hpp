#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/gpu/pool.hpp"
#include "backends/gpu/vendor/host.hpp"
#include "core/device_times.hpp"

// The emulated driver's own state, for host*.cpp alone.
namespace turnout::gpu::vendor {

using Lock = std::unique_lock<std::mutex>;

inline constexpr const char* kDropped =
    "a stream was destroyed before work was done that another one waits for";

enum class Engine { none, compute, upload, download };

struct Op {
  enum class Kind { launch, copy, fill, record, wait };
  Kind kind = Kind::launch;
  Engine engine = Engine::none;
  double seconds = 0;  // on the engine, before injected slowness
  std::byte value{};
  const PreparedKernel* kernel = nullptr;
  KernelArgs args;
  turnout::Stream* stream = nullptr;
  void* to = nullptr;
  EmulatedDevice* to_device = nullptr;  // null: host memory
  const void* from = nullptr;
  EmulatedDevice* from_device = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<EventState> event;   // record, wait
  std::shared_ptr<StreamState> other;  // wait: the stream that recorded
  std::uint64_t position = 0;          // record, wait: ops of that stream that have to be done
};

struct StreamState {
  explicit StreamState(DeviceHandle owner) : device(std::move(owner)) { queue.reserve(256); }

  DeviceHandle device;
  std::vector<Op> queue;  // those before `head` have been taken
  std::size_t head = 0;
  std::uint64_t done = 0;  // since the stream was made
  double end_seconds = 0;
  std::exception_ptr error;  // of work done; the rest is left out
  bool running = false;      // a thread has taken an op and not finished it
  std::thread::id runner;
  bool closed = false;
  std::shared_ptr<GraphState> capture;  // being recorded
  std::thread worker;                   // DriverOptions::threads

  std::uint64_t queued() const { return done + (running ? 1 : 0) + (queue.size() - head); }
};

/// Of the newest record.
struct EventState {
  std::shared_ptr<Driver> driver;
  std::shared_ptr<StreamState> stream;
  std::uint64_t position = 0;
  double seconds = 0;
  std::exception_ptr error;
};

struct GraphState {
  std::vector<Op> ops;
};

struct AddressRange {
  const EmulatedDevice* owner;
  const std::byte* begin;
  const std::byte* end;
};

struct Driver {
  explicit Driver(DriverOptions chosen) : options(std::move(chosen)) {}

  const DriverOptions options;
  std::mutex mutex;
  std::condition_variable progress;
  std::vector<AddressRange> ranges;
  std::vector<std::weak_ptr<StreamState>> streams;
  double host_seconds = 0;  // latest time the host has synchronized with

  /// Puts work at the end of a queue and settles its time.
  void push(StreamState& stream, Op op);
  void run_until(Lock& lock, StreamState& stream, std::uint64_t position);
  void run_next(Lock& lock, StreamState& stream);
  void run(Lock& lock, StreamState& stream, const Op& op);
  bool needs(const StreamState& stream, std::uint64_t position, const StreamState& wanted) const;
  void run_others(Lock& lock, const StreamState& last);
  /// What a stream's own thread does.
  void work(StreamState& stream);
};

struct EmulatedDevice {
  EmulatedDevice(std::shared_ptr<Driver> shared, DeviceInfo figures)
      : driver(std::move(shared)), info(std::move(figures)), times(info) {}
  ~EmulatedDevice();

  const std::shared_ptr<Driver> driver;
  const DeviceInfo info;
  const DeviceTimes times;

  // Memory; memory_mutex guards it. The pool is there once addresses are reserved.
  mutable std::mutex memory_mutex;
  std::byte* address = nullptr;
  std::byte* access = nullptr;
  std::size_t reserved_bytes = 0;
  std::optional<Pool> pool;

  // The driver's lock guards these.
  Faults faults;
  std::int64_t launches = 0;
  double compute_end = 0, upload_end = 0, download_end = 0;

  double& engine_end(Engine engine);
  void check_lost(const Lock& lock) const;
  void execute(const Op& op) const;

  /// Reserves address space for the device's memory or, where the process may not have that much,
  /// for half of it, a quarter ... Error out_of_memory below one chunk. memory_mutex is held.
  Pool& reserve();
  void* allocate(std::size_t bytes, std::string& why);
  void release(void* block, std::size_t bytes);
  bool is_live(const void* at, std::size_t bytes) const;

 private:
  std::size_t reserve_addresses(std::size_t bytes);
  /// Puts memory behind whole chunks, or takes it away: a kernel that still uses it then faults.
  /// map() returns false when the system refuses.
  bool map(std::size_t offset, std::size_t bytes);
  void unmap(std::size_t offset, std::size_t bytes);
  /// Says that mapped bytes belong to no block (poisoned; an error under AddressSanitizer), or do.
  void forbid(std::size_t begin, std::size_t end);
  void permit(std::size_t begin, std::size_t end);
  /// Makes fresh bytes conspicuous: the first and last kPoisonBytes of the block.
  void poison(std::size_t offset, std::size_t bytes);
};

}  // namespace turnout::gpu::vendor
