// Ops that only move elements: transpose, concat, split, tile.
#include "ops/movement.hpp"

#include <algorithm>

#include "ops/families.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

using Dims = std::vector<std::int64_t>;

std::vector<TensorSpec> infer_transpose(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  Dims dims;
  for (int axis : transpose_order(info)) dims.push_back(shape[axis]);
  return {{info.input(0).dtype, Shape(dims)}};
}

void reference_transpose(const NodeInfo& info, std::span<const Tensor* const> inputs,
                         std::span<Tensor> outputs) {
  const Index strides = inputs[0]->shape().strides();
  Index steps{};
  std::size_t axis = 0;
  for (int from : transpose_order(info)) steps[axis++] = strides[static_cast<std::size_t>(from)];
  gather_elements_from(outputs[0], *inputs[0],
                       [&](const Index& index) { return offset_of(index, steps); });
}

int axis_attr(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
}

std::vector<TensorSpec> infer_concat(const NodeInfo& info) {
  TensorSpec spec = info.input(0);
  const int axis = axis_attr(info);
  std::int64_t total = 0;
  for (int i = 0; i < info.input_count(); ++i) {
    if (!info.has_input(i)) info.fail(fmt::format("input {} is missing", i));
    require_dtype(info, i, spec.dtype);
    Shape shape = info.input(i).shape;
    if (shape.rank() == spec.shape.rank()) {
      total = checked_add(info, total, shape[axis]);
      shape.set(axis, spec.shape[axis]);
    }
    if (!(shape == spec.shape)) {
      info.fail(fmt::format("{} and {} differ beyond axis {}", to_string(spec),
                            to_string(info.input(i)), axis));
    }
  }
  Dims dims(spec.shape.begin(), spec.shape.end());
  dims[static_cast<std::size_t>(axis)] = total;
  return {{spec.dtype, checked_shape(info, dims)}};
}

// Copies between a tensor and a part of it along an axis that starts at `start`.
void copy_part(const Tensor& whole, const Tensor& part, int axis, std::int64_t start, bool split) {
  const Index strides = whole.shape().strides();
  const std::int64_t first = start * strides[static_cast<std::size_t>(axis)];
  for_each_index(part.shape(), [&](const Index& index, std::int64_t i) {
    const std::int64_t place = first + offset_of(index, strides);
    if (split) {
      copy_element(part, i, whole, place);
    } else {
      copy_element(whole, place, part, i);
    }
  });
}

void reference_concat(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const int axis = axis_attr(info);
  std::int64_t start = 0;
  for (const Tensor* input : inputs) {
    copy_part(outputs[0], *input, axis, start, false);
    start += input->shape()[axis];
  }
}

// Sizes of the parts. ONNX: equal parts, but for a smaller last one.
Dims split_sizes(const NodeInfo& info, std::int64_t size) {
  if (info.has_input(1)) {
    if (info.attrs->has("num_outputs")) info.fail("both split and num_outputs are given");
    const Dims sizes = list_operand(info, 1);
    std::int64_t total = 0;
    for (std::int64_t part : sizes) {
      if (part < 0) info.fail(fmt::format("a part of {}", part));
      total = checked_add(info, total, part);
    }
    if (total != size) info.fail(fmt::format("parts add up to {}, not {}", total, size));
    return sizes;
  }
  if (!info.attrs->has("num_outputs")) info.fail("neither split nor num_outputs is given");
  const std::int64_t count = info.attrs->integer("num_outputs");
  if (count < 1 || count > OpDef::kVariadic) info.fail(fmt::format("num_outputs {}", count));
  const std::int64_t part = size / count + (size % count != 0);
  Dims sizes;
  for (std::int64_t i = 0, left = size; i < count; ++i) {
    sizes.push_back(std::min(part, left));
    left -= sizes.back();
  }
  return sizes;
}

std::vector<TensorSpec> infer_split(const NodeInfo& info) {
  const int axis = axis_attr(info);
  std::vector<TensorSpec> specs;
  for (std::int64_t size : split_sizes(info, info.input(0).shape[axis])) {
    specs.push_back(info.input(0));
    specs.back().shape.set(axis, size);
  }
  return specs;
}

void reference_split(const NodeInfo& info, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const int axis = axis_attr(info);
  std::int64_t start = 0;
  for (const Tensor& output : outputs) {
    copy_part(*inputs[0], output, axis, start, true);
    start += output.shape()[axis];
  }
}

std::vector<TensorSpec> infer_tile(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const Dims repeats = list_operand(info, 1);
  if (static_cast<int>(repeats.size()) != shape.rank()) {
    info.fail(fmt::format("{} repeats for {}", repeats.size(), to_string(info.input(0))));
  }
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    dims.push_back(checked_multiply(info, shape[axis], repeats[static_cast<std::size_t>(axis)]));
    if (repeats[static_cast<std::size_t>(axis)] < 0) info.fail("a repeat is negative");
  }
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

void reference_tile(const NodeInfo&, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const Index strides = shape.strides();
  gather_elements_from(outputs[0], *inputs[0], [&](const Index& index) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      offset += index[at] % shape[axis] * strides[at];
    }
    return offset;
  });
}

OpDef movement_op(std::string name, std::string doc, OpDef::Infer infer,
                  OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.infer = infer;
  def.cost = movement_cost;
  def.reference = reference;
  def.tolerance = exact_tolerance;
  return def;
}

}  // namespace

std::vector<int> transpose_order(const NodeInfo& info) {
  const int rank = info.input(0).shape.rank();
  std::vector<int> order;
  if (!info.attrs->has("perm")) {
    for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
    return order;
  }
  order = checked_axes(info, info.attrs->integers("perm"), rank);
  if (static_cast<int>(order.size()) != rank) {
    info.fail(fmt::format("perm [{}] for {}", fmt::join(order, ","), to_string(info.input(0))));
  }
  return order;
}

void register_movement_ops(OpRegistry& ops) {
  OpDef transpose = movement_op("transpose", "Output axis i is input axis perm[i].",
                                infer_transpose, reference_transpose);
  transpose.attrs = {optional_attr("perm", AttrType::integers, "Order; reversed without it.")};
  ops.add(std::move(transpose));

  OpDef concat = movement_op("concat", "Inputs one after the other along an axis.", infer_concat,
                             reference_concat);
  concat.max_inputs = OpDef::kVariadic;
  concat.attrs = {required_attr("axis", AttrType::integer, "Axis along which they are joined.")};
  ops.add(std::move(concat));

  OpDef split = movement_op("split",
                            "Parts along an axis: sizes in input 1, or num_outputs equal "
                            "ones, the last one smaller.",
                            infer_split, reference_split);
  split.max_inputs = 2;
  split.max_outputs = OpDef::kVariadic;
  split.attrs = {attr("axis", std::int64_t{0}, "Axis that is cut."),
                 optional_attr("num_outputs", AttrType::integer, "Number of parts.")};
  split.shape_inputs = {1};
  ops.add(std::move(split));

  OpDef tile = movement_op("tile", "The input repeated along each axis as often as input 1 says.",
                           infer_tile, reference_tile);
  tile.min_inputs = tile.max_inputs = 2;
  tile.shape_inputs = {1};
  ops.add(std::move(tile));

  register_slice_ops(ops);
  register_block_ops(ops);
  register_top_k_op(ops);
  register_resize_op(ops);
}

}  // namespace turnout
