// Ops of one operand, made from the functors of functors_unary.hpp.
#include "ops/families.hpp"
#include "ops/functors.hpp"
#include "ops/support.hpp"
#include "ops/wide.hpp"

namespace turnout {
namespace {

template <typename Op>
std::vector<TensorSpec> infer_unary(const NodeInfo& info) {
  require_types(info, 0, Op::types);
  if constexpr (std::is_same_v<Op, Gelu>) {
    const std::string& form = info.attrs->text("approximate");
    if (form != "none" && form != "tanh") {
      info.fail(fmt::format("approximate '{}' is neither none nor tanh", form));
    }
  }
  TensorSpec spec = info.input(0);
  if (is_unary_predicate<Op>) spec.dtype = DType::boolean;
  return {spec};
}

template <typename Op>
void reference_unary(const NodeInfo& info, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const Op op = Op::make(*info.attrs);
  dispatch_wide(inputs[0]->dtype(), [&]<typename W>(std::type_identity<W>) {
    if constexpr (takes<Op, W>) {
      using Out = std::conditional_t<is_unary_predicate<Op>, bool, W>;
      const WideValues<W> x(*inputs[0]);
      const auto y = std::make_unique<Out[]>(x.size);
      for (std::size_t i = 0; i < x.size; ++i) y[i] = convert<Out>(op(x[i]));
      store_wide<Out>({y.get(), x.size}, outputs[0]);
    }
  });
}

template <typename Op>
Cost unary_cost(const NodeInfo& info) {
  return elementwise_cost(info, Op::flops);
}

template <typename Op>
OpDef unary_op() {
  OpDef def;
  def.name = Op::name;
  def.doc = Op::doc;
  def.attrs = Op::attrs();
  def.infer = infer_unary<Op>;
  def.cost = unary_cost<Op>;
  def.reference = reference_unary<Op>;
  if (Op::exact) def.tolerance = exact_tolerance;
  if (is_unary_predicate<Op> || (Op::types & kFloatingTypes) == 0) {
    def.gradient = {Gradient::Kind::none, "the result is not a number that varies smoothly"};
  }
  def.elementwise = true;
  return def;
}

OpDef identity_op() {
  OpDef def;
  def.name = "identity";
  def.doc = "x itself.";
  def.infer = [](const NodeInfo& info) { return std::vector<TensorSpec>{info.input(0)}; };
  def.cost = [](const NodeInfo&) { return Cost{}; };  // no kernel runs
  def.reference = reference_copy;
  def.tolerance = exact_tolerance;
  def.view = true;
  def.elementwise = true;
  return def;
}

}  // namespace

void register_unary_ops(OpRegistry& ops) {
  for_each_type(UnaryOps{}, [&]<typename Op>(std::type_identity<Op>) { ops.add(unary_op<Op>()); });
  ops.add(identity_op());
}

}  // namespace turnout
