#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include "backends/kokkos/device_space.hpp"
#include "core/kernel.hpp"
#include "core/portable.hpp"

// How loops run in device mode: asynchronously, in a Kokkos instance that wraps the stream's native
// handle. Instances are made when a stream launches its first kernel; after that a launch allocates
// nothing and takes no lock.
namespace turnout::kokkos {

using Space = Kokkos::DefaultExecutionSpace;

/// True where the device is a stand-in, for tests: the host's own threads.
inline constexpr bool kSpaceIsHost = std::is_same_v<Space::memory_space, Kokkos::HostSpace>;

/// What is kept for a stream.
struct StreamSpace {
  Space space;
  int* fault = nullptr;  ///< in host memory that the device can write
};

/// Of the stream with this handle. Error when there are too many streams.
const StreamSpace& space_of(void* native_handle);

/// Loops of device mode have as many threads as the device.
class Parallel {
 public:
  explicit Parallel(int) {}
};

/// One launch of a kernel.
class Launch {
 public:
  const KernelArgs& args;

  Launch(const KernelArgs& operands, const Stream& stream, const Parallel&)
      : args(operands), stream_(space_of(stream.native_handle())) {}

  const Space& space() const { return stream_.space; }
  template <typename T>
  const T* input(int i) const {
    return args.input<T>(i);
  }
  template <typename T>
  T* output(int i) const {
    return args.output<T>(i);
  }
  void* workspace() const { return args.workspace(); }
  /// Where loops note that an index was out of range.
  int* fault() const { return stream_.fault; }

 private:
  const StreamSpace& stream_;
};

KOKKOS_INLINE_FUNCTION void store_relaxed(int* to, int value) { Kokkos::atomic_store(to, value); }

std::mutex& first_launch_mutex();
void audit_functor(const void* functor, std::size_t bytes);

/// Every dispatch goes through here.
template <typename Policy, typename Functor>
void dispatch_to(const Policy& policy, const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor>, "a functor is copied to the device");
  static_assert(sizeof(Kokkos::Impl::ParallelFor<Functor, Policy>) < 512,
                "larger ones take a path that synchronizes");
  if constexpr (kSpaceIsHost) audit_functor(&functor, sizeof functor);
  // Kokkos keeps what it asks the driver about a kernel in tables that aren't safe for threads.
  static std::atomic<bool> known = false;
  if (known.load(std::memory_order_acquire)) {
    Kokkos::parallel_for(policy, functor);
    return;
  }
  const std::scoped_lock lock(first_launch_mutex());
  Kokkos::parallel_for(policy, functor);
  known.store(true, std::memory_order_release);
}

/// Calls functor(i) for every i in [0, n), a thread each. Neighbouring threads have neighbouring i.
/// The third argument is for the host.
template <typename Functor>
void parallel_for(const Launch& launch, std::int64_t n, double, const Functor& functor) {
  using Policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  if (n > 0) dispatch_to(Policy(launch.space(), 0, n), functor);
}

}  // namespace turnout::kokkos
