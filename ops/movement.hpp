#pragma once

#include <cstdint>
#include <vector>

#include "core/op.hpp"

namespace turnout {

// What the inputs and attributes of movement ops come to, checked: for references and kernels.

/// Source axis of each output axis of a transpose.
std::vector<int> transpose_order(const NodeInfo& info);

/// Output position o of a sliced axis is input position start + o * step, for o in [0, count).
struct SliceAxis {
  std::int64_t start = 0, step = 1, count = 0;
};
/// One per axis of the input.
std::vector<SliceAxis> slice_axes(const NodeInfo& info);

/// Elements put before (negative: taken away) and after each axis.
struct PadAmount {
  std::int64_t before = 0, after = 0;
};
std::vector<PadAmount> pad_amounts(const NodeInfo& info);
/// Input position that a position relative to the input stands for; -1: the constant value.
std::int64_t padded_source(std::int64_t position, std::int64_t size, std::string_view mode);

/// Parts of register_movement_ops.
void register_slice_ops(OpRegistry& ops);  // slice, pad, trilu, reverse_sequence
void register_block_ops(OpRegistry& ops);  // depth_to_space, space_to_depth
void register_top_k_op(OpRegistry& ops);
void register_resize_op(OpRegistry& ops);

}  // namespace turnout
