#include "runtime/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/roofline.hpp"

namespace turnout {
namespace {

// Used where nothing was probed: one core of a current server, in round figures.
constexpr double kDefaultFlops = 50e9;
constexpr double kDefaultBandwidth = 10e9;
constexpr double kDefaultDispatch = 2e-6;

// Rate at a size, linear in log(size), constant outside the measured range.
double rate_at(const std::vector<RatePoint>& curve, double size) {
  if (size <= curve.front().size) return curve.front().rate;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (size > curve[i].size) continue;
    const RatePoint& a = curve[i - 1];
    const RatePoint& b = curve[i];
    const double t = std::log(size / a.size) / std::log(b.size / a.size);
    return a.rate + t * (b.rate - a.rate);
  }
  return curve.back().rate;
}

const std::vector<RatePoint>* curve_of(const std::map<std::string, std::vector<RatePoint>>& curves,
                                       std::string_view provider) {
  const auto at = curves.find(std::string(provider));
  return at == curves.end() || at->second.empty() ? nullptr : &at->second;
}

// The weight operand of a product with few rows is read once and decides the time.
bool is_gemv(const GemmShape& gemm) { return gemm.m > 0 && gemm.m <= 4; }

Estimate host_seconds(const CpuProfile& cpu, const Cost& cost, std::string_view provider) {
  if (cpu.evidence == Evidence::unprobed) {
    const double bytes = cost.bytes_read + cost.bytes_written;
    return {kDefaultDispatch + std::max(cost.flops / kDefaultFlops, bytes / kDefaultBandwidth),
            Evidence::fallback};
  }
  const double bytes = cost.bytes_read + cost.bytes_written;
  double memory = 0;
  if (!cpu.stream.empty()) memory = bytes / rate_at(cpu.stream, bytes);
  double compute = 0;
  if (cost.gemm.m > 0) {
    const auto* gemm = curve_of(cpu.gemm, provider);
    const auto* gemv = curve_of(cpu.gemv, provider);
    if (is_gemv(cost.gemm) && gemv != nullptr) {
      const double weights =
          static_cast<double>(cost.gemm.k) * static_cast<double>(cost.gemm.n) * 4;
      compute = weights / rate_at(*gemv, weights);
      memory = 0;  // the curve holds it: nearly all bytes are weights
    } else if (gemm != nullptr) {
      compute = cost.flops / rate_at(*gemm, cost.flops);
    } else {
      return {cpu.dispatch_seconds + std::max(cost.flops / kDefaultFlops, memory),
              Evidence::fallback};
    }
  }
  return {cpu.dispatch_seconds + std::max(compute, memory), cpu.evidence};
}

}  // namespace

std::optional<CostHistory::Known> CostModel::known(const NodeInfo& info, std::string_view provider,
                                                   const DeviceSlot& slot) const {
  if (history_ == nullptr || slot.info().is_virtual || history_->empty()) return std::nullopt;
  return history_->find(cost_key(info, provider, slot));
}

std::optional<double> CostModel::pass_seconds(double bytes) const {
  if (cpu_.stream.empty()) return std::nullopt;
  return bytes / rate_at(cpu_.stream, bytes) / changes_.cpu_factor;
}

Estimate CostModel::node(const NodeInfo& info, std::string_view provider,
                         const DeviceSlot& slot) const {
  if (info.op->view) return {0, Evidence::measured};
  if (const auto known = this->known(info, provider, slot)) {
    const double factor = slot.info().is_host ? changes_.cpu_factor : 1;
    return {known->seconds / factor, known->exact ? Evidence::measured : Evidence::calibrated};
  }
  const Cost cost = cost_of(info);
  if (slot.info().is_host) {
    Estimate estimate = host_seconds(cpu_, cost, provider);
    estimate.seconds /= changes_.cpu_factor;
    return estimate;
  }
  const DType dtype = info.output(0).dtype;
  if (slot.times == nullptr) {
    return {roofline_seconds(slot.info(), cost, dtype), roofline_evidence(slot.info(), dtype)};
  }
  return {slot.times->kernel_seconds(cost, dtype), slot.times->evidence(dtype)};
}

Estimate CostModel::copy(std::int64_t bytes, const DeviceSlot& device, bool to_device) const {
  if (device.info().is_host) return {0, Evidence::measured};
  const double size = static_cast<double>(bytes) / changes_.link_factor;
  return {copy_seconds(device.info(), size, to_device), copy_evidence(device.info(), to_device)};
}

}  // namespace turnout
