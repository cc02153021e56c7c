#include "runtime/plan/break_even.hpp"

namespace turnout {

double BreakEven::rows(double bytes_per_weight) const {
  return bytes_per_weight * cpu_flops_per_s.value / (2 * link_bytes_per_s.value);
}

double BreakEven::fixed_seconds() const {
  return launch_seconds.value + 2 * latency_seconds.value + synchronize_seconds.value;
}

double BreakEven::weight_bytes() const { return cpu_bytes_per_s.value * fixed_seconds(); }

BreakEven break_even(const CpuProfile& cpu, const DeviceInfo& device, std::string label) {
  BreakEven result;
  result.device = std::move(label);
  for (const auto& [provider, curve] : cpu.gemm) {
    for (const RatePoint& point : curve) {
      if (point.rate <= result.cpu_flops_per_s.value) continue;
      result.cpu_flops_per_s = {point.rate, cpu.evidence, "best product of " + provider};
    }
  }
  if (!cpu.stream.empty()) {
    result.cpu_bytes_per_s = {cpu.stream.back().rate, cpu.evidence,
                              "one pass over the largest data probed"};
  }
  result.link_bytes_per_s = device.link.h2d_bytes_per_s;
  result.launch_seconds = device.launch_seconds;
  result.latency_seconds = device.link.latency_seconds;
  result.synchronize_seconds = device.synchronize_seconds;
  return result;
}

}  // namespace turnout
