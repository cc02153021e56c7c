#include "runtime/plan/intervals.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace turnout {
namespace {

constexpr std::int64_t kStepsPerDoubling = 32;

// All boundaries between two probes; the key is taken to change once on each half that differs.
void cut(std::int64_t low, const std::string& low_key, std::int64_t high,
         const std::string& high_key, const KeyAt& key, std::vector<BatchInterval>& intervals) {
  if (low_key == high_key) return;
  if (high - low == 1) {
    intervals.back().last = low;
    intervals.push_back({high, high, high_key});
    return;
  }
  const std::int64_t middle = low + (high - low) / 2;
  const std::string middle_key = key(middle);
  cut(low, low_key, middle, middle_key, key, intervals);
  cut(middle, middle_key, high, high_key, key, intervals);
}

}  // namespace

std::vector<std::int64_t> probe_grid(std::int64_t first, std::int64_t last) {
  if (first < 1 || last < first) {
    fail(ErrorCode::invalid_argument, "batches {}..{}: needs 1 <= first <= last", first, last);
  }
  std::vector<std::int64_t> grid;
  for (std::int64_t batch = first; batch < last;
       batch += batch < kDenseBatches ? 1 : batch / kStepsPerDoubling) {
    grid.push_back(batch);
  }
  grid.push_back(last);
  return grid;
}

std::vector<BatchInterval> constant_intervals(std::int64_t first, std::int64_t last,
                                              const KeyAt& key) {
  const std::vector<std::int64_t> grid = probe_grid(first, last);
  std::string key_here = key(first);
  std::vector<BatchInterval> intervals = {{first, first, key_here}};
  for (std::size_t i = 1; i < grid.size(); ++i) {
    std::string next = key(grid[i]);
    cut(grid[i - 1], key_here, grid[i], next, key, intervals);
    intervals.back().last = grid[i];
    key_here = std::move(next);
  }
  return intervals;
}

FlipBatch flip_of(std::int64_t first, std::int64_t last,
                  const std::function<bool(std::int64_t)>& holds) {
  const std::vector<BatchInterval> intervals = constant_intervals(
      first, last, [&](std::int64_t batch) { return std::string(holds(batch) ? "yes" : "no"); });
  FlipBatch flip;
  if (intervals.back().key == "no") {
    flip.single = intervals.size() == 1;
    return flip;
  }
  flip.batch = intervals.back().first;
  flip.always = intervals.size() == 1;
  flip.single = intervals.size() <= 2;
  return flip;
}

UncertainRange uncertain_range(std::int64_t first, std::int64_t last, std::int64_t at,
                               const std::function<bool(std::int64_t)>& undecided) {
  UncertainRange range{at, at, false, false};
  // Downwards: `low` is undecided or `at` itself, `decided` is below the run.
  std::int64_t decided = first - 1;
  for (std::int64_t step = 1; range.low > first; step *= 2) {
    const std::int64_t next = std::max(first, range.low - step);
    if (!undecided(next)) {
      decided = next;
      break;
    }
    range.low = next;
  }
  range.open_low = decided < first && range.low == first && at > first;
  while (decided >= first && range.low - decided > 1) {
    const std::int64_t middle = decided + (range.low - decided) / 2;
    (undecided(middle) ? range.low : decided) = middle;
  }
  // Upwards: `known` is undecided, `high` becomes the first batch that isn't.
  std::int64_t known = at - 1;
  decided = last + 1;
  for (std::int64_t step = 1; known < last; step *= 2) {
    const std::int64_t next = std::min(last, known + step);
    if (!undecided(next)) {
      decided = next;
      break;
    }
    known = next;
  }
  range.open_high = decided > last;
  while (decided - known > 1) {
    const std::int64_t middle = known + (decided - known) / 2;
    (undecided(middle) ? known : decided) = middle;
  }
  range.high = std::min(decided, last);
  return range;
}

}  // namespace turnout
