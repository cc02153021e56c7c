#include "runtime/onnx/convert.hpp"

namespace turnout::onnx_import {
namespace {

// Joins all inputs with a binary op, from the left; the last one is the node itself.
void chain(OnnxNode& node, std::string_view op) {
  if (node.inputs().size() < 2) return node.finish("identity", {node.required(0)});
  ValueId left = node.required(0);
  for (std::size_t i = 1; i + 1 < node.inputs().size(); ++i) {
    left = node.step(op, {left, node.required(i)});
  }
  node.finish(op, {left, node.required(node.inputs().size() - 1)});
}

ValueId shape_of(OnnxNode& node, ValueId x) { return node.step("shape", {x}); }

}  // namespace

void convert_variadic(OnnxNode& node) { chain(node, node.op_name()); }

void convert_mean(OnnxNode& node) {
  if (node.inputs().size() < 2) return node.finish("identity", {node.required(0)});
  ValueId sum = node.required(0);
  for (std::size_t i = 1; i < node.inputs().size(); ++i) {
    sum = node.step("add", {sum, node.required(i)});
  }
  const auto count = static_cast<double>(node.inputs().size());
  node.finish("div", {sum, node.scalar_like(count, node.required(0), "count")});
}

// Before opset 13 all dimensions from `axis` (1 unless given) on are one line.
void convert_softmax(OnnxNode& node) {
  if (node.opset() >= 13) return node.finish(node.inputs());
  const std::int64_t axis = node.take_integer("axis").value_or(1);
  const ValueId x = node.required(0);
  if (axis == -1) return node.finish({x}, {{"axis", axis}});
  const ValueId rows = node.step("flatten", {x}, {{"axis", axis}});
  const ValueId result = node.step(node.op_name(), {rows}, {{"axis", std::int64_t{-1}}});
  node.finish("reshape", {result, shape_of(node, x)}, {{"allowzero", std::int64_t{1}}});
}

// x divided by its norm along the axis; zeros stay zeros.
void convert_lp_normalization(OnnxNode& node) {
  const ValueId x = node.required(0);
  const std::int64_t p = node.take_integer("p").value_or(2);
  const std::int64_t axis = node.take_integer("axis").value_or(-1);
  if (p != 1 && p != 2) node.invalid(fmt::format("attribute 'p' is {}", p));
  const ValueId axes = node.integers({axis}, "axes");
  const ValueId norm = node.step(p == 1 ? "reduce_l1" : "reduce_l2", {x, axes});
  const ValueId is_zero = node.step("equal", {norm, node.scalar_like(0, x, "zero")});
  const ValueId one = node.scalar_like(1, x, "one");
  node.finish({x, node.step("where", {is_zero, one, norm})});
}

// Outputs 1 to 4 and `momentum` belong to training.
void convert_batch_normalization(OnnxNode& node) {
  if (node.take_integer("training_mode").value_or(0) != 0) node.unsupported("training_mode 1");
  if (node.take_integer("spatial").value_or(1) != 1) node.unsupported("spatial 0");
  if (node.output_count() > 1) node.unsupported("outputs of training");
  node.ignore("momentum");
  node.finish(node.inputs());
}

// Before opset 21 scale and bias have one value a group: spread them over the group's channels.
void convert_group_normalization(OnnxNode& node) {
  if (node.opset() >= 21) return node.finish(node.inputs());
  const std::int64_t groups = node.take_integer("num_groups").value_or(0);
  if (groups < 1) node.invalid("attribute 'num_groups' is needed");
  const ValueId x = node.required(0);
  const ValueId channels =
      node.step("shape", {x}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
  const ValueId count = node.integers({groups}, "groups");
  const ValueId sizes = node.step("concat", {count, node.step("div", {channels, count})},
                                  {{"axis", std::int64_t{0}}});
  const ValueId column = node.integers({groups, 1}, "column");
  std::vector<ValueId> inputs{x};
  for (std::size_t i = 1; i < 3; ++i) {
    const ValueId spread =
        node.step("expand", {node.step("reshape", {node.required(i), column}), sizes});
    inputs.push_back(node.step("reshape", {spread, node.integers({-1}, "all")}));
  }
  node.finish(std::move(inputs), {{"num_groups", groups}});
}

// `storage_order` is about the second output alone.
void convert_max_pool(OnnxNode& node) {
  if (node.output_count() < 2) node.ignore("storage_order");
  node.finish(node.inputs());
}

// Nothing is dropped outside of training: the mask, if asked for, is true everywhere.
void convert_dropout(OnnxNode& node) {
  const Tensor* ratio = node.constant(node.input(1));
  const Tensor* training = node.constant(node.input(2));
  const bool keeps_all = ratio != nullptr && ratio->elements() == 1 && to_double(*ratio)[0] == 0;
  if (node.input(2).valid() && !keeps_all) {
    if (training == nullptr) node.unsupported("training_mode has to be known");
    for (std::int64_t mode : to_int64(*training)) {
      if (mode != 0) node.unsupported("training_mode 1");
    }
  }
  node.ignore("ratio");
  node.ignore("seed");
  const ValueId x = node.required(0);
  node.define(0, "identity", {x});
  if (!node.has_output(1)) return;
  const ValueId one = node.opset() >= 10 ? node.constant(Tensor::scalar(true), "kept")
                                         : node.scalar_like(1, x, "kept");
  node.define(1, "expand", {one, shape_of(node, x)});
}

}  // namespace turnout::onnx_import
