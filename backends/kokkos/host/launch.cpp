#include "backends/kokkos/host/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include <Kokkos_Core.hpp>

#include "backends/kokkos/constant.hpp"

namespace turnout::kokkos {

// A Kokkos instance of the OpenMP space serves one dispatch at a time: a second caller blocks on
// its mutex. So there are several instances per thread count, claimed by an atomic flag; a caller
// that finds none free does its loop alone. They are dropped when Kokkos is finalised, by whomever.
class SpacePool {
 public:
  static constexpr int kSlots = 8;

#ifdef KOKKOS_ENABLE_OPENMP
  using Space = Kokkos::OpenMP;
  void open(int threads) {
    for (Slot& slot : slots_) slot.space.emplace(threads);
    open_.store(true, std::memory_order_release);
  }
#else
  using Space = Kokkos::DefaultHostExecutionSpace;
  void open(int) {}  // no threads to share: loops run on their callers
#endif

  void close() {
    open_.store(false, std::memory_order_release);
    for (Slot& slot : slots_) slot.space.reset();
  }

  /// A free instance, or null.
  Space* claim(int& index) {
    if (!open_.load(std::memory_order_acquire)) return nullptr;
    for (index = 0; index < kSlots; ++index) {
      Slot& slot = slots_[static_cast<std::size_t>(index)];
      if (!slot.taken.exchange(true, std::memory_order_acquire)) return &*slot.space;
    }
    return nullptr;
  }
  void release(int index) {
    slots_[static_cast<std::size_t>(index)].taken.store(false, std::memory_order_release);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<bool> taken = false;
    std::optional<Space> space;
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<bool> open_ = false;
};

namespace {

// Shorter loops stay on the calling thread. Waking the others and waiting for them takes 1 to 2 us
// while they still spin after the last loop; the gain has to be above that.
constexpr double kWorthWakingNs = 4000;

/// Pools by thread count. Never destroyed: kernels keep pointers into it until the process ends.
struct Pools {
  std::mutex mutex;
  std::map<int, SpacePool> by_threads;
};
Pools& pools() {
  static auto* instance = new Pools;
  return *instance;
}

void close_pools() {
  Pools& all = pools();
  const std::scoped_lock lock(all.mutex);
  for (auto& [threads, pool] : all.by_threads) pool.close();
}

/// False when Kokkos was finalised already: it can't come back.
bool initialise_kokkos() {
  if (Kokkos::is_finalized()) return false;
  if (!Kokkos::is_initialized()) {
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    std::atexit([] {
      if (Kokkos::is_initialized()) Kokkos::finalize();
    });
  }
  static const bool hooked = (Kokkos::push_finalize_hook(close_pools), true);
  return hooked;
}

SpacePool* find_pool(int threads) {
  if (threads <= 1) return nullptr;
  Pools& all = pools();
  const std::scoped_lock lock(all.mutex);
  if (!initialise_kokkos()) return nullptr;
  const auto [at, added] = all.by_threads.try_emplace(threads);
  if (added) at->second.open(threads);
  return &at->second;
}

using RangeBody = void (*)(const void* functor, std::int64_t begin, std::int64_t end);

/// Range `part` of `parts` of [0, n).
struct PartCall {
  RangeBody body;
  const void* functor;
  std::int64_t n;
  std::int64_t parts;
  void operator()(std::int64_t part) const {
    const std::int64_t share = n / parts;
    const std::int64_t rest = n % parts;  // the first `rest` parts have one more
    const std::int64_t begin = part * share + std::min(part, rest);
    body(functor, begin, begin + share + (part < rest ? 1 : 0));
  }
};

}  // namespace

Parallel::Parallel(int threads) : threads_(std::max(threads, 1)), pool_(find_pool(threads)) {}

void run_ranges(const Parallel& parallel, std::int64_t n, double item_ns, RangeBody body,
                const void* functor) {
  if (n <= 0) return;
  const bool worth = n > 1 && static_cast<double>(n) * item_ns >= kWorthWakingNs;
  int slot = 0;
  SpacePool* pool = worth ? parallel.pool() : nullptr;
  SpacePool::Space* space = pool != nullptr ? pool->claim(slot) : nullptr;
  if (space == nullptr) {
    body(functor, 0, n);
    return;
  }
  using Policy = Kokkos::RangePolicy<SpacePool::Space, Kokkos::IndexType<std::int64_t>>;
  const std::int64_t parts = std::min<std::int64_t>(parallel.threads(), n);
  Kokkos::parallel_for(Policy(*space, 0, parts), PartCall{body, functor, n, parts});
  pool->release(slot);
}

Constant::Constant(const PrepareContext&, const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  buffer_ = allocate_host(bytes);
  std::memcpy(buffer_->address(), data, bytes);
  address_ = buffer_->address();
}

}  // namespace turnout::kokkos
