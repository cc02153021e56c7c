#include "core/gpu_model/learned.hpp"

#include <array>
#include <cstdint>

namespace turnout::gpu_model {
namespace {

constexpr PublishedDevice kDevices[] = {
    {"v100", "NVIDIA", "Volta", 80},
    {"p100", "NVIDIA", "Pascal", 56},
    {"mi25", "AMD", "Vega", 64},
};
constexpr std::size_t kSets = std::size(kDevices) + 1;  // learned from all, without the first, ...

struct ErrorRow {
  std::int8_t device;
  std::int8_t half;
  std::int8_t pass;
  std::array<std::int16_t, 11> sizes;  // batch to stride_w, in the order of OpShape
  std::array<float, kSets> log_ratios;
};

// kGemm[kSets][], kConv[kSets][] (fitted parameters) and kErrors[]; written by
// bench/gpu_model_fit.cpp.
#include "core/gpu_model/learned.inc"

template <typename Params, typename Values>
void assign(Params& params, const Values& values) {
  const auto pointers = fitted(params);
  static_assert(sizeof(values) > 0);
  for (std::size_t i = 0; i < pointers.size(); ++i) *pointers[i] = values[i];
}

}  // namespace

std::span<const PublishedDevice> published_devices() { return kDevices; }

int published_index(const DeviceInfo& device) {
  for (std::size_t i = 0; i < std::size(kDevices); ++i) {
    const PublishedDevice& known = kDevices[i];
    if (device.vendor == known.vendor && device.generation.starts_with(known.generation) &&
        device.compute_units == known.compute_units) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int published_index(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kDevices); ++i) {
    if (kDevices[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Learned learned_parameters(int without) {
  const auto set = static_cast<std::size_t>(without + 1);
  Learned learned;
  assign(learned.gemm, kGemm[set]);
  assign(learned.conv, kConv[set]);
  return learned;
}

std::vector<PublishedError> published_errors(int device, int without, bool half) {
  std::vector<PublishedError> errors;
  if (device == without) return errors;
  for (const ErrorRow& row : kErrors) {
    if (row.device != device || (row.half != 0) != half) continue;
    PublishedError error;
    OpShape& s = error.shape;
    s.is_conv = true;
    s.half = half;
    s.pass = static_cast<Pass>(row.pass);
    std::int64_t* const sizes[] = {&s.batch,        &s.in_channels, &s.height,   &s.width,
                                   &s.out_channels, &s.filter_h,    &s.filter_w, &s.pad_h,
                                   &s.pad_w,        &s.stride_h,    &s.stride_w};
    for (std::size_t i = 0; i < row.sizes.size(); ++i) *sizes[i] = row.sizes[i];
    error.log_ratio = row.log_ratios[static_cast<std::size_t>(without + 1)];
    errors.push_back(error);
  }
  return errors;
}

}  // namespace turnout::gpu_model
