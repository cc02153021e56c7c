#include "core/gpu_model/conv.hpp"

#include <cmath>

#include "core/gpu_model/product.hpp"

namespace turnout::gpu_model {
namespace {

// Sizes of one group as real numbers, and what follows from them.
struct Sizes {
  double batch, in, out, groups;       // channels of a group
  double in_pixels, out_pixels, taps;  // pixels of the whole batch
  double tile_rows, tile_columns;      // output height and width
  double element_bytes, bytes;         // bytes: all three operands once
  bool strided, pointwise;

  explicit Sizes(const OpShape& s)
      : batch(static_cast<double>(s.batch)),
        in(static_cast<double>(s.in_channels) / static_cast<double>(s.groups)),
        out(static_cast<double>(s.out_channels) / static_cast<double>(s.groups)),
        groups(static_cast<double>(s.groups)),
        in_pixels(batch * static_cast<double>(s.height) * static_cast<double>(s.width)),
        out_pixels(batch * static_cast<double>(s.out_height()) *
                   static_cast<double>(s.out_width())),
        taps(static_cast<double>(s.filter_h) * static_cast<double>(s.filter_w)),
        tile_rows(static_cast<double>(s.out_height())),
        tile_columns(static_cast<double>(s.out_width())),
        element_bytes(s.half ? 2 : 4),
        bytes(element_bytes * groups * (in_pixels * in + out_pixels * out + in * out * taps)),
        strided(s.stride_h > 1 || s.stride_w > 1),
        pointwise(s.filter_h == 1 && s.filter_w == 1) {}
};

Product implicit_product(const Sizes& s, Pass pass) {
  if (pass == Pass::forward) return {s.out, s.out_pixels, s.in * s.taps, s.groups};
  if (pass == Pass::backward_data) {
    return {s.in, s.in_pixels, s.out * s.taps * s.out_pixels / s.in_pixels, s.groups};
  }
  return {s.out, s.in * s.taps, s.out_pixels, s.groups};
}

double implicit_share(const Sizes& s, Pass pass, const ConvParameters& p) {
  switch (pass) {
    case Pass::forward:
      return p.forward_share * (s.pointwise ? p.pointwise : 1);
    case Pass::backward_data:
      return p.data_share * (s.pointwise ? p.pointwise : 1) * (s.strided ? p.strided_data : 1);
    case Pass::backward_filter:
      return p.filter_share * (s.pointwise ? p.pointwise_filter : 1);
  }
  return p.forward_share;
}

// The (q+r-1)^2 products of Winograd with q x q outputs a tile, and what goes through memory.
struct Winograd {
  Product product;
  double transform_bytes;
};
Winograd winograd(const Sizes& s, Pass pass, double q, double r) {
  const double points = (q + r - 1) * (q + r - 1);
  const double tiles = s.batch * std::ceil(s.tile_rows / q) * std::ceil(s.tile_columns / q);
  const double count = points * s.groups;
  Winograd w;
  if (pass == Pass::forward) w.product = {s.out, tiles, s.in, count};
  if (pass == Pass::backward_data) w.product = {s.in, tiles, s.out, count};
  if (pass == Pass::backward_filter) w.product = {s.out, s.in, tiles, count};
  w.transform_bytes =
      s.bytes + 2 * s.element_bytes * count * (tiles * (s.in + s.out) + s.in * s.out);
  return w;
}

}  // namespace

ConvEstimate conv_seconds(const GpuSpec& spec, const OpShape& shape, const ConvParameters& params) {
  const Sizes s(shape);
  const ProductParameters& core = params.product;
  const bool matrix = shape.half && spec.half_flops_per_s > 0 && std::fmod(s.in, 8) == 0 &&
                      std::fmod(s.out, 8) == 0;
  const double rate = matrix ? spec.half_flops_per_s : spec.f32_flops_per_s;
  const double bandwidth = spec.bandwidth_bytes_per_s * core.stream;
  const double memory = params.traffic * s.bytes / bandwidth;
  const auto product = [&](const Product& p, double share, double memory_seconds) {
    return product_seconds(spec, p, core, rate * share, memory_seconds);
  };

  Product direct = implicit_product(s, shape.pass);
  direct.k += params.reduction_pad;
  ConvEstimate best{product(direct, implicit_share(s, shape.pass, params), memory), "implicit"};
  const auto take = [&best](double seconds, std::string_view algorithm) {
    if (seconds < best.seconds) best = {seconds, algorithm};
  };
  if (shape.pass == Pass::backward_data && !s.pointwise) {
    const double column_bytes =
        s.bytes + 2 * s.element_bytes * s.groups * s.in * s.taps * s.out_pixels;
    take(product({s.in * s.taps, s.out_pixels, s.out, s.groups}, params.columns_share, 0) +
             params.columns_traffic * column_bytes / bandwidth,
         "columns");
  }
  const auto transformed = [&](double q, double r) {
    const Winograd w = winograd(s, shape.pass, q, r);
    return product(w.product, params.winograd_large_share, 0) +
           params.transform_traffic * w.transform_bytes / bandwidth + 3 * core.split_launch;
  };
  const bool square = shape.filter_h == shape.filter_w && !s.strided;
  const bool small_tiles = shape.pass != Pass::backward_filter || spec.winograd_filter_gradient;
  if (square && shape.filter_h == 3 && small_tiles) {
    const Winograd w = winograd(s, shape.pass, 2, 3);
    take(product(w.product, params.winograd_share, memory), "winograd 2x2");
  }
  if (square && spec.winograd_large_tiles) {
    if (shape.filter_h == 3) take(transformed(4, 3), "winograd 4x4");
    if (shape.filter_h == 5) take(transformed(2, 5), "winograd 2x2 of 5x5");
  }
  best.seconds += params.launch_seconds;
  return best;
}

}  // namespace turnout::gpu_model
