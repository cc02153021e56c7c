#include "backends/cpu/openblas/epilogue.hpp"

namespace turnout::openblas {
namespace {

template <typename T>
void add_bias(const EpilogueBlock<T>& block, std::int64_t row) {
  T* y = block.y + row * block.stride;
  const T* bias = block.bias + row * block.bias_row_step;
  if (block.bias_col_step == 0) {
    const T value = *bias;
    for (std::int64_t i = 0; i < block.cols; ++i) y[i] += value;
  } else {
    for (std::int64_t i = 0; i < block.cols; ++i) y[i] += bias[i];
  }
}

template <typename T, Activation kKind>
void run_rows(const FusedActivation& activation, const EpilogueBlock<T>& block) {
  const T alpha = static_cast<T>(activation.alpha);
  const T beta = static_cast<T>(activation.beta);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    T* y = block.y + row * block.stride;
    if (block.bias != nullptr) add_bias(block, row);
    if (block.residual != nullptr) {
      const T* residual = block.residual + row * block.stride;
      for (std::int64_t i = 0; i < block.cols; ++i) y[i] += residual[i];
    }
    if constexpr (kKind != Activation::none) {
      for (std::int64_t i = 0; i < block.cols; ++i) y[i] = activate(kKind, y[i], alpha, beta);
    }
  }
}

// One loop per function, so that the compiler can vectorize each.
template <typename T, Activation... kKinds>
void run_kind(const FusedActivation& activation, const EpilogueBlock<T>& block) {
  (void)((activation.kind == kKinds && (run_rows<T, kKinds>(activation, block), true)) || ...);
}

}  // namespace

template <typename T>
void run_epilogue(const FusedActivation& activation, const EpilogueBlock<T>& block) {
  using enum Activation;
  if (activation.kind == none && block.bias == nullptr && block.residual == nullptr) return;
  run_kind<T, none, relu, sigmoid, tanh, gelu, gelu_tanh, silu, hard_sigmoid, hard_swish,
           leaky_relu, elu, clip>(activation, block);
}

template void run_epilogue(const FusedActivation&, const EpilogueBlock<float>&);
template void run_epilogue(const FusedActivation&, const EpilogueBlock<double>&);

}  // namespace turnout::openblas
