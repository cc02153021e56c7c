#pragma once

#include "core/gpu_model/parameters.hpp"
#include "core/gpu_model/shape.hpp"
#include "core/gpu_model/spec.hpp"

namespace turnout::gpu_model {

/// `count` independent products [m,k] x [k,n].
struct Product {
  double m = 0, n = 0, k = 0, count = 1;
};

/// Seconds of a product by tiles and waves, without the launch:
///
///   tiles = ceil(m / tm) ceil(n / tn) count s         s parts of a long reduction (split-K)
///   each  = ceil(tiles / units)                       tiles of the busiest unit
///   use   = min(1, each / resident (tm tn / 64^2)^q warps_per_tile)
///   tc    = max(each 2 tm tn ceil(k/s) / (rate/units e(tile) use), ceil(k/s) step / clock)
///   t     = (tc^p + tm^p)^(1/p) + [s > 1] (split (s+1) 4 m n count / bandwidth + extra launch)
///
/// e(tile) = x / (x + x0), x = tm tn / (tm + tn), as 1 for 128 x 128: a small tile loads more
/// bytes for each flop. `use`: a unit is busy only with enough warps. The best tile shape and split
/// of a list count. Example: m = n = 128, k = 4096 on 80 units is one tile of 128 x 128 unsplit,
/// but 64 parts of 512 when split and cut into 32 x 64 tiles.
/// `rate`: flop/s that the whole device reaches on large products; `memory_seconds`: of the
/// operands.
double product_seconds(const GpuSpec& spec, const Product& product, const ProductParameters& params,
                       double rate, double memory_seconds);

/// Seconds of one GEMM (OpShape with is_conv false): launch + product_seconds(), at
///   rate = peak e0 / (1 + (balance / b0)^3),   balance = f32 peak / bandwidth in flops a byte,
/// balance taken within 10 to 26, the range of the boards measured. Operands are read from memory
/// once, at `stream` of the sheet's bandwidth.
double gemm_seconds(const GpuSpec& spec, const OpShape& shape, const GemmParameters& params);

}  // namespace turnout::gpu_model
