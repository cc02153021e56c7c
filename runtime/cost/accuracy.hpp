#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/gpu_model/predictor.hpp"
#include "runtime/cost/op_table.hpp"

namespace turnout::gpu_model {

/// A row with what was predicted for it.
struct PredictedRow {
  OpRow row;
  std::optional<double> seconds;  ///< none: the row is refused
  Evidence evidence = Evidence::unprobed;
};

struct Prediction {
  std::vector<PredictedRow> rows;        ///< one a row of the table, in order
  std::vector<std::size_t> calibration;  ///< rows that were measurements, sorted
  std::string learned_from;
};

/// Times of all rows of a table on a device. `calibrate_with` rows, chosen from the shapes alone,
/// count as measured on it and correct the others (evidence calibrated). Error invalid_argument
/// naming the rows that have to be measured and have no time.
Prediction predict(const DeviceInfo& device, std::span<const OpRow> rows,
                   std::size_t calibrate_with = 0, std::string_view leave_out = {});

/// |predicted / given - 1| of rows with a given time that weren't used for calibration; a refused
/// row counts as 1.
struct ErrorSummary {
  std::string what;  ///< "gemm fwd", "conv", ...
  std::size_t count = 0;
  double mean = 0, median = 0;
};
/// By op and pass, in the order they come up, then by op where it has several passes.
std::vector<ErrorSummary> errors_of(const Prediction& prediction);

/// How often the device that is predicted to be faster is, over shapes that both tables have a time
/// of. Shapes of which the given times are within a factor of 0.8 to 1.25 aren't counted, nor are
/// calibration rows.
struct Decisions {
  std::size_t counted = 0, right = 0, close = 0;
  double accuracy() const {
    return counted == 0 ? 0 : static_cast<double>(right) / static_cast<double>(counted);
  }
};
Decisions decisions_of(const Prediction& a, const Prediction& b);

}  // namespace turnout::gpu_model
