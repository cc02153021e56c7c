// Reductions over axes. The axes are input 1; without it all axes are reduced, or none with
// noop_with_empty_axes.
#include "ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/families.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

// A reduction is a function of the line of elements that make up one output: doubles for floating
// inputs, 64-bit integers for the others.
template <typename T>
using LineElement =
    std::conditional_t<is_floating_type<T>, double,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
template <typename W>
using Line = std::span<const W>;

// Integers add and multiply modulo 2^64.
template <typename W>
using Sum = std::conditional_t<std::is_integral_v<W>, std::uint64_t, double>;

template <typename W, typename F>
W total(Line<W> line, F&& term) {
  Sum<W> sum = 0;
  for (W x : line) sum += term(static_cast<Sum<W>>(x));
  return static_cast<W>(sum);
}

struct ReduceSum {
  static constexpr std::string_view name = "reduce_sum", doc = "Sum; 0 of nothing.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    return total(line, [](auto x) { return x; });
  }
};

struct ReduceSumSquare {
  static constexpr std::string_view name = "reduce_sum_square", doc = "Sum of squares.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    return total(line, [](auto x) { return x * x; });
  }
};

struct ReduceMean {
  static constexpr std::string_view name = "reduce_mean",
                                    doc = "Mean; integers truncate. NaN of nothing.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    if (std::is_integral_v<W> && line.empty()) return 0;
    return ReduceSum::reduce(line) / static_cast<W>(line.size());
  }
};

struct ReduceProd {
  static constexpr std::string_view name = "reduce_prod", doc = "Product; 1 of nothing.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    Sum<W> product = 1;
    for (W x : line) product *= static_cast<Sum<W>>(x);
    return static_cast<W>(product);
  }
};

struct ReduceL1 {
  static constexpr std::string_view name = "reduce_l1", doc = "Sum of absolute values.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    Sum<W> sum = 0;
    for (W x : line) sum += x < W(0) ? -static_cast<Sum<W>>(x) : static_cast<Sum<W>>(x);
    return static_cast<W>(sum);
  }
};

struct ReduceL2 {
  static constexpr std::string_view name = "reduce_l2", doc = "Square root of the sum of squares.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    return convert<W>(std::sqrt(static_cast<double>(ReduceSumSquare::reduce(line))));
  }
};

struct ReduceLogSum {
  static constexpr std::string_view name = "reduce_log_sum", doc = "Logarithm of the sum.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    return convert<W>(std::log(static_cast<double>(ReduceSum::reduce(line))));
  }
};

struct ReduceLogSumExp {
  static constexpr std::string_view name = "reduce_log_sum_exp",
                                    doc = "Logarithm of the sum of exponentials, no overflow.";
  static constexpr TypeMask types = kNumericTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    double top = -std::numeric_limits<double>::infinity();
    for (W x : line) top = std::max(top, static_cast<double>(x));
    if (std::isinf(top)) top = 0;  // all -inf, or +inf among them: nothing to shift
    double sum = 0;
    for (W x : line) sum += std::exp(static_cast<double>(x) - top);
    return convert<W>(std::log(sum) + top);
  }
};

// +infinity or -infinity, or the limit of an integer type.
template <typename T>
T extreme(bool highest) {
  if constexpr (is_floating_type<T>) {
    const double infinity = std::numeric_limits<double>::infinity();
    return convert<T>(highest ? infinity : -infinity);
  } else {
    return highest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  }
}

struct ReduceMax {
  static constexpr std::string_view name = "reduce_max",
                                    doc =
                                        "Largest element, NaN if there is one; the least value "
                                        "of the type of nothing.";
  static constexpr TypeMask types = kAllTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    W best = extreme<W>(false);
    for (W x : line) best = best != best || best > x ? best : x;
    return best;
  }
};

struct ReduceMin {
  static constexpr std::string_view name = "reduce_min",
                                    doc =
                                        "Smallest element, NaN if there is one; the largest "
                                        "value of the type of nothing.";
  static constexpr TypeMask types = kAllTypes;
  template <typename W>
  static W reduce(Line<W> line) {
    W best = extreme<W>(true);
    for (W x : line) best = best != best || best < x ? best : x;
    return best;
  }
};

