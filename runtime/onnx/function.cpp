#include "runtime/onnx/importer.hpp"

namespace turnout::onnx_import {
namespace {

using onnx::AttributeProto;

const AttributeProto* find_attr(const google::protobuf::RepeatedPtrField<AttributeProto>& attrs,
                                const std::string& name) {
  for (const AttributeProto& attr : attrs) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

void substitute(onnx::NodeProto& node, const onnx::FunctionProto& function,
                const onnx::NodeProto& call) {
  auto* attrs = node.mutable_attribute();
  for (int i = attrs->size() - 1; i >= 0; --i) {
    AttributeProto& attr = *attrs->Mutable(i);
    if (attr.has_g()) {
      for (auto& inner : *attr.mutable_g()->mutable_node()) substitute(inner, function, call);
    }
    if (attr.ref_attr_name().empty()) continue;
    const AttributeProto* value = find_attr(call.attribute(), attr.ref_attr_name());
    if (value == nullptr) value = find_attr(function.attribute_proto(), attr.ref_attr_name());
    if (value == nullptr) {  // optional and not given
      attrs->DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = attr.name();
    attr = *value;
    attr.set_name(name);
  }
}

}  // namespace

onnx::FunctionProto instantiate(const onnx::FunctionProto& body, const onnx::NodeProto& call) {
  onnx::FunctionProto result = body;
  for (auto& node : *result.mutable_node()) substitute(node, body, call);
  return result;
}

}  // namespace turnout::onnx_import
