#include <algorithm>

#include "runtime/onnx/node.hpp"

namespace turnout::onnx_import {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// Most ops keep the type of their first input. Specs are exact only after bind(); this is for
// conversions that need a type before (CastLike, bounds of an old Clip).
DType output_dtype(const OpDef& op, const AttrMap& attrs, std::span<const DType> inputs,
                   int index) {
  const auto input = [&](std::size_t i) {
    return i < inputs.size() ? inputs[i] : DType::undefined;
  };
  if (is_one_of(op.name, {"equal", "greater", "greater_or_equal", "less", "less_or_equal", "and",
                          "or", "xor", "not", "is_nan", "is_inf"})) {
    return DType::boolean;
  }
  if (is_one_of(op.name, {"shape", "size", "arg_max", "arg_min", "non_zero"})) return DType::i64;
  if (index == 1 && is_one_of(op.name, {"top_k", "max_pool"})) return DType::i64;
  if (index > 0 && is_one_of(op.name, {"layer_normalization"})) return DType::f32;
  if (op.name == "where") return input(1);
  if (op.name == "one_hot") return input(2);
  for (std::string_view name : {"to", "dtype"}) {
    const AttrValue* value = attrs.find(name);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (text != nullptr) return parse_dtype(*text).value_or(DType::undefined);
  }
  return input(0);
}

std::string Target::fresh(Names& taken, std::string_view base) {
  std::string candidate(base);
  while (!taken.emplace(candidate, 1).second) {
    candidate = fmt::format("{}_{}", base, taken.find(base)->second++);
  }
  return candidate;
}

ValueId Target::input(std::string_view name, DType dtype, std::vector<Dim> dims) {
  const ValueId id = builder_.input(name, dtype, std::move(dims));
  set_dtype(id, dtype);
  return id;
}

ValueId Target::constant(Tensor tensor, const std::string& name) {
  const DType type = tensor.dtype();
  const ValueId id = builder_.constant(std::move(tensor), name);
  set_dtype(id, type);
  return id;
}

std::vector<ValueId> Target::add(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                                 const std::string& name,
                                 std::span<const std::string> output_names) {
  std::vector<DType> types;
  for (ValueId id : inputs) types.push_back(dtype(id));
  const std::vector<ValueId> outputs =
      builder_.add_node(op, std::move(inputs), attrs, name, output_names);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    set_dtype(outputs[i], output_dtype(op, attrs, types, static_cast<int>(i)));
  }
  return outputs;
}

DType Target::dtype(ValueId id) const {
  return id.index < dtypes_.size() ? dtypes_[id.index] : DType::undefined;
}

void Target::set_dtype(ValueId id, DType dtype) {
  if (id.index >= dtypes_.size()) dtypes_.resize(id.index + 1, DType::undefined);
  dtypes_[id.index] = dtype;
}

}  // namespace turnout::onnx_import
