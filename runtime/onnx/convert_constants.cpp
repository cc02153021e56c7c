#include <cmath>

#include "onnx.pb.h"
#include "runtime/onnx/convert.hpp"
#include "runtime/onnx/tensor_proto.hpp"

namespace turnout::onnx_import {
namespace {

std::string dtype_text(OnnxNode& node, std::int64_t data_type) {
  const auto dtype = dtype_of_onnx(data_type);
  if (!dtype) node.unsupported(fmt::format("elements of type {}", onnx_dtype_name(data_type)));
  return std::string(to_string(*dtype));
}

template <typename T, typename V>
Tensor vector_of(const V& values) {
  const std::vector<T> copy(values.begin(), values.end());
  return Tensor::of(Shape{static_cast<std::int64_t>(copy.size())}, copy);
}

}  // namespace

void convert_constant(OnnxNode& node) {
  Tensor tensor;
  if (const auto* value = node.take("value"); value != nullptr && value->has_t()) {
    tensor = node.tensor(value->t(), "value");
  } else if (const auto real = node.take_real("value_float")) {
    tensor = Tensor::scalar(static_cast<float>(*real));
  } else if (const auto reals = node.take_reals("value_floats")) {
    tensor = vector_of<float>(*reals);
  } else if (const auto integer = node.take_integer("value_int")) {
    tensor = Tensor::scalar(*integer);
  } else if (const auto integers = node.take_integers("value_ints")) {
    tensor = vector_of<std::int64_t>(*integers);
  } else {
    for (const auto* name : {"value_string", "value_strings", "sparse_value"}) {
      if (node.take(name) != nullptr) node.unsupported(fmt::format("attribute '{}'", name));
    }
    node.invalid("a constant needs a value");
  }
  node.define_constant(std::move(tensor));
}

// The value's element type is the output's. Integers that a double can't hold are spread instead.
void convert_constant_of_shape(OnnxNode& node) {
  Tensor value = Tensor::scalar(0.0F);
  if (const auto* attr = node.take("value"); attr != nullptr && attr->has_t()) {
    value = node.tensor(attr->t(), "value");
  }
  if (value.elements() != 1) node.invalid("attribute 'value' has to have one element");
  const double number = to_double(value)[0];
  if (std::abs(number) < 0x1p53 || is_floating(value.dtype())) {
    return node.finish({node.required(0)},
                       {{"value", number}, {"dtype", std::string(to_string(value.dtype()))}});
  }
  node.finish("expand", {node.constant(value.reshaped({}), "value"), node.required(0)});
}

void convert_cast(OnnxNode& node) {
  const auto to = node.take_integer("to");
  if (!to) node.invalid("attribute 'to' is needed");
  node.ignore("saturate");  // both matter for 8-bit floats only
  node.ignore("round_mode");
  node.finish({node.required(0)}, {{"to", dtype_text(node, *to)}});
}

void convert_cast_like(OnnxNode& node) {
  const DType dtype = node.dtype(node.required(1));
  if (dtype == DType::undefined) node.unsupported("the type to cast to is not known");
  node.ignore("saturate");
  node.ignore("round_mode");
  node.finish({node.required(0)}, {{"to", std::string(to_string(dtype))}});
}

void convert_eye_like(OnnxNode& node) {
  AttrMap attrs;
  if (const auto dtype = node.take_integer("dtype")) attrs.set("dtype", dtype_text(node, *dtype));
  node.finish({node.required(0)}, std::move(attrs));
}

// Only a condition that is known now: the branch takes the node's place.
void convert_if(OnnxNode& node) {
  const Tensor condition = node.known(node.required(0));
  if (!condition.defined()) node.unsupported("control flow that depends on data");
  if (condition.elements() != 1) node.invalid("the condition has to have one element");
  const auto* then_branch = node.take("then_branch");
  const auto* else_branch = node.take("else_branch");
  if (then_branch == nullptr || else_branch == nullptr) node.invalid("a branch is missing");
  const bool taken = to_int64(condition)[0] != 0;
  const auto outputs = node.import_subgraph((taken ? then_branch : else_branch)->g());
  if (outputs.size() < node.output_count()) node.invalid("a branch has too few outputs");
  for (std::size_t i = 0; i < node.output_count(); ++i) node.define(i, "identity", {outputs[i]});
}

}  // namespace turnout::onnx_import
