#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ops/functors_unary.hpp"

// Functions of float without branches and calls, so that loops over them become vector code. They
// stay within a few units in the last place. Polynomials are Chebyshev fits of this project; their
// largest errors are given.
namespace turnout::kokkos {

/// exp(x) within 2 units in the last place, without branches; subnormal results included.
/// Splits x = n ln 2 + r with |r| <= ln 2 / 2; the polynomial is the Taylor series of exp to r^7,
/// whose rest is below 2^-27. 2^n is applied in two halves, as it may be out of range alone.
TURNOUT_HD inline float fast_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  x = x < -104.0F ? -104.0F : (x > 89.0F ? 89.0F : x);  // keeps NaN
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const std::int32_t half = power >> 1;
  const auto scale = [](std::int32_t e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
  };
  return p * scale(half) * scale(power - half);
}
TURNOUT_HD inline double fast_exp(double x) { return std::exp(x); }

/// Below 1: x P(x^2), 1.3e-9. Above: 1 - exp(-x^2) Q(1 / (1 + x / 2)), 5.6e-9.
TURNOUT_HD inline float fast_erf(float x) {
  const float magnitude = std::abs(x);
  const float bounded = magnitude > 4.3F ? 4.3F : magnitude;
  const float z = x * x;
  float small = 7.8824975e-05F;
  small = small * z - 0.00080188550F;
  small = small * z + 0.0051893122F;
  small = small * z - 0.026854329F;
  small = small * z + 0.11283597F;
  small = small * z - 0.37612626F;
  small = small * z + 1.1283791F;
  small *= x;
  const float t = 1.0F / (1.0F + 0.5F * bounded);
  float large = -0.057317618F;
  large = large * t - 0.045068841F;
  large = large * t + 0.38749725F;
  large = large * t + 0.11269001F;
  large = large * t + 0.32642141F;
  large = large * t + 0.27451569F;
  large = large * t + 0.00053165044F;
  large = std::copysign(1.0F - fast_exp(-bounded * bounded) * large, x);
  return magnitude > 1.0F ? large : small;  // NaN takes `small`
}

/// Below 0.625: x + x^3 P(x^2), 1.6e-8. Above: 1 - 2 / (exp(2 x) + 1).
TURNOUT_HD inline float fast_tanh(float x) {
  const float magnitude = std::abs(x);
  const float z = x * x;
  float small = -0.0061049493F;
  small = small * z + 0.021003643F;
  small = small * z - 0.053852499F;
  small = small * z + 0.13332783F;
  small = small * z - 0.33333328F;
  small = small * z * x + x;
  const float large = std::copysign(1.0F - 2.0F / (fast_exp(2.0F * magnitude) + 1.0F), x);
  return magnitude > 0.625F ? large : small;
}

TURNOUT_HD inline float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

struct FastExp {
  TURNOUT_HD float operator()(float x) const { return fast_exp(x); }
};
struct FastErf {
  TURNOUT_HD float operator()(float x) const { return fast_erf(x); }
};
struct FastTanh {
  TURNOUT_HD float operator()(float x) const { return fast_tanh(x); }
};
struct FastSigmoid {
  TURNOUT_HD float operator()(float x) const { return fast_sigmoid(x); }
};
struct FastSilu {
  TURNOUT_HD float operator()(float x) const { return x / (1.0F + fast_exp(-x)); }
};
struct FastSwish {
  float alpha;
  explicit FastSwish(const Swish& op) : alpha(static_cast<float>(op.alpha)) {}
  FastSwish() = default;
  TURNOUT_HD float operator()(float x) const { return x / (1.0F + fast_exp(-alpha * x)); }
};
struct FastGelu {
  TURNOUT_HD float operator()(float x) const {
    return 0.5F * x * (1.0F + fast_erf(x * 0.70710678F));
  }
};
struct FastGeluTanh {
  TURNOUT_HD float operator()(float x) const {
    return 0.5F * x * (1.0F + fast_tanh(0.79788456F * (x + 0.044715F * x * x * x)));
  }
};

/// The functor to run for Op on elements of W, made from an Op.
template <typename Op, typename W>
struct Fast {
  using type = Op;
};
// clang-format off
template <> struct Fast<Exp, float> { using type = FastExp; };
template <> struct Fast<Erf, float> { using type = FastErf; };
template <> struct Fast<Tanh, float> { using type = FastTanh; };
template <> struct Fast<Sigmoid, float> { using type = FastSigmoid; };
template <> struct Fast<Silu, float> { using type = FastSilu; };
template <> struct Fast<Swish, float> { using type = FastSwish; };
template <> struct Fast<Gelu, float> { using type = FastGelu; };
// clang-format on
template <typename Op, typename W>
using FastOp = typename Fast<Op, W>::type;

template <typename Op, typename W>
FastOp<Op, W> fast_op(const Op& op) {
  if constexpr (std::is_constructible_v<FastOp<Op, W>, const Op&>) {
    return FastOp<Op, W>(op);
  } else {
    return {};
  }
}

}  // namespace turnout::kokkos
