#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "ops/functor_types.hpp"
#include "ops/rules.hpp"

namespace turnout {

// Pieces that the rules and references of elementwise, shape and movement ops share.

// Checks. Each fails with an error that names the node.
/// Input i, where given, has a type of the mask.
void require_types(const NodeInfo& info, int i, TypeMask types);
/// Input i, where given, has the type `dtype`.
void require_dtype(const NodeInfo& info, int i, DType dtype);
/// Input i is i32 or i64.
void require_index_type(const NodeInfo& info, int i);
/// Shape of these dimensions, if they are not negative and don't overflow.
Shape checked_shape(const NodeInfo& info, std::span<const std::int64_t> dims);
std::int64_t checked_add(const NodeInfo& info, std::int64_t a, std::int64_t b);
std::int64_t checked_multiply(const NodeInfo& info, std::int64_t a, std::int64_t b);
/// broadcast() with an error that names the node.
Shape broadcast_inputs(const NodeInfo& info, const Shape& a, const Shape& b);
/// dtype named by a text attribute.
DType dtype_attr(const NodeInfo& info, std::string_view attribute);

/// Axes, made non-negative; no axis twice.
std::vector<int> checked_axes(const NodeInfo& info, std::span<const std::int64_t> axes, int rank);
/// The one integer of shape input i.
std::int64_t scalar_operand(const NodeInfo& info, int i);
/// The integers of shape input i, which has one dimension.
std::vector<std::int64_t> list_operand(const NodeInfo& info, int i);

/// Flops per output element times elements, and bytes.
Cost elementwise_cost(const NodeInfo& info, double flops);
/// For ops that only move elements: bytes read are bytes written, no flops.
Cost movement_cost(const NodeInfo& info);
Tolerance exact_tolerance(DType dtype);

/// Position in a shape, counted up in row-major order.
using Index = std::array<std::int64_t, Shape::kMaxRank>;

/// Calls f(index, i) for every element of the shape, i counting up.
template <typename F>
void for_each_index(const Shape& shape, F&& f) {
  Index index{};
  const std::int64_t elements = shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    f(std::as_const(index), i);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      if (++index[at] < shape[axis]) break;
      index[at] = 0;
    }
  }
}

/// Strides with which a tensor of shape `operand` is read when broadcast to `shape`.
Index broadcast_steps(const Shape& operand, const Shape& shape);

inline std::int64_t offset_of(const Index& index, const Index& strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

/// Copies element `from` of a tensor to element `to` of another of the same dtype.
inline void copy_element(const Tensor& out, std::int64_t to, const Tensor& in, std::int64_t from) {
  const std::size_t size = size_of(in.dtype());
  std::memcpy(static_cast<std::byte*>(out.address()) + static_cast<std::size_t>(to) * size,
              static_cast<const std::byte*>(in.address()) + static_cast<std::size_t>(from) * size,
              size);
}

/// Fills `out` with the elements of `in` that source(index in out) names.
template <typename F>
void gather_elements_from(const Tensor& out, const Tensor& in, F&& source) {
  for_each_index(out.shape(), [&](const Index& index, std::int64_t i) {
    copy_element(out, i, in, source(index));
  });
}

/// Outputs take over the bytes of inputs: reference of view ops.
void reference_copy(const NodeInfo& info, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs);

}  // namespace turnout
