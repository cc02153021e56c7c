#pragma once

#include <vector>

namespace turnout::gpu_model {

// Parameters of the time models, shared by every device. bench/gpu_model_fit.cpp fits them to the
// published tables and writes learned.inc; the values here are where a fit starts and what it is
// weakly drawn to.

struct ProductParameters {
  double tile_half = 5.5;        ///< x0 of e(tile)
  double resident = 2.2;         ///< tiles of 64 x 64 that keep a unit busy
  double resident_power = 0.47;  ///< q of use
  double step_clocks = 18;       ///< least clocks of one step of the reduction
  double overlap = 2.2;          ///< p: how well memory and arithmetic overlap
  double split = 1;              ///< passes over the partial results, of what is least
  double split_launch = 1.8e-6;  ///< seconds of a further kernel
  double stream = 0.78;  ///< of the sheet's bandwidth. Not fitted: about what copies reach on GPUs
};

struct GemmParameters {
  ProductParameters product;
  double launch_seconds = 5e-6;
  double balance_half = 34;  ///< b0
  double peak_share = 0.98;  ///< e0. Not fitted
};

struct ConvParameters {
  ProductParameters product;
  double launch_seconds = 1.2e-5;
  double forward_share = 0.9, data_share = 0.9, filter_share = 0.7;  ///< of the peak, implicit
  double pointwise = 0.7, pointwise_filter = 0.7;  ///< 1x1 filters: of these shares
  double strided_data = 0.7;                       ///< data gradient with strides: of its share
  double reduction_pad = 6;                        ///< steps that every reduction takes more
  double traffic = 1.1;                            ///< operands' bytes, of what is least
  double columns_share = 0.7, columns_traffic = 1;
  double winograd_share = 0.65, winograd_large_share = 0.8, transform_traffic = 0.8;
};

/// The parameters that are fitted, always in this order. They are positive, and a fit or a
/// sensitivity changes them by factors.
std::vector<double*> fitted(GemmParameters& params);
std::vector<double*> fitted(ConvParameters& params);

}  // namespace turnout::gpu_model
