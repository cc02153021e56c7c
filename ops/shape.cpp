// Ops that tell shapes, and ops that give the same bytes another shape.
#include <algorithm>

#include "ops/families.hpp"
#include "ops/shape_fill.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

using Dims = std::vector<std::int64_t>;

Dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

// Bounds of the part of the dimensions that `shape` tells.
std::pair<int, int> told_range(const NodeInfo& info) {
  const std::int64_t rank = info.input(0).shape.rank();
  const auto clamped = [&](std::int64_t axis) {
    return static_cast<int>(std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank));
  };
  const int start = clamped(info.attrs->integer("start"));
  const int end =
      info.attrs->has("end") ? clamped(info.attrs->integer("end")) : info.input(0).shape.rank();
  return {start, std::max(start, end)};
}

std::vector<TensorSpec> infer_shape(const NodeInfo& info) {
  const auto [start, end] = told_range(info);
  return {{DType::i64, Shape{end - start}}};
}

void reference_shape(const NodeInfo& info, std::span<const Tensor* const>,
                     std::span<Tensor> outputs) {
  const auto [start, end] = told_range(info);
  const auto y = outputs[0].values<std::int64_t>();
  for (int axis = start; axis < end; ++axis) {
    y[static_cast<std::size_t>(axis - start)] = info.input(0).shape[axis];
  }
}

std::vector<TensorSpec> infer_size(const NodeInfo&) { return {{DType::i64, Shape{}}}; }

void reference_size(const NodeInfo& info, std::span<const Tensor* const>,
                    std::span<Tensor> outputs) {
  *outputs[0].data<std::int64_t>() = info.input(0).elements();
}

std::vector<TensorSpec> infer_reshape(const NodeInfo& info) {
  const TensorSpec& x = info.input(0);
  Dims dims = list_operand(info, 1);
  const auto refuse = [&](std::string_view why) {
    info.fail(fmt::format("{} can't become [{}]: {}", to_string(x),
                          fmt::join(info.constant_integers(1), ","), why));
  };
  // Dimensions that are copied cancel out, so that -1 has a size when they are 0.
  Dims given = dims, left(x.shape.begin(), x.shape.end());
  const bool zero_copies = info.attrs->integer("allowzero") == 0;
  for (std::size_t i = 0; i < dims.size() && zero_copies; ++i) {
    if (dims[i] != 0) continue;
    if (i >= left.size()) refuse("0 has no dimension to copy");
    dims[i] = left[i];
    given[i] = left[i] = 1;
  }
  const auto open = std::count(dims.begin(), dims.end(), -1);
  if (open > 1) refuse("more than one -1");
  std::replace(given.begin(), given.end(), std::int64_t{-1}, std::int64_t{1});
  const std::int64_t known = checked_shape(info, given).elements();
  const std::int64_t all = Shape(left).elements();
  if (open == 1) {
    if (known == 0 || all % known != 0) refuse("-1 has no whole size");
    *std::find(dims.begin(), dims.end(), -1) = all / known;
  }
  const TensorSpec spec{x.dtype, checked_shape(info, dims)};
  if (spec.elements() != x.elements()) refuse("another number of elements");
  return {spec};
}

std::vector<TensorSpec> infer_flatten(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const int rank = shape.rank();
  const std::int64_t given = info.attrs->integer("axis");
  if (given < -rank || given > rank) {
    info.fail(fmt::format("axis {} out of range for {}", given, to_string(info.input(0))));
  }
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  return {{info.input(0).dtype,
           checked_shape(info, Dims{shape.elements(0, axis), shape.elements(axis, rank)})}};
}

std::vector<TensorSpec> infer_squeeze(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  std::vector<int> axes;
  if (info.has_input(1)) {
    axes = checked_axes(info, list_operand(info, 1), shape.rank());
  } else {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) axes.push_back(axis);
    }
  }
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      dims.push_back(shape[axis]);
    } else if (shape[axis] != 1) {
      info.fail(fmt::format("dimension {} of {} is not 1", axis, to_string(info.input(0))));
    }
  }
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

std::vector<TensorSpec> infer_unsqueeze(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const Dims given = list_operand(info, 1);
  if (given.size() > Shape::kMaxRank) info.fail(fmt::format("{} axes", given.size()));
  const int rank = shape.rank() + static_cast<int>(given.size());
  std::vector<int> axes = checked_axes(info, given, rank);
  std::sort(axes.begin(), axes.end());
  Dims dims = dims_of(shape);
  for (int axis : axes) dims.insert(dims.begin() + axis, 1);
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

OpDef told_op(std::string name, std::string doc, OpDef::Infer infer, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.infer = infer;
  def.cost = [](const NodeInfo& info) {
    return Cost{0, 0, static_cast<double>(info.output(0).bytes())};
  };
  def.reference = reference;
  def.gradient = {Gradient::Kind::none, "shapes are integers"};
  def.spec_only = true;
  return def;
}

OpDef view_op(std::string name, std::string doc, OpDef::Infer infer) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.infer = infer;
  def.cost = [](const NodeInfo&) { return Cost{}; };  // no kernel runs
  def.reference = reference_copy;
  def.tolerance = exact_tolerance;
  def.view = true;
  return def;
}

}  // namespace

void register_shape_ops(OpRegistry& ops) {
  OpDef shape =
      told_op("shape", "Dimensions [start, end) as integers.", infer_shape, reference_shape);
  shape.attrs = {attr("start", std::int64_t{0}, "First dimension; negative from the end."),
                 optional_attr("end", AttrType::integer, "One after the last; all without it.")};
  ops.add(std::move(shape));
  ops.add(told_op("size", "Number of elements.", infer_size, reference_size));

  OpDef reshape = view_op("reshape",
                          "The elements under the shape in input 1; -1 takes what is "
                          "left, 0 copies the dimension unless allowzero.",
                          infer_reshape);
  reshape.min_inputs = reshape.max_inputs = 2;
  reshape.attrs = {attr("allowzero", std::int64_t{0}, "1: a 0 is a dimension of size 0.")};
  reshape.shape_inputs = {1};
  ops.add(std::move(reshape));

  OpDef flatten =
      view_op("flatten", "Two dimensions: those before the axis and the others.", infer_flatten);
  flatten.attrs = {attr("axis", std::int64_t{1}, "First dimension of the second group.")};
  ops.add(std::move(flatten));

  OpDef squeeze = view_op("squeeze", "Drops the dimensions of size 1 in input 1; all without it.",
                          infer_squeeze);
  squeeze.max_inputs = 2;
  squeeze.shape_inputs = {1};
  ops.add(std::move(squeeze));

  OpDef unsqueeze =
      view_op("unsqueeze", "Adds dimensions of size 1 at the axes in input 1.", infer_unsqueeze);
  unsqueeze.min_inputs = unsqueeze.max_inputs = 2;
  unsqueeze.shape_inputs = {1};
  ops.add(std::move(unsqueeze));

  register_fill_ops(ops);
}

}  // namespace turnout
