// Ops that walk along one axis: the place of the extreme element, and running sums and products.
#include <cmath>

#include "ops/families.hpp"
#include "ops/reduce.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

// Lines along an axis: element `i` of line (outer, inner) lies at (outer * length + i) * inner_size
// + inner.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
  Lines(const Shape& shape, int axis)
      : outer(shape.elements(0, axis)),
        length(shape[axis]),
        inner(shape.elements(axis + 1, shape.rank())) {}
  std::int64_t first(std::int64_t line) const {
    return line / inner * inner * length + line % inner;
  }
  std::int64_t count() const { return outer * inner; }
};

std::vector<TensorSpec> infer_arg(const NodeInfo& info) {
  require_types(info, 0, kNumericTypes);
  const Shape& shape = info.input(0).shape;
  const int axis = require_axis(info, info.attrs->integer("axis"), shape.rank());
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  if (info.attrs->integer("keepdims") != 0) {
    dims[static_cast<std::size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  const TensorSpec spec{DType::i64, checked_shape(info, dims)};
  if (shape[axis] == 0 && spec.elements() > 0) {
    info.fail(fmt::format("axis {} of {} has no elements", axis, to_string(info.input(0))));
  }
  return {spec};
}

// NaN beats everything, as in numpy.
template <typename T>
bool beats(T a, T b, bool largest) {
  if (a != a || b != b) return a != a && b == b;
  return largest ? a > b : a < b;
}

template <bool kLargest>
void reference_arg(const NodeInfo& info, std::span<const Tensor* const> inputs,
                   std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const Lines lines(shape, require_axis(info, info.attrs->integer("axis"), shape.rank()));
  const bool last = info.attrs->integer("select_last_index") != 0;
  std::int64_t* y = outputs[0].data<std::int64_t>();
  dispatch(inputs[0]->dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* x = inputs[0]->data<const T>();
    for (std::int64_t line = 0; line < lines.count(); ++line) {
      std::int64_t best = 0;
      const T* row = x + lines.first(line);
      for (std::int64_t i = 1; i < lines.length; ++i) {
        const auto value = convert<WideType<T>>(row[i * lines.inner]);
        const auto top = convert<WideType<T>>(row[best * lines.inner]);
        if (last ? !beats(top, value, kLargest) : beats(value, top, kLargest)) best = i;
      }
      y[line] = best;
    }
  });
}

int scan_axis(const NodeInfo& info) {
  return require_axis(info, scalar_operand(info, 1), info.input(0).shape.rank());
}

std::vector<TensorSpec> infer_scan(const NodeInfo& info) {
  require_types(info, 0, kNumericTypes);
  require_index_type(info, 1);
  scan_axis(info);
  return {info.input(0)};
}

template <bool kProduct>
void reference_scan(const NodeInfo& info, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  const Lines lines(inputs[0]->shape(), scan_axis(info));
  const bool exclusive = info.attrs->integer("exclusive") != 0;
  const bool reverse = info.attrs->integer("reverse") != 0;
  if (inputs[0]->elements() == 0) return;  // there may be many lines of nothing
  dispatch(inputs[0]->dtype(), [&]<typename T>(std::type_identity<T>) {
    using W = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
    const T* x = inputs[0]->data<const T>();
    T* y = outputs[0].data<T>();
    for (std::int64_t line = 0; line < lines.count(); ++line) {
      W total = kProduct ? 1 : 0;
      for (std::int64_t i = 0; i < lines.length; ++i) {
        const std::int64_t place = reverse ? lines.length - 1 - i : i;
        const std::int64_t at = lines.first(line) + place * lines.inner;
        const W before = total;
        total = kProduct ? total * convert<W>(x[at]) : total + convert<W>(x[at]);
        y[at] = convert<T>(exclusive ? before : total);
      }
    }
  });
}

double scan_terms(const NodeInfo& info) {
  return static_cast<double>(info.input(0).shape[scan_axis(info)]);
}

OpDef arg_op(std::string name, std::string doc, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.attrs = {attr("axis", std::int64_t{0}, "Dimension the lines run along."),
               attr("keepdims", std::int64_t{1}, "1: the dimension stays, with size 1."),
               attr("select_last_index", std::int64_t{0}, "1: of equal elements take the last.")};
  def.infer = infer_arg;
  def.cost = [](const NodeInfo& info) {
    Cost cost = touch_cost(info);
    cost.flops = static_cast<double>(info.input(0).elements());
    return cost;
  };
  def.reference = reference;
  def.tolerance = exact_tolerance;
  def.gradient = {Gradient::Kind::none, "indices have no gradient"};
  return def;
}

OpDef scan_op(std::string name, std::string doc, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.min_inputs = def.max_inputs = 2;
  def.attrs = {attr("exclusive", std::int64_t{0}, "1: an element itself doesn't count."),
               attr("reverse", std::int64_t{0}, "1: from the end.")};
  def.infer = infer_scan;
  def.cost = [](const NodeInfo& info) { return elementwise_cost(info, 1); };
  def.reference = reference;
  def.terms = scan_terms;
  def.shape_inputs = {1};
  return def;
}

}  // namespace

void register_scan_ops(OpRegistry& ops) {
  ops.add(arg_op("arg_max", "Index of the largest element along an axis; NaN is the largest.",
                 reference_arg<true>));
  ops.add(arg_op("arg_min", "Index of the smallest element along an axis; NaN is the smallest.",
                 reference_arg<false>));
  ops.add(scan_op("cum_sum", "Running sum along the axis in input 1.", reference_scan<false>));
  ops.add(scan_op("cum_prod", "Running product along the axis in input 1.", reference_scan<true>));
}

}  // namespace turnout
