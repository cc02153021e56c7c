#include "tests/support/interpret.hpp"

#include "ops/all_ops.hpp"
#include "runtime/onnx/verify.hpp"

namespace turnout {
namespace {

// The node as a graph of its own, made of the ops it decomposes into.
std::vector<Tensor> run_decomposed(const NodeInfo& info, std::span<const Tensor* const> inputs) {
  GraphBuilder builder(all_ops(), std::string(info.name));
  std::vector<ValueId> ids;
  std::vector<Tensor> given;
  for (int i = 0; i < info.input_count(); ++i) {
    const Tensor* tensor = inputs[static_cast<std::size_t>(i)];
    if (tensor == nullptr) {
      ids.emplace_back();
    } else if (info.constant(i) != nullptr) {
      ids.push_back(builder.constant(*tensor));
    } else {
      const auto dims = tensor->shape().dims();
      ids.push_back(builder.input("", tensor->dtype(), std::vector<Dim>(dims.begin(), dims.end())));
      builder.set_spec(ids.back(), tensor->spec());
      given.push_back(*tensor);
    }
  }
  for (ValueId id : info.op->decompose(info, ids, builder)) builder.output(id);
  return interpret(builder.build(), given);
}

}  // namespace

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Graph bound = graph.bind(bindings_from(graph, inputs));
  std::vector<Tensor> values(bound.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = bound.values()[i].known;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[bound.inputs()[i].index] = inputs[i];
  for (std::uint32_t n = 0; n < bound.nodes().size(); ++n) {
    const Node& node = bound.nodes()[n];
    std::vector<const Tensor*> operands;
    for (ValueId id : node.inputs) {
      operands.push_back(id.valid() ? &values[id.index] : nullptr);
    }
    const NodeInfo info = bound.info(NodeId{n});
    const auto results =
        node.op->reference != nullptr ? evaluate(info, operands) : run_decomposed(info, operands);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      values[node.outputs[i].index] = results[i];
    }
  }
  std::vector<Tensor> outputs;
  for (ValueId id : bound.outputs()) outputs.push_back(values[id.index]);
  return outputs;
}

}  // namespace turnout
