#include "runtime/cost/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"

namespace turnout::gpu_model {
namespace {

constexpr double kClose = 1.25;  // given times within this factor are no decision

void calibrate(GpuPredictor& predictor, std::span<const OpRow> rows, std::size_t count,
               Prediction& prediction) {
  std::vector<OpShape> shapes;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].refusal.empty()) continue;
    shapes.push_back(rows[i].shape);
    indices.push_back(i);
  }
  std::vector<OpShape> measured;
  std::vector<double> seconds;
  std::string missing;
  for (const std::size_t chosen : predictor.choose(shapes, count)) {
    const OpRow& row = rows[indices[chosen]];
    prediction.calibration.push_back(indices[chosen]);
    measured.push_back(row.shape);
    seconds.push_back(row.seconds.value_or(1));
    if (!row.seconds) missing += fmt::format(" {}", indices[chosen]);
  }
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument,
         "calibrating with {} rows needs a time_ms in rows{} (index from 0)",
         prediction.calibration.size(), missing);
  }
  predictor.calibrate(measured, seconds);
}

ErrorSummary summary(std::string what, std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  ErrorSummary result{std::move(what), errors.size(), 0, 0};
  if (errors.empty()) return result;
  for (const double error : errors) result.mean += error / static_cast<double>(errors.size());
  const std::size_t half = errors.size() / 2;
  result.median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  return result;
}

// What makes two rows the same measurement on two devices.
std::string key_of(const OpRow& row) {
  const OpShape& s = row.shape;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.op, row.pass,
                     row.precision, s.m, s.n, s.k, s.transpose_a, s.transpose_b, s.batch,
                     s.in_channels, s.height, s.width, s.out_channels, s.filter_h, s.filter_w,
                     s.pad_h, s.pad_w, s.stride_h, s.stride_w);
}

bool counts(const PredictedRow& row) {
  return row.row.seconds && row.seconds && row.evidence != Evidence::measured;
}

}  // namespace

Prediction predict(const DeviceInfo& device, std::span<const OpRow> rows,
                   std::size_t calibrate_with, std::string_view leave_out) {
  GpuPredictor predictor(device, leave_out);
  Prediction prediction;
  prediction.learned_from = predictor.learned_from();
  if (calibrate_with > 0) calibrate(predictor, rows, calibrate_with, prediction);
  const Evidence evidence =
      prediction.calibration.empty() ? Evidence::predicted : Evidence::calibrated;
  for (const OpRow& row : rows) {
    PredictedRow result{row, std::nullopt, Evidence::unprobed};
    if (row.refusal.empty()) {
      result.seconds = predictor.seconds(row.shape);
      result.evidence = evidence;
    }
    prediction.rows.push_back(std::move(result));
  }
  for (const std::size_t i : prediction.calibration) {
    prediction.rows[i].seconds = prediction.rows[i].row.seconds;
    prediction.rows[i].evidence = Evidence::measured;
  }
  return prediction;
}

std::vector<ErrorSummary> errors_of(const Prediction& prediction) {
  std::vector<std::pair<std::string, std::vector<double>>> groups;
  std::map<std::string, std::vector<double>> ops;
  std::map<std::string, int> passes;
  for (const PredictedRow& row : prediction.rows) {
    if (!row.row.seconds || row.evidence == Evidence::measured) continue;
    const double error = row.seconds ? std::abs(*row.seconds / *row.row.seconds - 1) : 1;
    const std::string what = row.row.op + " " + row.row.pass;
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& group) { return group.first == what; });
    if (at == groups.end()) {
      ++passes[row.row.op];
      at = groups.insert(groups.end(), {what, {}});
    }
    at->second.push_back(error);
    ops[row.row.op].push_back(error);
  }
  std::vector<ErrorSummary> result;
  for (auto& [what, errors] : groups) result.push_back(summary(what, std::move(errors)));
  for (auto& [op, errors] : ops) {
    if (passes[op] > 1) result.push_back(summary(op, std::move(errors)));
  }
  return result;
}

Decisions decisions_of(const Prediction& a, const Prediction& b) {
  std::map<std::string, const PredictedRow*> others;
  for (const PredictedRow& row : b.rows) {
    if (counts(row)) others.emplace(key_of(row.row), &row);
  }
  Decisions result;
  for (const PredictedRow& row : a.rows) {
    if (!counts(row)) continue;
    const auto other = others.find(key_of(row.row));
    if (other == others.end()) continue;
    const double given = *row.row.seconds / *other->second->row.seconds;
    if (given > 1 / kClose && given < kClose) {
      ++result.close;
      continue;
    }
    ++result.counted;
    if ((given > 1) == (*row.seconds > *other->second->seconds)) ++result.right;
  }
  return result;
}

}  // namespace turnout::gpu_model
