#include "runtime/onnx/convert.hpp"

namespace turnout::onnx_import {
namespace {

// The classes' log-probabilities picked by the targets, weighted and reduced:
//
//   loss[n, d] = -weight[target[n, d]] * log_prob[n, target[n, d], d]
//
// Targets equal to `ignore_index` weigh 0. The mean divides by the sum of the weights.
class LossBuilder {
 public:
  LossBuilder(OnnxNode& node, ValueId log_prob, ValueId weight)
      : node_(node), log_prob_(log_prob), weight_(weight) {}

  void build() {
    const std::string reduction = node_.take_text("reduction").value_or("mean");
    const auto ignore_index = node_.take_integer("ignore_index");
    const ValueId target = node_.required(1);
    const ValueId axes = node_.integers({1}, "axis");
    ValueId index = node_.step("unsqueeze", {target, axes});
    if (ignore_index) index = without_ignored(index, target, *ignore_index);
    const ValueId picked =
        node_.step("gather_elements", {log_prob_, index}, {{"axis", std::int64_t{1}}});
    const ValueId factor = factors(index);
    ValueId loss = node_.step("neg", {picked});
    if (factor.valid()) loss = node_.step("mul", {loss, factor});
    reduce(reduction, loss, factor, axes);
  }

 private:
  // Index 0 instead of an ignored one, which needn't be a class.
  ValueId without_ignored(ValueId index, ValueId target, std::int64_t ignore_index) {
    if (node_.dtype(target) == DType::undefined) node_.unsupported("targets of unknown type");
    const auto ignored = static_cast<double>(ignore_index);
    is_ignored_ = node_.step("equal", {index, node_.scalar_like(ignored, target, "ignored")});
    return node_.step("where", {is_ignored_, node_.scalar_like(0, target, "first"), index});
  }

  // Weight of each target; invalid when all are 1.
  ValueId factors(ValueId index) {
    ValueId factor;
    if (weight_.valid())
      factor = node_.step("gather", {weight_, index}, {{"axis", std::int64_t{0}}});
    if (!is_ignored_.valid()) return factor;
    const ValueId zero = node_.scalar_like(0, log_prob_, "zero");
    if (!factor.valid()) factor = node_.scalar_like(1, log_prob_, "one");
    return node_.step("where", {is_ignored_, zero, factor});
  }

  void reduce(const std::string& reduction, ValueId loss, ValueId factor, ValueId axes) {
    const AttrMap to_scalar{{"keepdims", std::int64_t{0}}};
    if (reduction == "none") {
      node_.define(0, "squeeze", {loss, axes});
    } else if (reduction == "sum") {
      node_.define(0, "reduce_sum", {loss}, to_scalar);
    } else if (reduction != "mean") {
      node_.invalid(fmt::format("attribute 'reduction' is '{}'", reduction));
    } else if (factor.valid()) {
      node_.define(0, "div",
                   {node_.step("reduce_sum", {loss}, to_scalar),
                    node_.step("reduce_sum", {factor}, to_scalar)});
    } else {
      node_.define(0, "reduce_mean", {loss}, to_scalar);
    }
  }

  OnnxNode& node_;
  ValueId log_prob_, weight_, is_ignored_;
};

}  // namespace

void convert_negative_log_likelihood(OnnxNode& node) {
  LossBuilder(node, node.required(0), node.input(2)).build();
}

void convert_softmax_cross_entropy(OnnxNode& node) {
  const ValueId log_prob =
      node.step("log_softmax", {node.required(0)}, {{"axis", std::int64_t{1}}});
  LossBuilder(node, log_prob, node.input(2)).build();
  node.define(1, "identity", {log_prob});
}

}  // namespace turnout::onnx_import
