#include "core/gpu_model/parameters.hpp"

namespace turnout::gpu_model {

std::vector<double*> fitted(GemmParameters& g) {
  ProductParameters& p = g.product;
  return {&p.tile_half, &p.resident,     &p.resident_power, &p.step_clocks, &p.overlap,
          &p.split,     &p.split_launch, &g.launch_seconds, &g.balance_half};
}

std::vector<double*> fitted(ConvParameters& c) {
  ProductParameters& p = c.product;
  return {&p.tile_half,
          &p.resident,
          &p.resident_power,
          &p.overlap,
          &p.split,
          &p.split_launch,
          &c.launch_seconds,
          &c.forward_share,
          &c.data_share,
          &c.filter_share,
          &c.pointwise,
          &c.pointwise_filter,
          &c.strided_data,
          &c.reduction_pad,
          &c.traffic,
          &c.columns_share,
          &c.columns_traffic,
          &c.winograd_share,
          &c.winograd_large_share,
          &c.transform_traffic};
}

}  // namespace turnout::gpu_model
