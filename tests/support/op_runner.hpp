#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph.hpp"
#include "ops/all_ops.hpp"

namespace turnout::test {

/// Graph of one node with these inputs as constants; undefined ones are left out.
inline Graph one_node(std::string_view op, const std::vector<Tensor>& inputs, const AttrMap& attrs,
                      std::size_t outputs = 1) {
  GraphBuilder builder(all_ops(), "test");
  std::vector<ValueId> ids;
  for (const Tensor& tensor : inputs) {
    ids.push_back(tensor.defined() ? builder.constant(tensor) : ValueId{});
  }
  const std::vector<std::string> names(outputs);
  for (ValueId id : builder.add_node(all_ops().get(op), ids, attrs, "node", names)) {
    builder.output(id);
  }
  return builder.build();
}

/// Outputs of a node by its reference.
inline std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                                  const AttrMap& attrs = {}, std::size_t outputs = 1) {
  const Graph graph = one_node(op, inputs, attrs, outputs).bind({});
  const NodeInfo info = graph.info(NodeId{0});
  return evaluate(info, info.constants);
}

/// What a node's error says; "" without one.
inline std::string op_error(std::string_view op, const std::vector<Tensor>& inputs,
                            const AttrMap& attrs = {}, std::size_t outputs = 1) {
  try {
    run_op(op, inputs, attrs, outputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <typename T>
Tensor tensor(const Shape& shape, const std::vector<T>& values) {
  return Tensor::of<T>(shape, values);
}
inline Tensor f32(const Shape& shape, const std::vector<float>& values) {
  return tensor<float>(shape, values);
}
inline Tensor i64(const std::vector<std::int64_t>& values) {
  return tensor<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}
/// first, first + 1, ...
inline Tensor counting(const Shape& shape, float first = 0) {
  Tensor result = Tensor::empty({DType::f32, shape});
  for (float& value : result.values<float>()) value = first++;
  return result;
}

template <typename T = float>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.values<const T>();
  return {span.begin(), span.end()};
}

}  // namespace turnout::test
