#include "core/gpu_model/shape.hpp"

namespace turnout::gpu_model {

double flops(const OpShape& s) {
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  if (!s.is_conv) return 2 * d(s.products) * d(s.m) * d(s.n) * d(s.k);
  return 2 * d(s.batch) * d(s.out_height()) * d(s.out_width()) * d(s.out_channels) *
         d(s.in_channels) / d(s.groups) * d(s.filter_h) * d(s.filter_w);
}

}  // namespace turnout::gpu_model
