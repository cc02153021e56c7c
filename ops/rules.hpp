#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "ops/activation.hpp"

namespace turnout {

// Pieces that the rules of products, pools and normalizations share.

/// Fails unless input i (where given) is f32, f64, f16 or bf16, and of input 0's dtype.
void require_floating(const NodeInfo& info, int i);
/// Fails unless input i, where given, has the shape `expected`; `meaning` explains it.
void require_shape(const NodeInfo& info, int i, const Shape& expected, std::string_view meaning);
/// normalize_axis with an error that names the node.
int require_axis(const NodeInfo& info, std::int64_t axis, int rank);

/// Bytes of all given inputs and of the outputs; no flops.
Cost touch_cost(const NodeInfo& info);

/// Elements as double; empty for a null tensor.
std::vector<double> wide_values(const Tensor* tensor);
/// Rounds to the tensor's dtype, floating or 8-bit.
void store_values(Tensor& tensor, std::span<const double> values);

/// The activation attributes of a fused product.
struct FusedActivation {
  Activation kind = Activation::none;
  double alpha = 0, beta = 0;
  double operator()(double x) const { return activate(kind, x, alpha, beta); }
};
FusedActivation fused_activation(const NodeInfo& info);
std::vector<AttrDef> activation_attrs();

}  // namespace turnout
