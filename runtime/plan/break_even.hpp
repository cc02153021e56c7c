#pragma once

#include <string>

#include "runtime/cost/cost_model.hpp"

namespace turnout {

/// The figures that decide crossings by themselves; each with its evidence.
struct BreakEven {
  std::string device;
  Figure cpu_flops_per_s, cpu_bytes_per_s, link_bytes_per_s;
  Figure launch_seconds, latency_seconds, synchronize_seconds;
  /// B* = s Fc / (2 Bw): rows from which on a device wins a product whose weights of s bytes each
  /// are copied to it every time.
  double rows(double bytes_per_weight) const;
  /// launch + 2 L + sync: what a device costs before it does anything.
  double fixed_seconds() const;
  /// A CPU wins an op at batch 1 whose weights are fewer bytes.
  double weight_bytes() const;
};
BreakEven break_even(const CpuProfile& cpu, const DeviceInfo& device, std::string label);

}  // namespace turnout
