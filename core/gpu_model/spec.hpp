#pragma once

#include "core/device.hpp"

namespace turnout::gpu_model {

/// The figures of a device's sheet that the time models use, derated by rule: see gpu_spec().
struct GpuSpec {
  double f32_flops_per_s = 0;
  double half_flops_per_s = 0;  ///< of matrix units with half operands; 0: the device has none
  double bandwidth_bytes_per_s = 0;
  double units = 1;
  double clock_hz = 0;
  double warps_per_tile = 1;  ///< of a tile, beside a device with 32 lanes a warp
  /// What the vendor's convolution library has, see conv.hpp.
  bool winograd_filter_gradient = false;  ///< Winograd for the filter gradient
  bool winograd_large_tiles = false;      ///< Winograd whose transforms are kernels of their own
  bool same_library_as(const GpuSpec& other) const {
    return winograd_filter_gradient == other.winograd_filter_gradient &&
           winograd_large_tiles == other.winograd_large_tiles;
  }
};

/// The spec of a device that is known by its sheet. Rules, from figures of the sheet alone:
/// - the clock that holds under load is sustained_share() of the boost clock, and rates follow it;
/// - half precision runs on matrix units where the sheet has a rate for them. Without, libraries
///   keep half operands and compute in f32 ("pseudo half"), at the f32 rate;
/// - the convolution library is the vendor's. NVIDIA's has Winograd for every pass, also with large
///   tiles and transforms apart; AMD's (as of the published tables, MIOpen 1) has fused Winograd
///   for forward and data gradient, none for the filter gradient.
/// Throws Error (invalid_argument) naming the device when a figure that is needed isn't known.
GpuSpec gpu_spec(const DeviceInfo& device);

/// Share of the boost clock that the board's power lets it hold under load. A board of a generation
/// needs about W0 watts per f32 flop/s of its peak: 19e-12 made in 12 to 16 nm (the least of the
/// three boards measured that hold their clock, a V100), 11e-12 in 6 or 7 nm, 5e-12 in 4 or 5 nm.
/// Power goes about with the square of the clock, so a board with less holds
/// sqrt(watts / needed), but never less than its base clock. 1 where a figure isn't known.
double sustained_share(const DeviceInfo& device);

}  // namespace turnout::gpu_model
