#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/gpu/vendor/host.hpp"

// The emulated driver's own state, for host*.cpp alone.
namespace turnout::gpu::vendor {

inline constexpr const char* kDropped =
    "a stream was destroyed before work was done that another one waits for";

struct Op {
  enum class Kind { launch, copy, fill, record, wait };
  Kind kind = Kind::launch;
  bool to_is_device = false;
  bool from_is_device = false;
  std::byte value{};
  const PreparedKernel* kernel = nullptr;
  KernelArgs args;
  turnout::Stream* stream = nullptr;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<EventState> event;   // record, wait
  std::shared_ptr<StreamState> other;  // wait: the stream that recorded
  std::uint64_t position = 0;          // record, wait: ops of that stream that have to be done
};

struct StreamState {
  explicit StreamState(Device& owner) : device(owner) { queue.reserve(256); }

  Device& device;
  std::vector<Op> queue;  // those before `head` have been taken
  std::size_t head = 0;
  std::uint64_t done = 0;  // since the stream was made
  double end_seconds = 0;
  std::exception_ptr error;  // of work done; the rest is left out
  bool running = false;      // a thread has taken an op and not finished it
  std::thread::id runner;
  bool closed = false;

  std::uint64_t queued() const { return done + (running ? 1 : 0) + (queue.size() - head); }
};

/// Of the newest record.
struct EventState {
  std::shared_ptr<StreamState> stream;
  std::uint64_t position = 0;
  double seconds = 0;
  std::exception_ptr error;
};

struct AddressRange {
  const Device* owner;
  const std::byte* begin;
  const std::byte* end;
};

struct Driver {
  std::mutex mutex;
  std::condition_variable progress;
  std::vector<AddressRange> ranges;
  std::vector<std::weak_ptr<StreamState>> streams;
  double host_seconds = 0;  // latest time the host has synchronized with

  void push(StreamState& stream, Op op);
  void advance(StreamState& stream, double& engine_end, double seconds) const;
  void run_until(Lock& lock, StreamState& stream, std::uint64_t position);
  void run_next(Lock& lock, StreamState& stream);
  void run(Lock& lock, StreamState& stream, const Op& op);
  bool needs(const StreamState& stream, std::uint64_t position, const StreamState& wanted) const;
  void run_others(Lock& lock, const StreamState& last);
};

}  // namespace turnout::gpu::vendor
