#include "core/tensor.hpp"
#include "runtime/onnx/convert.hpp"

namespace turnout::onnx_import {
namespace {

bool is_empty_constant(const OnnxNode& node, ValueId id) {
  const Tensor* tensor = node.constant(id);
  return tensor != nullptr && tensor->elements() == 0;
}

}  // namespace

// Before opset 18 (ReduceSum: 13) `axes` is an attribute; without it all axes are meant.
void convert_reduce(OnnxNode& node) {
  std::vector<ValueId> inputs = node.inputs();
  if (const auto axes = node.take_integers("axes")) {
    inputs = {node.required(0), node.integers(*axes, "axes")};
  }
  node.finish(std::move(inputs));
}

// Before opset 13 `axes` is an attribute.
void convert_axes(OnnxNode& node) { convert_reduce(node); }

// Before opset 11 `min` and `max` are attributes.
void convert_clip(OnnxNode& node) {
  if (node.opset() >= 11) return node.finish(node.inputs());
  const ValueId x = node.required(0);
  const auto low = node.take_real("min");
  const auto high = node.take_real("max");
  node.finish({x, low ? node.scalar_like(*low, x, "min") : ValueId{},
               high ? node.scalar_like(*high, x, "max") : ValueId{}});
}

// Before opset 10 `starts`, `ends` and `axes` are attributes.
void convert_slice(OnnxNode& node) {
  if (node.opset() >= 10) return node.finish(node.inputs());
  const auto starts = node.take_integers("starts");
  const auto ends = node.take_integers("ends");
  const auto axes = node.take_integers("axes");
  if (!starts || !ends) node.invalid("attributes 'starts' and 'ends' are needed");
  node.finish({node.required(0), node.integers(*starts, "starts"), node.integers(*ends, "ends"),
               axes ? node.integers(*axes, "axes") : ValueId{}});
}

// Before opset 13 `split` is an attribute. Without it the parts are equal, as many as outputs.
void convert_split(OnnxNode& node) {
  std::vector<ValueId> inputs = node.inputs();
  if (const auto split = node.take_integers("split")) {
    inputs = {node.required(0), node.integers(*split, "split")};
  }
  AttrMap attrs;
  const bool has_split = inputs.size() > 1 && inputs[1].valid();
  const auto given = node.take_integer("num_outputs");
  const auto outputs = static_cast<std::int64_t>(node.declared_outputs());
  if (given && *given != outputs) {
    node.invalid(fmt::format("num_outputs is {}, but it has {} outputs", *given, outputs));
  }
  if (!has_split) attrs.set("num_outputs", outputs);
  node.finish(std::move(inputs), std::move(attrs));
}

// Before opset 11 `pads` and `value` are attributes.
void convert_pad(OnnxNode& node) {
  if (node.opset() >= 11) return node.finish(node.inputs());
  const auto pads = node.take_integers("pads");
  const auto value = node.take_real("value");
  if (!pads) node.invalid("attribute 'pads' is needed");
  const ValueId x = node.required(0);
  node.finish(
      {x, node.integers(*pads, "pads"), value ? node.scalar_like(*value, x, "value") : ValueId{}});
}

// Before opset 10 `k` is an attribute.
void convert_top_k(OnnxNode& node) {
  const auto k = node.take_integer("k");
  if (!k) return node.finish(node.inputs());
  node.finish({node.required(0), node.integers({*k}, "k")});
}

// Opset 10 had no coordinate modes: it meant asymmetric coordinates, and the nearest one below.
// Between 11 and 12 `roi` and `scales` are given without elements where they don't count.
void convert_resize(OnnxNode& node) {
  if (node.opset() == 10) {
    return node.finish(
        {node.required(0), ValueId{}, node.required(1)},
        {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}});
  }
  std::vector<ValueId> inputs = node.inputs();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (is_empty_constant(node, inputs[i])) inputs[i] = ValueId{};
  }
  node.finish(std::move(inputs));
}

void convert_upsample(OnnxNode& node) {
  ValueId scales = node.input(1);
  if (const auto given = node.take_reals("scales")) {
    const std::vector<float> values(given->begin(), given->end());
    scales = node.constant(Tensor::of(Shape{static_cast<std::int64_t>(values.size())}, values),
                           "scales");
  }
  if (!scales.valid()) node.invalid("'scales' is needed");
  node.finish("resize", {node.required(0), ValueId{}, scales},
              {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}});
}

}  // namespace turnout::onnx_import
