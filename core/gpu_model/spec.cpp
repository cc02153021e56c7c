#include "core/gpu_model/spec.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.hpp"

namespace turnout::gpu_model {
namespace {

// Watts a board needs for each f32 flop/s of its peak; 0: a generation that isn't listed.
double watts_per_flop(std::string_view generation) {
  struct Process {
    std::string_view generation;
    double watts_per_flop;
  };
  constexpr double k12to16nm = 19e-12, k7nm = 11e-12, k5nm = 5e-12;
  constexpr Process kProcesses[] = {
      {"Pascal", k12to16nm}, {"Volta", k12to16nm}, {"Turing", k12to16nm},
      {"Vega", k12to16nm},   {"Ampere", k7nm},     {"CDNA 2", k7nm},
      {"CDNA 3", k5nm},      {"Ada", k5nm},        {"Hopper", k5nm},
  };
  for (const Process& process : kProcesses) {
    if (generation.starts_with(process.generation)) return process.watts_per_flop;
  }
  return 0;
}

double needed(const DeviceInfo& device, const Figure& figure, std::string_view name) {
  if (figure.known() && figure.value > 0) return figure.value;
  fail(ErrorCode::invalid_argument, "device '{}': the time models need its {}, which isn't known",
       device.name, name);
}

}  // namespace

double sustained_share(const DeviceInfo& device) {
  const double each = watts_per_flop(device.generation);
  if (each == 0 || !device.tdp_watts.known() || !device.peak_f32.known()) return 1;
  const double share = std::sqrt(device.tdp_watts.value / (each * device.peak_f32.value));
  double least = 0;
  if (device.base_clock_hz.known() && device.clock_hz.value > 0) {
    least = device.base_clock_hz.value / device.clock_hz.value;
  }
  return std::clamp(share, std::min(least, 1.0), 1.0);
}

GpuSpec gpu_spec(const DeviceInfo& device) {
  const double share = sustained_share(device);
  GpuSpec spec;
  spec.f32_flops_per_s = share * needed(device, device.peak_f32, "f32 rate");
  if (device.matrix_f16.known()) spec.half_flops_per_s = share * device.matrix_f16.value;
  spec.bandwidth_bytes_per_s = needed(device, device.memory_bytes_per_s, "memory bandwidth");
  spec.clock_hz = share * needed(device, device.clock_hz, "clock");
  spec.units = std::max(1, device.compute_units);
  if (device.warp_size > 0) spec.warps_per_tile = 32.0 / device.warp_size;
  spec.winograd_filter_gradient = spec.winograd_large_tiles = device.vendor != "AMD";
  return spec;
}

}  // namespace turnout::gpu_model
