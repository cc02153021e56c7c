// Ops of two operands that are broadcast to each other, from the functors of functors_binary.hpp.
#include "ops/families.hpp"
#include "ops/functors.hpp"
#include "ops/support.hpp"
#include "ops/wide.hpp"

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

// y[i] = op(a[i], b[i]) of the broadcast operands.
template <typename Op, typename A, typename B>
void apply(const Op& op, const WideValues<A>& a, const WideValues<B>& b, Tensor& y) {
  using Out = std::conditional_t<is_binary_predicate<Op>, bool, A>;
  const auto values = std::make_unique<Out[]>(a.size);
  for (std::size_t i = 0; i < a.size; ++i) values[i] = convert<Out>(op(a[i], b[i]));
  store_wide<Out>({values.get(), a.size}, y);
}

template <typename Op>
void reference_binary(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const Op op = Op::make(*info.attrs);
  Tensor& y = outputs[0];
  dispatch_wide(inputs[0]->dtype(), [&]<typename A>(std::type_identity<A>) {
    if constexpr (takes<Op, A>) {
      const WideValues<A> a(*inputs[0], y.shape());
      if constexpr (std::is_same_v<Op, Pow>) {  // the exponent is of a type of its own
        dispatch_wide(inputs[1]->dtype(), [&]<typename B>(std::type_identity<B>) {
          if constexpr (takes<Op, B>) apply(op, a, WideValues<B>(*inputs[1], y.shape()), y);
        });
      } else {
        apply(op, a, WideValues<A>(*inputs[1], y.shape()), y);
      }
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
