#include "core/device_times.hpp"

#include <algorithm>

#include "core/roofline.hpp"

namespace turnout {
namespace {

// What the models need, from a sheet: measured rates are attained ones, which they don't expect.
bool has_sheet(const DeviceInfo& info) {
  const auto from_sheet = [](const Figure& figure) {
    return figure.known() && figure.evidence != Evidence::calibrated && figure.value > 0;
  };
  return !info.is_host && from_sheet(info.peak_f32) && from_sheet(info.memory_bytes_per_s) &&
         from_sheet(info.clock_hz);
}

bool in_range(std::int64_t size) { return size >= 1 && size <= gpu_model::OpShape::kMaxSize; }

gpu_model::OpShape product_shape(const GemmShape& gemm) {
  gpu_model::OpShape shape;
  // Row-major here, column-major there: the transposed product.
  shape.m = gemm.n;
  shape.n = gemm.m;
  shape.k = gemm.k;
  shape.products = gemm.batch;
  return shape;
}

}  // namespace

DeviceTimes::DeviceTimes(const DeviceInfo& info) : info_(info) {
  if (has_sheet(info_)) predictor_.emplace(info_);
}

bool DeviceTimes::is_modelled(const Cost& cost, DType dtype) const {
  if (!predictor_) return false;
  if (dtype == DType::bf16) {  // with matrix units for it, as f16 has
    if (!info_.matrix_f16.known() || info_.peak_bf16.value < info_.peak_f16.value) return false;
  } else if (dtype != DType::f32 && dtype != DType::f16) {
    return false;
  }
  if (cost.conv.is_conv) return true;
  const GemmShape& gemm = cost.gemm;
  return in_range(gemm.m) && in_range(gemm.n) && in_range(gemm.k) && in_range(gemm.batch);
}

double DeviceTimes::kernel_seconds(const Cost& cost, DType dtype) const {
  if (!is_modelled(cost, dtype)) return roofline_seconds(info_, cost, dtype);
  gpu_model::OpShape shape = cost.conv.is_conv ? cost.conv : product_shape(cost.gemm);
  shape.half = dtype != DType::f32;
  return std::max(predictor_->seconds(shape), info_.launch_seconds.value);
}

Evidence DeviceTimes::evidence(DType dtype) const { return roofline_evidence(info_, dtype); }

}  // namespace turnout
