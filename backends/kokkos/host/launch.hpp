#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/kernel.hpp"

// How loops run in host mode. Kokkos itself is included by launch.cpp alone: one dispatch is
// compiled, not one per functor.
namespace turnout::kokkos {

class SpacePool;

/// How many threads a kernel may use, with the Kokkos instances for that many. Made in prepare();
/// cheap to copy. The first one asking for more than one thread initialises Kokkos, unless the
/// program did; what was initialised here is finalised at exit.
class Parallel {
 public:
  explicit Parallel(int threads);
  int threads() const { return threads_; }
  SpacePool* pool() const { return pool_; }

 private:
  int threads_;
  SpacePool* pool_;  ///< null: one thread
};

/// Calls `body(functor, begin, end)` for ranges that cover [0, n), on several threads at once or
/// on the calling one: see parallel_for.
void run_ranges(const Parallel& parallel, std::int64_t n, double item_ns,
                void (*body)(const void* functor, std::int64_t begin, std::int64_t end),
                const void* functor);

/// Calls functor(i) for every i in [0, n) and returns when all is done. `item_ns`: about how long
/// one call takes, in nanoseconds; a loop too short for other threads to be worth waking runs on
/// the calling thread. Order isn't defined, and calls may happen at the same time. May be called
/// from several threads at once: each takes a Kokkos instance of its own, and when all are taken
/// the loop runs on its caller. Allocates nothing. The functor must not throw.
template <typename Functor>
void parallel_for(const Parallel& parallel, std::int64_t n, double item_ns,
                  const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) < 512,
                "a functor is copied to devices as it is, and larger ones take a slow path there");
  const auto body = [](const void* address, std::int64_t begin, std::int64_t end) {
    const Functor local = *static_cast<const Functor*>(address);  // own copy: no aliasing
    for (std::int64_t i = begin; i < end; ++i) local(i);
  };
  run_ranges(parallel, n, item_ns, body, &functor);
}

/// One launch of a kernel.
class Launch {
 public:
  const KernelArgs& args;
  const Parallel& parallel;

  Launch(const KernelArgs& operands, Stream&, const Parallel& threads)
      : args(operands), parallel(threads) {}

  template <typename T>
  const T* input(int i) const {
    return args.input<T>(i);
  }
  template <typename T>
  T* output(int i) const {
    return args.output<T>(i);
  }
  void* workspace() const { return args.workspace(); }
  /// Where loops note that an index of this launch was out of range; 0: none was.
  int* fault() const { return &fault_; }

 private:
  mutable int fault_ = 0;
};

inline void store_relaxed(int* to, int value) {
  std::atomic_ref<int>(*to).store(value, std::memory_order_relaxed);
}

template <typename Functor>
void parallel_for(const Launch& launch, std::int64_t n, double item_ns, const Functor& functor) {
  parallel_for(launch.parallel, n, item_ns, functor);
}

}  // namespace turnout::kokkos
