#pragma once

#include <cstdint>

#include "ops/rules.hpp"

namespace turnout::openblas {

/// What follows a product, done to a block of it while the block is still in the cache:
/// y = activation(y + bias + residual). Steps are in elements.
template <typename T>
struct EpilogueBlock {
  T* y = nullptr;
  std::int64_t rows = 0, cols = 0, stride = 0;  ///< stride: from row to row of y and residual
  const T* bias = nullptr;                      ///< null: none
  std::int64_t bias_row_step = 0, bias_col_step = 0;
  const T* residual = nullptr;  ///< null: none
};

template <typename T>
void run_epilogue(const FusedActivation& activation, const EpilogueBlock<T>& block);

}  // namespace turnout::openblas
