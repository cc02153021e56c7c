#include "core/gpu_model/similarity.hpp"

#include <algorithm>
#include <cmath>

namespace turnout::gpu_model {
namespace {

int conv_kind(const OpShape& s) {
  const bool strided = s.stride_h > 1 || s.stride_w > 1;
  if (s.in_channels < 8) return 0;
  if (s.filter_h == 1 && s.filter_w == 1) return strided ? 2 : 1;
  return s.filter_h == 3 && s.filter_w == 3 && !strided ? 3 : 4;
}

double log2_of(std::int64_t size) { return std::log2(static_cast<double>(size)); }

// Up to two of the largest tiles a side's size decides which tiles fit.
double log2_of_side(std::int64_t size) { return log2_of(std::min<std::int64_t>(size, 256)); }

}  // namespace

Features features_of(const OpShape& s) {
  constexpr double kReduction = 0.5, kFlops = 0.06;
  Features f;
  f.is_conv = s.is_conv;
  f.pass = s.pass;
  if (!s.is_conv) {
    f.kind = (s.transpose_a ? 1 : 0) + (s.transpose_b ? 2 : 0);
    f.sizes = {log2_of_side(s.m),
               log2_of_side(s.n),
               kReduction * log2_of(s.k),
               kFlops * std::log2(flops(s)),
               0,
               0};
    return f;
  }
  f.kind = conv_kind(s);
  f.sizes = {log2_of(s.batch),
             log2_of(s.in_channels) - log2_of(s.groups),
             log2_of(s.out_channels) - log2_of(s.groups),
             log2_of(s.out_height()) + log2_of(s.out_width()),
             log2_of(s.filter_h) + log2_of(s.filter_w),
             log2_of(s.groups)};
  return f;
}

double distance(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.sizes.size(); ++i) {
    sum += (a.sizes[i] - b.sizes[i]) * (a.sizes[i] - b.sizes[i]);
  }
  return std::sqrt(sum);
}

}  // namespace turnout::gpu_model
