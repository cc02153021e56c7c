#include "core/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace turnout {
namespace {

constexpr double kMemoryEfficiency = 0.8;
constexpr double kVectorEfficiency = 0.5;
constexpr double kGemmEfficiency = 0.84;  // of the sheet's peak, for the largest tiles

// A figure that was measured is what is reached; one of a sheet never is.
double reached(const Figure& figure, double share) {
  return figure.value * (figure.evidence == Evidence::calibrated ? 1 : share);
}

struct Tile {
  double m, n;
  double share;  // of kGemmEfficiency: smaller tiles load more bytes per flop
};
constexpr Tile kTiles[] = {{128, 128, 1.0}, {128, 64, 0.9}, {64, 64, 0.8}, {64, 32, 0.65},
                           {32, 32, 0.5},   {32, 128, 0.8}, {16, 64, 0.45}};

// Seconds of a product without memory traffic; `rate` is that of large ones.
double gemm_seconds(const DeviceInfo& device, const GemmShape& gemm, double rate) {
  const double units = std::max(1, device.compute_units);
  const double unit_rate = rate / units;
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(std::max<std::int64_t>(gemm.k, 1));
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles =
        std::ceil(m / tile.m) * std::ceil(n / tile.n) * static_cast<double>(gemm.batch);
    for (double split = 1; split <= 16 && k / split >= 128; split *= 2) {
      const double waves = std::ceil(tiles * split / units);
      const double seconds =
          waves * 2 * tile.m * tile.n * std::ceil(k / split) / (unit_rate * tile.share);
      best = std::min(best, seconds);
    }
    if (k < 128) {
      const double waves = std::ceil(tiles / units);
      best = std::min(best, waves * 2 * tile.m * tile.n * k / (unit_rate * tile.share));
    }
  }
  return best;
}

}  // namespace

double roofline_seconds(const DeviceInfo& device, const Cost& cost, DType dtype) {
  const Figure& peak = device.peak(dtype);
  const double bytes = cost.bytes_read + cost.bytes_written;
  double compute = 0;
  if (peak.value > 0 && cost.gemm.m > 0) {
    compute = gemm_seconds(device, cost.gemm, reached(peak, kGemmEfficiency));
  } else if (peak.value > 0) {
    compute = cost.flops / (peak.value * kVectorEfficiency);
  }
  const double bandwidth = reached(device.memory_bytes_per_s, kMemoryEfficiency);
  const double memory = bandwidth > 0 ? bytes / bandwidth : 0;
  return device.launch_seconds.value + std::max(compute, memory);
}

double copy_seconds(const DeviceInfo& device, double bytes, bool to_device) {
  if (device.is_host) return 0;
  const Figure& bandwidth = to_device ? device.link.h2d_bytes_per_s : device.link.d2h_bytes_per_s;
  const double transfer = bandwidth.value > 0 ? bytes / bandwidth.value : 0;
  // The host has to notice that a download is done.
  const double notice = to_device ? 0 : device.synchronize_seconds.value;
  return device.link.latency_seconds.value + transfer + notice;
}

Evidence roofline_evidence(const DeviceInfo& device, DType dtype) {
  if (!device.peak(dtype).known() || !device.memory_bytes_per_s.known()) {
    return Evidence::unprobed;
  }
  const bool calibrated = device.peak(dtype).evidence == Evidence::calibrated &&
                          device.memory_bytes_per_s.evidence == Evidence::calibrated &&
                          device.launch_seconds.evidence == Evidence::calibrated;
  return calibrated ? Evidence::calibrated : Evidence::predicted;
}

Evidence copy_evidence(const DeviceInfo& device, bool to_device) {
  const Figure& rate = to_device ? device.link.h2d_bytes_per_s : device.link.d2h_bytes_per_s;
  if (!rate.known()) return Evidence::unprobed;
  return rate.evidence == Evidence::calibrated ? Evidence::calibrated : Evidence::predicted;
}

}  // namespace turnout
