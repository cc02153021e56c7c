#include "ops/all_ops.hpp"

#include "ops/families.hpp"

namespace turnout {

const OpRegistry& all_ops() {
  static const OpRegistry registry = [] {
    OpRegistry ops;
    register_unary_ops(ops);
    register_binary_ops(ops);
    register_select_ops(ops);
    register_reduce_ops(ops);
    register_shape_ops(ops);
    register_movement_ops(ops);
    register_gather_ops(ops);
    register_matmul_ops(ops);
    register_conv_ops(ops);
    register_pool_ops(ops);
    register_norm_ops(ops);
    register_softmax_ops(ops);
    return ops;
  }();
  return registry;
}

}  // namespace turnout
