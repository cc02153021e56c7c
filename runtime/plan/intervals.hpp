#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace turnout {

/// The batch axis cut where something that depends on the batch changes.
///
/// Batches are probed at a grid, and between two probes that differ every boundary is found by
/// bisection: a boundary is the exact batch at which the key changes. Between two probes that agree
/// nothing is looked for, so that the grid's step says what can go unseen: every batch up to
/// kDense is probed, above it steps are a thirty-second of the batch. A key that changes and
/// changes back within a thirty-second of the batch (a partly filled wave on a GPU) may be missed.
struct BatchInterval {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::string key;
};

using KeyAt = std::function<std::string(std::int64_t batch)>;

constexpr std::int64_t kDenseBatches = 64;

/// The batches probed: ascending, both ends among them. Error invalid_argument unless
/// 1 <= first <= last.
std::vector<std::int64_t> probe_grid(std::int64_t first, std::int64_t last);

/// Neighbouring intervals have different keys and together cover [first, last].
std::vector<BatchInterval> constant_intervals(std::int64_t first, std::int64_t last,
                                              const KeyAt& key);

/// From which batch on something holds up to the end of the axis.
struct FlipBatch {
  std::int64_t batch = 0;  ///< 0: not at the end of the axis
  bool always = false;     ///< from the first batch of the axis on
  bool single = true;      ///< false: it also holds somewhere below, and then not
};
FlipBatch flip_of(std::int64_t first, std::int64_t last,
                  const std::function<bool(std::int64_t)>& holds);

/// Batches around `at` where a decision is not certain: at - 1 and at are on its two sides.
struct UncertainRange {
  std::int64_t low = 0;                      ///< first batch that can't be told apart
  std::int64_t high = 0;                     ///< first batch from `at` on that can
  bool open_low = false, open_high = false;  ///< it goes on beyond the axis
};
/// `undecided(batch)` is taken as one run of batches around `at`; its ends are looked for in steps
/// that double, then by bisection.
UncertainRange uncertain_range(std::int64_t first, std::int64_t last, std::int64_t at,
                               const std::function<bool(std::int64_t)>& undecided);

}  // namespace turnout
