#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "core/graph.hpp"
#include "onnx.pb.h"
#include "runtime/onnx/import.hpp"
#include "runtime/onnx/tensor_proto.hpp"
#include "tests/support/interpret.hpp"

namespace turnout {

/// Small ONNX models for tests.
class OnnxModel {
 public:
  explicit OnnxModel(std::int64_t opset = 13) {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(opset);
    proto.mutable_graph()->set_name("test");
  }

  onnx::GraphProto& graph() { return *proto.mutable_graph(); }

  using DimValue = std::variant<std::int64_t, std::string>;
  OnnxModel& input(const std::string& name, DType dtype, const std::vector<DimValue>& dims) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx_dtype(dtype));
    type->mutable_shape();
    for (const DimValue& dim : dims) {
      auto* entry = type->mutable_shape()->add_dim();
      if (const auto* size = std::get_if<std::int64_t>(&dim)) {
        entry->set_dim_value(*size);
      } else if (!std::get<std::string>(dim).empty()) {
        entry->set_dim_param(std::get<std::string>(dim));
      }
    }
    return *this;
  }
  OnnxModel& initializer(const std::string& name, const Tensor& tensor) {
    *graph().add_initializer() = to_proto(tensor, name);
    return *this;
  }
  OnnxModel& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  static onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs) {
    onnx::NodeProto node;
    node.set_op_type(op);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    return node;
  }
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    return *graph().add_node() = make_node(op, inputs, outputs);
  }

  std::string bytes() const { return proto.SerializeAsString(); }
  Graph import() const { return import_onnx(bytes(), std::filesystem::path()); }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    return interpret(import(), inputs);
  }

  onnx::ModelProto proto;
};

inline void set_attr(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INT);
  attr->set_i(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name, float value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::FLOAT);
  attr->set_f(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name, const char* value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::STRING);
  attr->set_s(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INTS);
  for (std::int64_t value : values) attr->add_ints(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name,
                     const std::vector<float>& values) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::FLOATS);
  for (float value : values) attr->add_floats(value);
}
inline void set_attr(onnx::NodeProto& node, const std::string& name, const Tensor& value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::TENSOR);
  *attr->mutable_t() = to_proto(value, "");
}
inline void set_attr(onnx::NodeProto& node, const std::string& name,
                     const onnx::GraphProto& value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::GRAPH);
  *attr->mutable_g() = value;
}

}  // namespace turnout
