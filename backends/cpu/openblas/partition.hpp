#pragma once

#include <algorithm>
#include <cstdint>

namespace turnout::openblas {

/// Part `index` of `parts` of [0, size), as equal as multiples of `unit` allow.
struct Part {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

inline Part part_of(std::int64_t size, std::int64_t parts, std::int64_t index, std::int64_t unit) {
  const std::int64_t units = (size + unit - 1) / unit;
  const auto edge = [&](std::int64_t i) { return std::min(size, units * i / parts * unit); };
  return {edge(index), edge(index + 1)};
}

/// Calls f(item, thread) for every item in [0, items) on up to `threads` OpenMP threads, each
/// with a contiguous share. f must not throw.
template <typename F>
void for_each_item(std::int64_t items, int threads, const F& f) {
  const int used = static_cast<int>(std::min<std::int64_t>(items, threads));
  if (used <= 1) {
    for (std::int64_t i = 0; i < items; ++i) f(i, 0);
    return;
  }
#pragma omp parallel for num_threads(used) schedule(static, 1)
  for (int thread = 0; thread < used; ++thread) {
    const Part share = part_of(items, used, thread, 1);
    for (std::int64_t i = share.begin; i < share.end; ++i) f(i, thread);
  }
}

}  // namespace turnout::openblas
