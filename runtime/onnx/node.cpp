#include "runtime/onnx/node.hpp"

#include <algorithm>
#include <cctype>

#include "onnx.pb.h"
#include "runtime/onnx/tensor_proto.hpp"

namespace turnout::onnx_import {
namespace {

using onnx::AttributeProto;

// "transA" -> "trans_a".
std::string snake_case(std::string_view name) {
  std::string result;
  for (char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !result.empty() && result.back() != '_') result += '_';
    result += upper ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : c;
  }
  return result;
}

// Old models leave the type out.
AttributeProto::AttributeType type_of(const AttributeProto& attr) {
  if (attr.type() != AttributeProto::UNDEFINED) return attr.type();
  if (attr.has_f()) return AttributeProto::FLOAT;
  if (attr.has_i()) return AttributeProto::INT;
  if (attr.has_s()) return AttributeProto::STRING;
  if (attr.has_t()) return AttributeProto::TENSOR;
  if (attr.has_g()) return AttributeProto::GRAPH;
  if (attr.floats_size() > 0) return AttributeProto::FLOATS;
  if (attr.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

// The attribute as Turnout's schema wants it; nothing when the types don't go together.
std::optional<AttrValue> converted(const AttributeProto& attr, AttrType wanted) {
  const auto type = type_of(attr);
  switch (wanted) {
    case AttrType::integer:
      if (type == AttributeProto::INT) return attr.i();
      break;
    case AttrType::real:
      if (type == AttributeProto::FLOAT) return static_cast<double>(attr.f());
      if (type == AttributeProto::INT) return static_cast<double>(attr.i());
      break;
    case AttrType::text:
      if (type == AttributeProto::STRING) return attr.s();
      if (type == AttributeProto::INT) {  // an element type
        const auto dtype = dtype_of_onnx(attr.i());
        if (dtype) return std::string(to_string(*dtype));
      }
      break;
    case AttrType::integers:
      if (type == AttributeProto::INTS) return std::vector(attr.ints().begin(), attr.ints().end());
      break;
    case AttrType::reals:
      if (type == AttributeProto::FLOATS) {
        return std::vector<double>(attr.floats().begin(), attr.floats().end());
      }
      break;
    case AttrType::texts:
      if (type == AttributeProto::STRINGS) {
        return std::vector<std::string>(attr.strings().begin(), attr.strings().end());
      }
      break;
  }
  return std::nullopt;
}

const AttrDef* find_attr(const OpDef& op, std::string_view name) {
  const auto same = [&](const AttrDef& def) { return def.name == name; };
  const auto at = std::find_if(op.attrs.begin(), op.attrs.end(), same);
  return at == op.attrs.end() ? nullptr : &*at;
}

}  // namespace

std::string describe(std::string_view name, const onnx::NodeProto& node, std::int64_t opset) {
  return fmt::format("node '{}': op '{}' (domain '{}', opset {})", name, node.op_type(),
                     node.domain() == "ai.onnx" ? "" : node.domain(), opset);
}

OnnxNode::OnnxNode(Target& target, const onnx::NodeProto& proto, const Conversion& conversion,
                   std::int64_t opset, std::string name, std::vector<ValueId> inputs,
                   std::vector<std::string> output_names)
    : target_(target),
      proto_(proto),
      conversion_(conversion),
      opset_(opset),
      name_(std::move(name)),
      inputs_(std::move(inputs)),
      output_names_(std::move(output_names)),
      results_(output_names_.size()) {}

void OnnxNode::unsupported(std::string_view why) const {
  const char* separator = why.empty() ? "" : ": ";
  fail(ErrorCode::unsupported, "{} is not supported{}{}", describe(name_, proto_, opset_),
       separator, why);
}

void OnnxNode::invalid(std::string_view what) const {
  fail(ErrorCode::invalid_model, "{}: {}", describe(name_, proto_, opset_), what);
}

ValueId OnnxNode::required(std::size_t i) const {
  if (!input(i).valid()) invalid(fmt::format("input {} is missing", i));
  return inputs_[i];
}

const Tensor* OnnxNode::constant(ValueId id) const {
  if (!id.valid()) return nullptr;
  const Value& value = target_.builder().value(id);
  return value.kind == ValueKind::constant ? &value.known : nullptr;
}

const AttributeProto* OnnxNode::take(std::string_view name) {
  for (const AttributeProto& attr : proto_.attribute()) {
    if (attr.name() != name) continue;
    used_.emplace(name);
    return &attr;
  }
  return nullptr;
}

namespace {

template <typename T>
std::optional<T> typed(const OnnxNode& node, const AttributeProto* attr, AttrType type) {
  if (attr == nullptr) return std::nullopt;
  auto value = converted(*attr, type);
  if (!value) node.invalid(fmt::format("attribute '{}' has the wrong type", attr->name()));
  return std::get<T>(std::move(*value));
}

}  // namespace

std::optional<std::int64_t> OnnxNode::take_integer(std::string_view name) {
  return typed<std::int64_t>(*this, take(name), AttrType::integer);
}
std::optional<double> OnnxNode::take_real(std::string_view name) {
  return typed<double>(*this, take(name), AttrType::real);
}
std::optional<std::string> OnnxNode::take_text(std::string_view name) {
  return typed<std::string>(*this, take(name), AttrType::text);
}
std::optional<std::vector<std::int64_t>> OnnxNode::take_integers(std::string_view name) {
  return typed<std::vector<std::int64_t>>(*this, take(name), AttrType::integers);
}
std::optional<std::vector<double>> OnnxNode::take_reals(std::string_view name) {
  return typed<std::vector<double>>(*this, take(name), AttrType::reals);
}

ValueId OnnxNode::constant(Tensor tensor, std::string_view what) {
  return target_.constant(std::move(tensor),
                          target_.fresh_value(fmt::format("{}/{}", name_, what)));
}

ValueId OnnxNode::integers(const std::vector<std::int64_t>& values, std::string_view what) {
  return constant(Tensor::of(Shape{static_cast<std::int64_t>(values.size())}, values), what);
}

ValueId OnnxNode::scalar_like(double value, ValueId like, std::string_view what) {
  const DType known = dtype(like);
  const DType type = known == DType::undefined ? DType::f32 : known;
  Tensor tensor = Tensor::empty({type, {}});
  dispatch(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      *tensor.data<T>() = static_cast<T>(value);
    } else {
      *tensor.data<T>() = T(static_cast<float>(value));
    }
  });
  return constant(std::move(tensor), what);
}

