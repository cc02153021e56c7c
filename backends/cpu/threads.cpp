#include "backends/cpu/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace turnout::cpu {

void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

int available_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace turnout::cpu
