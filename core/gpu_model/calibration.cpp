#include "core/gpu_model/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace turnout::gpu_model {
namespace {

// Standard deviations of log(time / model's time), by what two shapes share; `length` is a
// distance. The same for every device: see docs/predict.md for how they were chosen.
struct Spread {
  double level, pass, kind, parameter, near, length, noise;
  double outlier;  // multiples of the own deviation beyond which a measurement counts less
};
constexpr Spread kProduct{0.18, 0, 0.11, 0.2, 0.37, 2.95, 0.062, 1.1};
constexpr Spread kConvolution{0.13, 0.05, 0.06, 0.15, 0.21, 5.8, 0.02, 2.9};

const Spread& spread_of(const Features& features) {
  return features.is_conv ? kConvolution : kProduct;
}

double square(double x) { return x * x; }

double own_variance(const CalibrationPoint& point) {
  const Spread& spread = spread_of(point.features);
  return square(spread.near) + square(spread.noise);
}

double shared_covariance(const CalibrationPoint& a, const CalibrationPoint& b) {
  if (a.features.is_conv != b.features.is_conv) return 0;
  const Spread& spread = spread_of(a.features);
  double sum = square(spread.level);
  double inner = 0;
  for (std::size_t i = 0; i < a.sensitivities.size(); ++i) {
    inner += a.sensitivities[i] * b.sensitivities[i];
  }
  sum += square(spread.parameter) * inner;
  if (a.features.pass != b.features.pass) return sum;
  sum += square(spread.pass);
  return a.features.kind == b.features.kind ? sum + square(spread.kind) : sum;
}

double near_covariance(const CalibrationPoint& a, const CalibrationPoint& b) {
  constexpr double kOtherPass = 0.25, kOtherTranspose = 0.6, kOtherKind = 0.3;
  if (a.features.is_conv != b.features.is_conv) return 0;
  const Spread& spread = spread_of(a.features);
  double value = square(spread.near) * std::exp(-distance(a.features, b.features) / spread.length);
  if (a.features.pass != b.features.pass) value *= kOtherPass;
  if (a.features.kind != b.features.kind)
    value *= a.features.is_conv ? kOtherKind : kOtherTranspose;
  return value;
}

// Solves K x = b for a symmetric positive K (row by row) with Cholesky's factorization.
std::vector<double> solve(std::vector<double> k, std::vector<double> b) {
  constexpr double kLeastPivot = 1e-12;
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = k[i * n + j];
      for (std::size_t l = 0; l < j; ++l) sum -= k[i * n + l] * k[j * n + l];
      k[i * n + j] = i == j ? std::sqrt(std::max(sum, kLeastPivot)) : sum / k[j * n + j];
    }
    for (std::size_t l = 0; l < i; ++l) b[i] -= k[i * n + l] * b[l];
    b[i] /= k[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t l = i + 1; l < n; ++l) b[i] -= k[l * n + i] * b[l];
    b[i] /= k[i * n + i];
  }
  return b;
}

// Adds to `chosen` the best `count` of `rows`.
void choose_from(std::span<const CalibrationPoint> points, const std::vector<std::size_t>& rows,
                 std::size_t count, std::vector<std::size_t>& chosen) {
  const std::size_t n = std::min(rows.size(), kMaxCandidates);
  const auto row_of = [&](std::size_t i) { return rows[i * rows.size() / n]; };
  std::vector<double> k(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const CalibrationPoint &a = points[row_of(i)], &b = points[row_of(j)];
      k[i * n + j] = shared_covariance(a, b) + near_covariance(a, b);
    }
  }
  std::vector<bool> taken(n, false);
  for (std::size_t c = 0; c < std::min(count, n); ++c) {
    std::size_t best = n;
    double most = -1;
    for (std::size_t i = 0; i < n; ++i) {
      if (taken[i]) continue;
      const double noise = square(spread_of(points[row_of(i)].features).noise);
      double gain = 0;
      for (std::size_t j = 0; j < n; ++j) gain += square(k[i * n + j]);
      gain /= k[i * n + i] + noise;
      if (gain > most * (1 + 1e-9)) {
        most = gain;
        best = i;
      }
    }
    taken[best] = true;
    chosen.push_back(row_of(best));
    std::vector<double> row(n);
    for (std::size_t j = 0; j < n; ++j) row[j] = k[best * n + j];
    const double noise = square(spread_of(points[row_of(best)].features).noise);
    const double scale = 1 / (row[best] + noise);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) k[i * n + j] -= row[i] * row[j] * scale;
    }
  }
}

}  // namespace

Calibration::Calibration(std::vector<CalibrationPoint> points, std::span<const double> log_ratios)
    : points_(std::move(points)) {
  constexpr int kRounds = 20;
  const std::size_t n = points_.size();
  const std::vector<double> y(log_ratios.begin(), log_ratios.end());
  std::vector<double> shared(n * n), near(n * n), rest = y, trust(n, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      shared[i * n + j] = shared_covariance(points_[i], points_[j]);
      near[i * n + j] = near_covariance(points_[i], points_[j]);
    }
    near[i * n + i] += square(spread_of(points_[i].features).noise);
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> k = shared;
    for (std::size_t i = 0; i < n; ++i) k[i * n + i] += own_variance(points_[i]) / trust[i];
    shared_weights_ = solve(std::move(k), y);
    for (std::size_t i = 0; i < n; ++i) {
      rest[i] = y[i];
      for (std::size_t j = 0; j < n; ++j) rest[i] -= shared[i * n + j] * shared_weights_[j];
      const double limit =
          square(spread_of(points_[i].features).outlier) * own_variance(points_[i]);
      trust[i] = std::min(1.0, limit / std::max(square(rest[i]), 1e-12));
    }
  }
  near_weights_ = solve(std::move(near), std::move(rest));
}

double Calibration::log_ratio(const CalibrationPoint& point) const {
  double sum = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    sum += shared_weights_[i] * shared_covariance(points_[i], point) +
           near_weights_[i] * near_covariance(points_[i], point);
  }
  return sum;
}

std::vector<std::size_t> choose_calibration(std::span<const CalibrationPoint> points,
                                            std::size_t count) {
  std::vector<std::size_t> rows[2], chosen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    rows[points[i].features.is_conv ? 1 : 0].push_back(i);
  }
  count = std::min(count, points.size());
  std::size_t products = count / 2;
  if (rows[1].empty()) products = count;
  products = std::min(products, rows[0].size());
  const std::size_t convolutions = std::min(count - products, rows[1].size());
  products = std::min(count - convolutions, rows[0].size());
  choose_from(points, rows[0], products, chosen);
  choose_from(points, rows[1], convolutions, chosen);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace turnout::gpu_model