Tensor OnnxNode::tensor(const onnx::TensorProto& proto, std::string_view what) const {
  return to_tensor(proto, {}, fmt::format("node '{}': attribute '{}'", name_, what));
}

void OnnxNode::define_constant(Tensor tensor) {
  if (output_names_.size() != 1) invalid("a constant has one output");
  results_[0] = target_.constant(std::move(tensor), output_names_[0]);
}

std::size_t OnnxNode::declared_outputs() const {
  return static_cast<std::size_t>(proto_.output_size());
}

const OpDef& OnnxNode::op(std::string_view name) const {
  const OpDef* found = target_.builder().ops().find(name);
  if (found == nullptr)
    unsupported(name == conversion_.op ? "" : fmt::format("it needs '{}'", name));
  return *found;
}

ValueId OnnxNode::step(std::string_view op_name, std::vector<ValueId> inputs, AttrMap attrs) {
  const std::string base = fmt::format("{}/{}", name_, op_name);
  const std::string output = target_.fresh_value(base);
  return target_.add(op(op_name), std::move(inputs), std::move(attrs), target_.fresh_node(base),
                     {&output, 1})[0];
}

AttrMap OnnxNode::renamed_attrs(const OpDef& op) {
  AttrMap attrs;
  for (const AttributeProto& attr : proto_.attribute()) {
    if (used_.count(attr.name()) > 0) continue;
    const std::string name = snake_case(attr.name());
    const AttrDef* def = find_attr(op, name);
    if (def == nullptr) unsupported(fmt::format("attribute '{}'", attr.name()));
    auto value = converted(attr, def->type);
    if (!value) invalid(fmt::format("attribute '{}' has the wrong type", attr.name()));
    attrs.set(name, std::move(*value));
    used_.emplace(attr.name());
  }
  return attrs;
}

void OnnxNode::finish(std::vector<ValueId> inputs, AttrMap attrs) {
  finish(conversion_.op, std::move(inputs), std::move(attrs));
}

void OnnxNode::finish(std::string_view op_name, std::vector<ValueId> inputs, AttrMap attrs) {
  const OpDef& def = op(op_name);
  AttrMap all = renamed_attrs(def);
  for (const auto& [name, value] : attrs) all.set(name, value);
  std::vector<std::string> outputs = output_names_;
  if (static_cast<int>(outputs.size()) > def.max_outputs) {
    unsupported(fmt::format("output {}", def.max_outputs));
  }
  outputs.resize(std::max(outputs.size(), static_cast<std::size_t>(def.min_outputs)));
  for (std::string& output : outputs) {
    if (output.empty()) output = target_.fresh_value(fmt::format("{}/{}", name_, op_name));
  }
  results_ = target_.add(def, std::move(inputs), std::move(all), name_, outputs);
}

void OnnxNode::define(std::size_t output, std::string_view op_name, std::vector<ValueId> inputs,
                      AttrMap attrs) {
  if (!has_output(output)) return;
  const bool first =
      std::none_of(results_.begin(), results_.end(), [](ValueId id) { return id.valid(); });
  const std::string label = first ? name_ : target_.fresh_node(fmt::format("{}/{}", name_, output));
  results_[output] = target_.add(op(op_name), std::move(inputs), std::move(attrs), label,
                                 {&output_names_[output], 1})[0];
}

std::vector<ValueId> OnnxNode::import_subgraph(const onnx::GraphProto& graph) const {
  return import_subgraph_(graph);
}

void OnnxNode::check_complete() const {
  for (const AttributeProto& attr : proto_.attribute()) {
    if (used_.count(attr.name()) == 0) unsupported(fmt::format("attribute '{}'", attr.name()));
  }
  for (std::size_t i = 0; i < output_names_.size(); ++i) {
    if (has_output(i) && !results_[i].valid()) unsupported(fmt::format("output {}", i));
  }
}

}  // namespace turnout::onnx_import
