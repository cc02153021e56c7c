#include "backends/cpu/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace turnout::cpu {

void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) { use_threads(threads); }

int useful_threads(const Cost& cost, int threads) {
  // One core of a machine of the last ten years does about this much in a second, at best.
  constexpr double kFlops = 1e11;
  constexpr double kBytes = 3e10;
  constexpr double kWorthWakingSeconds = 4e-6;
  const double bytes = cost.bytes_read + cost.bytes_written;
  const double seconds = std::max(cost.flops / kFlops, bytes / kBytes);
  return seconds < kWorthWakingSeconds ? 1 : threads;
}

int available_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace turnout::cpu
