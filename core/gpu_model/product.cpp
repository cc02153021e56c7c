#include "core/gpu_model/product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace turnout::gpu_model {
namespace {

struct Tile {
  double m, n;
};
constexpr Tile kTiles[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64},  {128, 32}, {32, 128},
                           {64, 32},   {32, 64},  {32, 32},  {256, 32}, {64, 16},  {128, 16},
                           {16, 64},   {16, 128}, {32, 16},  {16, 32}};
constexpr double kMaxSplit = 256;
constexpr double kMinPart = 128;  // no part of a split reduction is shorter

// Two things that overlap, but not fully: the p-norm of their times.
double overlapped(double a, double b, double p) {
  const double most = std::max(a, b), least = std::min(a, b);
  if (least <= 0) return most;
  return most * std::pow(1 + std::pow(least / most, p), 1 / p);
}

double tile_efficiency(const Tile& tile, double x0) {
  const double x = tile.m * tile.n / (tile.m + tile.n);
  return (1 + x0 / 64) / (1 + x0 / x);
}

}  // namespace

double product_seconds(const GpuSpec& spec, const Product& product, const ProductParameters& params,
                       double rate, double memory_seconds) {
  const double unit_rate = rate / spec.units;
  const double bandwidth = spec.bandwidth_bytes_per_s * params.stream;
  const double out_seconds = product.m * product.n * product.count * 4 / bandwidth;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles =
        std::ceil(product.m / tile.m) * std::ceil(product.n / tile.n) * product.count;
    const double efficiency = tile_efficiency(tile, params.tile_half);
    const double filling = std::pow(tile.m * tile.n / 4096, params.resident_power) *
                           spec.warps_per_tile / params.resident;
    for (double split = 1; split <= kMaxSplit; split *= 2) {
      if (split > 1 && product.k / split < kMinPart) break;
      const double extra =
          split > 1 ? params.split * (split + 1) * out_seconds + params.split_launch : 0;
      if (extra + memory_seconds >= best) break;
      const double steps = std::ceil(product.k / split);
      const double each = std::ceil(tiles * split / spec.units);
      const double use = std::min(1.0, each * filling);
      double compute = each * 2 * tile.m * tile.n * steps / (unit_rate * efficiency * use);
      compute = std::max(compute, steps * params.step_clocks / spec.clock_hz);
      if (std::max(compute, memory_seconds) + extra >= best) continue;
      best = std::min(best, overlapped(compute, memory_seconds, params.overlap) + extra);
    }
  }
  return best;
}

double gemm_seconds(const GpuSpec& spec, const OpShape& shape, const GemmParameters& params) {
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k), count = static_cast<double>(shape.products);
  const double balance = std::clamp(spec.f32_flops_per_s / spec.bandwidth_bytes_per_s, 10.0, 26.0);
  const double share = params.peak_share / (1 + std::pow(balance / params.balance_half, 3));
  const bool matrix = shape.half && spec.half_flops_per_s > 0;
  const double peak = matrix ? spec.half_flops_per_s : spec.f32_flops_per_s;
  const double bytes = (shape.half ? 2 : 4) * count * (m * k + k * n + m * n);
  const double memory = bytes / (spec.bandwidth_bytes_per_s * params.product.stream);
  return params.launch_seconds +
         product_seconds(spec, {m, n, k, count}, params.product, peak * share, memory);
}

}  // namespace turnout::gpu_model
