// Ops whose output is made from a shape, or from a few numbers.
#include "ops/shape_fill.hpp"

#include <cmath>

#include "ops/support.hpp"

namespace turnout {
namespace {

std::vector<TensorSpec> infer_expand(const NodeInfo& info) {
  const Shape wanted = checked_shape(info, list_operand(info, 1));
  return {{info.input(0).dtype, broadcast_inputs(info, info.input(0).shape, wanted)}};
}

void reference_expand(const NodeInfo&, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const Index steps = broadcast_steps(inputs[0]->shape(), outputs[0].shape());
  gather_elements_from(outputs[0], *inputs[0],
                       [&](const Index& index) { return offset_of(index, steps); });
}

std::vector<TensorSpec> infer_constant_of_shape(const NodeInfo& info) {
  return {{dtype_attr(info, "dtype"), checked_shape(info, list_operand(info, 0))}};
}

void reference_constant_of_shape(const NodeInfo& info, std::span<const Tensor* const>,
                                 std::span<Tensor> outputs) {
  dispatch(outputs[0].dtype(), [&]<typename T>(std::type_identity<T>) {
    const T value = convert<T>(info.attrs->real("value"));
    for (T& y : outputs[0].values<T>()) y = value;
  });
}

// Number of elements of range(start, limit, delta) over integers, without overflow.
std::int64_t integer_count(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = static_cast<std::uint64_t>(limit);
  const std::uint64_t distance = delta > 0 ? to - from : from - to;
  const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta)
                                       : std::uint64_t{0} - static_cast<std::uint64_t>(delta);
  const std::uint64_t count = (distance - 1) / step + 1;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count, std::uint64_t{1} << 62));
}

std::vector<TensorSpec> infer_range(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  require_types(info, 0, kNumericTypes);
  for (int i = 0; i < 3; ++i) {
    require_dtype(info, i, dtype);
    if (info.input(i).elements() != 1) {
      info.fail(fmt::format("input {} is {}, expected one number", i, to_string(info.input(i))));
    }
    if (info.constant(i) == nullptr) {
      info.fail(fmt::format("input {} has to be known once dimensions are bound", i));
    }
  }
  std::int64_t count = 0;
  if (is_floating(dtype)) {
    const double delta = to_double(*info.constant(2))[0];
    const double steps =
        (to_double(*info.constant(1))[0] - to_double(*info.constant(0))[0]) / delta;
    if (delta == 0 || !(steps < 0x1p62)) info.fail(fmt::format("{} elements", steps));
    count = steps > 0 ? static_cast<std::int64_t>(std::ceil(steps)) : 0;
  } else {
    const std::int64_t delta = to_int64(*info.constant(2))[0];
    if (delta == 0) info.fail("delta is 0");
    count = integer_count(to_int64(*info.constant(0))[0], to_int64(*info.constant(1))[0], delta);
  }
  return {{dtype, checked_shape(info, std::vector<std::int64_t>{count})}};
}

void reference_range(const NodeInfo&, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  dispatch(outputs[0].dtype(), [&]<typename T>(std::type_identity<T>) {
    using W = std::conditional_t<is_floating_type<T>, double, std::uint64_t>;
    const W start = convert<W>(*inputs[0]->data<const T>());
    const W delta = convert<W>(*inputs[2]->data<const T>());
    const auto y = outputs[0].values<T>();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = convert<T>(start + static_cast<W>(i) * delta);
  });
}

std::vector<TensorSpec> infer_eye_like(const NodeInfo& info) {
  TensorSpec spec = info.input(0);
  if (spec.shape.rank() != 2) info.fail(fmt::format("input {} is not a matrix", to_string(spec)));
  if (info.attrs->has("dtype")) spec.dtype = dtype_attr(info, "dtype");
  return {spec};
}

void reference_eye_like(const NodeInfo& info, std::span<const Tensor* const>,
                        std::span<Tensor> outputs) {
  const std::int64_t k = info.attrs->integer("k");
  dispatch(outputs[0].dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = outputs[0].data<T>();
    for_each_index(outputs[0].shape(), [&](const Index& index, std::int64_t i) {
      y[i] = convert<T>(index[1] - index[0] == k ? 1.0F : 0.0F);
    });
  });
}

Cost write_cost(const NodeInfo& info) {
  return {0, 0, static_cast<double>(info.output(0).bytes())};
}

}  // namespace

void register_fill_ops(OpRegistry& ops) {
  OpDef expand;
  expand.name = "expand";
  expand.doc = "x broadcast together with the shape in input 1.";
  expand.min_inputs = expand.max_inputs = 2;
  expand.infer = infer_expand;
  expand.reference = reference_expand;
  expand.tolerance = exact_tolerance;
  expand.shape_inputs = {1};
  ops.add(std::move(expand));

  OpDef constant;
  constant.name = "constant_of_shape";
  constant.doc = "A tensor of the shape in input 0, every element the same.";
  constant.attrs = {attr("value", 0.0, "The element."),
                    attr("dtype", std::string("f32"), "Its type.")};
  constant.infer = infer_constant_of_shape;
  constant.cost = write_cost;
  constant.reference = reference_constant_of_shape;
  constant.tolerance = exact_tolerance;
  constant.gradient = {Gradient::Kind::none, "nothing goes in but a shape"};
  constant.shape_inputs = {0};
  ops.add(std::move(constant));

  OpDef range;
  range.name = "range";
  range.doc = "start, start + delta, ... below (or, for a negative delta, above) limit.";
  range.min_inputs = range.max_inputs = 3;
  range.attrs = {attr("stash_type", std::int64_t{1}, "Taken from ONNX; sums are kept in double.")};
  range.infer = infer_range;
  range.cost = write_cost;
  range.reference = reference_range;
  range.gradient = {Gradient::Kind::none, "the length depends on the operands"};
  range.shape_inputs = {0, 1, 2};
  ops.add(std::move(range));

  OpDef eye;
  eye.name = "eye_like";
  eye.doc = "Ones on a diagonal of a matrix of the input's shape, zeros elsewhere.";
  eye.attrs = {optional_attr("dtype", AttrType::text, "Type of the output; the input's without."),
               attr("k", std::int64_t{0}, "Which diagonal: above 0 to the right.")};
  eye.infer = infer_eye_like;
  eye.cost = write_cost;
  eye.reference = reference_eye_like;
  eye.tolerance = exact_tolerance;
  eye.gradient = {Gradient::Kind::none, "nothing goes in but a shape"};
  eye.spec_only = true;
  ops.add(std::move(eye));
}

}  // namespace turnout
