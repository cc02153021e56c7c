#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/kokkos/fast_unary.hpp"
#include "backends/kokkos/host/gemm_tile.hpp"
#include "ops/activation.hpp"

// What follows a product in the same pass: y = activation(alpha * sum + bias + residual).
namespace turnout::kokkos {

/// activate() in a form that the compiler can make vector code of; float ones are approximations
/// within a few 1e-7 of the range.
template <typename A>
struct FastActivation {
  Activation kind;
  A alpha, beta;

  /// Applies it to `count` numbers.
  TURNOUT_HD void apply(A* x, int count) const {
    if constexpr (std::is_same_v<A, float>) {
      switch (kind) {
        case Activation::sigmoid:
          return each(x, count, FastSigmoid{});
        case Activation::silu:
          return each(x, count, FastSilu{});
        case Activation::tanh:
          return each(x, count, FastTanh{});
        case Activation::gelu:
          return each(x, count, [](A v) { return 0.5F * v * (1.0F + fast_erf(v * 0.70710678F)); });
        case Activation::gelu_tanh:
          return each(x, count, [](A v) {
            return 0.5F * v * (1.0F + fast_tanh(0.79788456F * (v + 0.044715F * v * v * v)));
          });
        case Activation::elu:
          return each(x, count, [this](A v) {
            return v < 0 ? alpha * (fast_exp(v < 0 ? v : 0.0F) - 1.0F) : v;
          });
        default:
          break;
      }
    }
    each(x, count, [this](A v) { return activate(kind, v, alpha, beta); });
  }

 private:
  template <typename F>
  TURNOUT_HD static void each(A* x, int count, const F& f) {
    for (int i = 0; i < count; ++i) x[i] = f(x[i]);
  }
};

/// Writes a tile of sums to y, a row-major matrix of T, as the last step of a product. While there
/// are blocks of k to come y holds partial sums instead; then T has to be A.
template <typename A, typename T>
struct Finish {
  T* y = nullptr;
  std::int64_t y_row = 0;
  const T* residual = nullptr;  ///< where y is, in a matrix of its own; null: none
  const T* bias = nullptr;      ///< null: none
  std::int64_t bias_row = 0, bias_col = 0;
  A alpha = 1;
  FastActivation<A> activation{Activation::none, 0, 0};

  using Vec = typename Tile<A>::Vec;

  /// sums: rows of kCols, for y[row0 + r][col0 + c]. Overwrites sums.
  void operator()(A* sums, std::int64_t row0, std::int64_t col0, int rows, int cols, bool first,
                  bool last) const {
    for (int r = 0; r < rows; ++r) {
      A* sum = sums + r * Tile<A>::kCols;
      const std::int64_t row = row0 + r;
      if constexpr (std::is_same_v<A, T>) {
        if (cols % Tile<A>::kLanes == 0 && bias_col <= 1) {
          vector_row(sum, row, col0, cols, first, last);
          continue;
        }
      }
      any_row(sum, row, col0, cols, first, last);
    }
  }

 private:
  static A wide(T value) { return static_cast<A>(value); }

  void vector_row(A* sum, std::int64_t row, std::int64_t col0, int cols, bool first,
                  bool last) const {
    constexpr int kStep = Tile<A>::kLanes;
    A* out = y + row * y_row + col0;
    const A row_bias = bias != nullptr && bias_col == 0 ? bias[row * bias_row] : A(0);
    for (int c = 0; c < cols; c += kStep) {
      Vec v = load_vec(sum + c);
      if (!first) v += load_vec<A>(out + c);
      if (last) {
        v = v * alpha + row_bias;
        if (bias_col == 1) v += load_vec<A>(bias + row * bias_row + col0 + c);
        if (residual != nullptr) v += load_vec<A>(residual + row * y_row + col0 + c);
        v = simple_activation(v);
        if (!is_simple()) {
          store_vec(sum + c, v);
          activation.apply(sum + c, kStep);
          v = load_vec(sum + c);
        }
      }
      store_vec<A>(out + c, v);
    }
  }

  bool is_simple() const {
    return activation.kind == Activation::none || activation.kind == Activation::relu ||
           activation.kind == Activation::clip;
  }
  Vec simple_activation(Vec v) const {
    if (activation.kind == Activation::relu) return v < A(0) ? Vec{} : v;  // keeps NaN
    if (activation.kind == Activation::clip) {
      const Vec low = Vec{} + activation.alpha;
      const Vec high = Vec{} + activation.beta;
      return v < low ? low : (v > high ? high : v);
    }
    return v;
  }

  void any_row(A* sum, std::int64_t row, std::int64_t col0, int cols, bool first, bool last) const {
    T* out = y + row * y_row + col0;
    if constexpr (std::is_same_v<A, T>) {
      for (int c = 0; c < cols && !first; ++c) sum[c] += out[c];
      if (!last) {
        for (int c = 0; c < cols; ++c) out[c] = sum[c];
        return;
      }
    }
    const T* line = bias == nullptr ? nullptr : bias + row * bias_row + col0 * bias_col;
    const T* other = residual == nullptr ? nullptr : residual + row * y_row + col0;
    for (int c = 0; c < cols; ++c) {
      sum[c] *= alpha;
      if (line != nullptr) sum[c] += wide(line[c * bias_col]);
      if (other != nullptr) sum[c] += wide(other[c]);
    }
    if (activation.kind != Activation::none) activation.apply(sum, cols);
    for (int c = 0; c < cols; ++c) out[c] = T(sum[c]);
  }
};

}  // namespace turnout::kokkos
