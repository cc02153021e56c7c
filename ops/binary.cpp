// Ops of two operands that are broadcast to each other, from the functors of functors_binary.hpp.
#include "ops/families.hpp"
#include "ops/functors.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

template <typename Op>
void check_attrs(const NodeInfo& info) {
  if constexpr (std::is_same_v<Op, Mod>) {
    if (info.attrs->integer("fmod") == 0 && is_floating(info.input(0).dtype)) {
      info.fail(fmt::format("{} needs fmod=1", to_string(info.input(0).dtype)));
    }
  } else if constexpr (std::is_same_v<Op, BitShift>) {
    const std::string& direction = info.attrs->text("direction");
    if (direction != "LEFT" && direction != "RIGHT") {
      info.fail(fmt::format("direction '{}' is neither LEFT nor RIGHT", direction));
    }
  }
}

template <typename Op>
std::vector<TensorSpec> infer_binary(const NodeInfo& info) {
  require_types(info, 0, Op::types);
  require_types(info, 1, Op::types);
  const TensorSpec& a = info.input(0);
  const TensorSpec& b = info.input(1);
  if (a.dtype != b.dtype && !std::is_same_v<Op, Pow>) {
    info.fail(fmt::format("operands {} and {} differ in type", to_string(a), to_string(b)));
  }
  check_attrs<Op>(info);
  const Shape shape = broadcast_inputs(info, a.shape, b.shape);
  if (std::is_same_v<Op, PRelu> && !(shape == a.shape)) {
    info.fail(fmt::format("slope {} can't be broadcast to {}", to_string(b), to_string(a)));
  }
  return {{is_binary_predicate<Op> ? DType::boolean : a.dtype, shape}};
}

// y[i] = op(a[.], b[.]) with both read as their wide types.
template <typename Op, typename A, typename B>
void apply(const Op& op, const Tensor& a, const Tensor& b, Tensor& y) {
  using Out = std::conditional_t<is_binary_predicate<Op>, bool, A>;
  const Index a_steps = broadcast_steps(a.shape(), y.shape());
  const Index b_steps = broadcast_steps(b.shape(), y.shape());
  const A* a_data = a.data<const A>();
  const B* b_data = b.data<const B>();
  Out* out = y.data<Out>();
  for_each_index(y.shape(), [&](const Index& index, std::int64_t i) {
    const auto x0 = convert<WideType<A>>(a_data[offset_of(index, a_steps)]);
    const auto x1 = convert<WideType<B>>(b_data[offset_of(index, b_steps)]);
    out[i] = convert<Out>(op(x0, x1));
  });
}

template <typename Op>
void reference_binary(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const Op op = Op::make(*info.attrs);
  const Tensor& a = *inputs[0];
  const Tensor& b = *inputs[1];
  dispatch(a.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (takes<Op, T> && std::is_same_v<Op, Pow>) {
      dispatch(b.dtype(), [&]<typename U>(std::type_identity<U>) {
        if constexpr (takes<Op, U>) apply<Op, T, U>(op, a, b, outputs[0]);
      });
    } else if constexpr (takes<Op, T>) {
      apply<Op, T, T>(op, a, b, outputs[0]);
    }
  });
}

template <typename Op>
Cost binary_cost(const NodeInfo& info) {
  return elementwise_cost(info, Op::flops);
}

template <typename Op>
OpDef binary_op() {
  OpDef def;
  def.name = Op::name;
  def.doc = Op::doc;
  def.min_inputs = def.max_inputs = 2;
  def.attrs = Op::attrs();
  def.infer = infer_binary<Op>;
  def.cost = binary_cost<Op>;
  def.reference = reference_binary<Op>;
  if (Op::exact) def.tolerance = exact_tolerance;
  if (is_binary_predicate<Op> || (Op::types & kFloatingTypes) == 0) {
    def.gradient = {Gradient::Kind::none, "the result is not a number that varies smoothly"};
  }
  def.elementwise = true;
  return def;
}

}  // namespace

void register_binary_ops(OpRegistry& ops) {
  for_each_type(BinaryOps{},
                [&]<typename Op>(std::type_identity<Op>) { ops.add(binary_op<Op>()); });
}

}  // namespace turnout