template <typename Op>
constexpr bool kIsExtreme = std::is_same_v<Op, ReduceMax> || std::is_same_v<Op, ReduceMin>;

Shape kept_shape(const NodeInfo& info) {
  Shape kept = info.input(0).shape;
  for (int axis : reduced_axes(info)) kept.set(axis, 1);
  return kept;
}

template <typename Op>
std::vector<TensorSpec> infer_reduce(const NodeInfo& info) {
  require_types(info, 0, Op::types);
  const std::vector<int> axes = reduced_axes(info);
  const Shape kept = kept_shape(info);
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < kept.rank(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced || info.attrs->integer("keepdims") != 0) dims.push_back(kept[axis]);
  }
  return {{info.input(0).dtype, Shape(dims)}};
}

template <typename Op>
void reference_reduce(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const Shape kept = kept_shape(info);
  Shape reduced = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (kept[axis] == shape[axis]) reduced.set(axis, 1);
  }
  // A reduced dimension of size 1 is in neither; an empty one is in `reduced` alone.
  const Index strides = shape.strides();
  dispatch(inputs[0]->dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (takes<Op, T>) {
      using W = LineElement<T>;
      const T* x = inputs[0]->data<const T>();
      T* y = outputs[0].data<T>();
      std::vector<W> line;
      for_each_index(kept, [&](const Index& outer, std::int64_t i) {
        line.clear();
        for_each_index(reduced, [&](const Index& inner, std::int64_t) {
          line.push_back(convert<W>(x[offset_of(outer, strides) + offset_of(inner, strides)]));
        });
        y[i] = convert<T>(Op::template reduce<W>(line));
        if (kIsExtreme<Op> && line.empty()) y[i] = extreme<T>(std::is_same_v<Op, ReduceMin>);
      });
    }
  });
}

double reduce_terms(const NodeInfo& info) {
  const double outputs = static_cast<double>(std::max<std::int64_t>(info.output(0).elements(), 1));
  return static_cast<double>(info.input(0).elements()) / outputs;
}

template <typename Op>
Cost reduce_cost(const NodeInfo& info) {
  const bool exponential = std::is_same_v<Op, ReduceLogSumExp>;
  Cost cost;
  cost.bytes_read = static_cast<double>(info.input(0).bytes());
  cost.bytes_written = static_cast<double>(info.output(0).bytes());
  cost.flops = (exponential ? 12.0 : 1.0) * static_cast<double>(info.input(0).elements());
  return cost;
}

template <typename Op>
OpDef reduce_op() {
  OpDef def;
  def.name = Op::name;
  def.doc = std::string(Op::doc) + " Over the axes in input 1; all without it.";
  def.max_inputs = 2;
  def.attrs = {
      attr("keepdims", std::int64_t{1}, "1: reduced dimensions stay, with size 1."),
      attr("noop_with_empty_axes", std::int64_t{0}, "1: without axes nothing is reduced.")};
  def.infer = infer_reduce<Op>;
  def.cost = reduce_cost<Op>;
  def.reference = reference_reduce<Op>;
  if (kIsExtreme<Op>) {
    def.tolerance = exact_tolerance;
  } else {
    def.terms = reduce_terms;
  }
  def.shape_inputs = {1};
  return def;
}

}  // namespace

std::vector<int> reduced_axes(const NodeInfo& info) {
  const int rank = info.input(0).shape.rank();
  std::vector<std::int64_t> axes;
  if (info.has_input(1)) axes = list_operand(info, 1);
  if (axes.empty() && info.attrs->integer("noop_with_empty_axes") == 0) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return checked_axes(info, axes, rank);
}

void register_reduce_ops(OpRegistry& ops) {
  using Ops = TypeList<ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2,
                       ReduceLogSum, ReduceLogSumExp, ReduceSumSquare>;
  for_each_type(Ops{}, [&]<typename Op>(std::type_identity<Op>) { ops.add(reduce_op<Op>()); });
  register_scan_ops(ops);
}

}  // namespace turnout
