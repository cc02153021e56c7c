#pragma once

#include "core/op.hpp"

namespace turnout {

// One function per file of ops/; all_ops.cpp calls them.
void register_unary_ops(OpRegistry& ops);   // abs ... tanh, activations, identity, casts of sign
void register_binary_ops(OpRegistry& ops);  // arithmetic, comparison, logic, bits, max, min, prelu
void register_select_ops(OpRegistry& ops);  // where, clip, cast, one_hot
void register_reduce_ops(OpRegistry& ops);  // reduce_*, arg_max, arg_min, cum_sum
void register_shape_ops(OpRegistry& ops);   // shape, size, reshape, squeeze, expand, range ...
void register_movement_ops(OpRegistry& ops);  // transpose, concat, split, slice, pad, tile ...
void register_gather_ops(OpRegistry& ops);    // gather*, scatter*
void register_matmul_ops(OpRegistry& ops);    // matmul, gemm
void register_conv_ops(OpRegistry& ops);      // conv, conv_transpose
void register_pool_ops(OpRegistry& ops);      // pools, global pools
void register_norm_ops(OpRegistry& ops);  // batch, layer, instance, group, rms normalization, lrn
void register_softmax_ops(OpRegistry& ops);  // softmax, log_softmax, hardmax

}  // namespace turnout
