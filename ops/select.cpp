// Ops that choose between elements or change their type.
#include <cmath>

#include "ops/families.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

std::vector<TensorSpec> infer_where(const NodeInfo& info) {
  require_dtype(info, 0, DType::boolean);
  require_dtype(info, 2, info.input(1).dtype);
  const Shape values = broadcast_inputs(info, info.input(1).shape, info.input(2).shape);
  return {{info.input(1).dtype, broadcast_inputs(info, info.input(0).shape, values)}};
}

void reference_where(const NodeInfo&, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  std::array<Index, 3> steps;
  for (std::size_t i = 0; i < 3; ++i) steps[i] = broadcast_steps(inputs[i]->shape(), shape);
  const bool* condition = inputs[0]->data<const bool>();
  for_each_index(shape, [&](const Index& index, std::int64_t i) {
    const std::size_t chosen = condition[offset_of(index, steps[0])] ? 1 : 2;
    copy_element(outputs[0], i, *inputs[chosen], offset_of(index, steps[chosen]));
  });
}

std::vector<TensorSpec> infer_clip(const NodeInfo& info) {
  require_types(info, 0, kNumericTypes);
  for (int i = 1; i < 3; ++i) {
    if (!info.has_input(i)) continue;
    require_dtype(info, i, info.input(0).dtype);
    if (info.input(i).elements() != 1) {
      info.fail(fmt::format("bound {} is not a scalar", to_string(info.input(i))));
    }
  }
  return {info.input(0)};
}

// min(max(x, low), high): the upper bound wins, NaN stays.
void reference_clip(const NodeInfo&, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  const auto bound = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  dispatch(inputs[0]->dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto x = inputs[0]->values<const T>();
    const auto y = outputs[0].values<T>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = x[i];
      if (const Tensor* low = bound(1); low && y[i] < *low->data<const T>()) {
        y[i] = *low->data<const T>();
      }
      if (const Tensor* high = bound(2); high && y[i] > *high->data<const T>()) {
        y[i] = *high->data<const T>();
      }
    }
  });
}

std::vector<TensorSpec> infer_cast(const NodeInfo& info) {
  require_types(info, 0, kAllTypes);
  return {{dtype_attr(info, "to"), info.input(0).shape}};
}

void reference_cast(const NodeInfo&, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  dispatch(inputs[0]->dtype(), [&]<typename From>(std::type_identity<From>) {
    dispatch(outputs[0].dtype(), [&]<typename To>(std::type_identity<To>) {
      const auto x = inputs[0]->values<const From>();
      const auto y = outputs[0].values<To>();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = convert<To>(x[i]);
    });
  });
}

// ONNX lets depth be of a floating type.
std::int64_t one_hot_depth(const NodeInfo& info) {
  const Tensor* depth = info.constant(1);
  if (depth == nullptr) info.constant_integers(1);  // fails
  if (depth->elements() != 1) info.fail(fmt::format("depth is {}", to_string(depth->spec())));
  const auto value = convert<std::int64_t>(to_double(*depth)[0]);
  if (value < 0) info.fail(fmt::format("depth {} is negative", value));
  return value;
}

int one_hot_axis(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank() + 1);
}

std::vector<TensorSpec> infer_one_hot(const NodeInfo& info) {
  require_types(info, 0, kNumericTypes);
  require_types(info, 1, kNumericTypes);
  require_shape(info, 2, {2}, "the values for off and on");
  const Shape& indices = info.input(0).shape;
  std::vector<std::int64_t> dims(indices.begin(), indices.end());
  dims.insert(dims.begin() + one_hot_axis(info), one_hot_depth(info));
  return {{info.input(2).dtype, checked_shape(info, dims)}};
}

// Indices outside [-depth, depth) are off everywhere.
void reference_one_hot(const NodeInfo& info, std::span<const Tensor* const> inputs,
                       std::span<Tensor> outputs) {
  const auto axis = static_cast<std::size_t>(one_hot_axis(info));
  const Shape& shape = outputs[0].shape();
  const std::int64_t depth = shape[static_cast<int>(axis)];
  const std::int64_t inner = shape.elements(static_cast<int>(axis) + 1, shape.rank());
  dispatch(inputs[0]->dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* indices = inputs[0]->data<const T>();
    for_each_index(shape, [&](const Index& index, std::int64_t i) {
      const auto wanted = convert<std::int64_t>(indices[i / (inner * depth) * inner + i % inner]);
      const bool on = index[axis] == (wanted < 0 ? wanted + depth : wanted);
      copy_element(outputs[0], i, *inputs[2], on ? 1 : 0);
    });
  });
}

OpDef where_op() {
  OpDef def;
  def.name = "where";
  def.doc = "Elements of input 1 where the condition (input 0) is true, of input 2 elsewhere.";
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer_where;
  def.reference = reference_where;
  def.tolerance = exact_tolerance;
  def.elementwise = true;
  return def;
}

OpDef clip_op() {
  OpDef def;
  def.name = "clip";
  def.doc = "min(max(x, low), high) with optional scalars low and high.";
  def.max_inputs = 3;
  def.infer = infer_clip;
  def.reference = reference_clip;
  def.tolerance = exact_tolerance;
  def.elementwise = true;
  return def;
}

OpDef cast_op() {
  OpDef def;
  def.name = "cast";
  def.doc =
      "x as another type. Integers wrap, floating values that don't fit an integer become its "
      "limit, NaN becomes 0; anything but 0 is true.";
  def.attrs = {required_attr("to", AttrType::text, "Name of the type: f32, i64, bool, ...")};
  def.infer = infer_cast;
  def.reference = reference_cast;
  def.tolerance = exact_tolerance;
  def.elementwise = true;
  return def;
}

OpDef one_hot_op() {
  OpDef def;
  def.name = "one_hot";
  def.doc =
      "A new dimension of `depth` (input 1) in which the element at the index (input 0) is on and "
      "the others off; input 2 holds the values [off, on].";
  def.min_inputs = def.max_inputs = 3;
  def.attrs = {attr("axis", std::int64_t{-1}, "Where the new dimension goes.")};
  def.infer = infer_one_hot;
  def.reference = reference_one_hot;
  def.tolerance = exact_tolerance;
  def.gradient = {Gradient::Kind::none, "indices have no gradient"};
  def.shape_inputs = {1};
  return def;
}

}  // namespace

void register_select_ops(OpRegistry& ops) {
  ops.add(where_op());
  ops.add(clip_op());
  ops.add(cast_op());
  ops.add(one_hot_op());
}

}  // namespace turnout
