#pragma once

#include "core/kernel.hpp"

namespace turnout::openblas {

/// Adds the entry of provider "openblas" for an op whose operands are all f32 or all f64.
/// `accepts` is asked after that check; prepare is given as one function per type.
struct Maker {
  Acceptance (*accepts)(const NodeInfo& info);
  std::unique_ptr<PreparedKernel> (*f32)(const PrepareContext& context);
  std::unique_ptr<PreparedKernel> (*f64)(const PrepareContext& context);
};
void add_kernel(KernelRegistry& registry, std::string op, Maker maker);

// One function per file of kernels.
void register_matmul(KernelRegistry& registry);
void register_conv(KernelRegistry& registry);

}  // namespace turnout::openblas
