#pragma once

#include <cmath>
#include <optional>
#include <string_view>

#include "core/portable.hpp"

namespace turnout {

/// Functions that can follow a product in the same kernel: the attribute `activation` of matmul and
/// conv, with `activation_alpha` and `activation_beta`. The unary ops of the same names use them
/// too.
enum class Activation {
  none,
  relu,
  sigmoid,
  tanh,
  gelu,
  gelu_tanh,
  silu,
  hard_sigmoid,
  hard_swish,
  leaky_relu,
  elu,
  clip,
};

inline std::optional<Activation> parse_activation(std::string_view name) {
  constexpr std::string_view kNames[] = {"none",       "relu",       "sigmoid", "tanh",
                                         "gelu",       "gelu_tanh",  "silu",    "hard_sigmoid",
                                         "hard_swish", "leaky_relu", "elu",     "clip"};
  for (int i = 0; i < 12; ++i) {
    if (kNames[i] == name) return static_cast<Activation>(i);
  }
  return std::nullopt;
}

/// alpha: slope of leaky_relu, scale of elu and hard_sigmoid, lower bound of clip.
/// beta: offset of hard_sigmoid, upper bound of clip.
template <typename T>
TURNOUT_HD inline T activate(Activation activation, T x, T alpha, T beta) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < T(0) ? T(0) : x;  // keeps NaN
    case Activation::sigmoid:
      return x >= T(0) ? T(1) / (T(1) + std::exp(-x)) : std::exp(x) / (T(1) + std::exp(x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::gelu:
      return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752)));
    case Activation::gelu_tanh: {
      const T inner = T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + std::tanh(inner));
    }
    case Activation::silu:
      return x / (T(1) + std::exp(-x));
    case Activation::hard_sigmoid: {
      const T y = alpha * x + beta;
      return y < T(0) ? T(0) : (y > T(1) ? T(1) : y);
    }
    case Activation::hard_swish: {
      const T y = x / T(6) + T(0.5);
      return x * (y < T(0) ? T(0) : (y > T(1) ? T(1) : y));
    }
    case Activation::leaky_relu:
      return x < T(0) ? alpha * x : x;
    case Activation::elu:
      return x < T(0) ? alpha * (std::exp(x) - T(1)) : x;
    case Activation::clip:
      return x < alpha ? alpha : (x > beta ? beta : x);
  }
  return x;
}

}  // namespace turnout
