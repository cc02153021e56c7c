// Values that are known while a model is imported: what they depend on is copied into a graph of
// its own, and bound. So a condition may be computed from constants and from fixed dimensions.
#include "runtime/onnx/node.hpp"

namespace turnout::onnx_import {
namespace {

// Nodes that `id` depends on.
std::vector<char> needed_nodes(const Graph& graph, ValueId id) {
  std::vector<char> needed(graph.nodes().size(), 0);
  const auto mark = [&](ValueId value) {
    const NodeId producer = value.valid() ? graph.value(value).producer : NodeId{};
    if (producer.valid()) needed[producer.index] = 1;
  };
  mark(id);
  for (std::size_t n = needed.size(); n-- > 0;) {
    if (needed[n] == 0) continue;
    for (ValueId input : graph.nodes()[n].inputs) mark(input);
  }
  return needed;
}

Graph extract(const Graph& graph, const OpRegistry& ops, ValueId id) {
  GraphBuilder builder(ops, "known");
  std::map<std::uint32_t, ValueId> copies;
  const auto copy_of = [&](ValueId value) {
    if (!value.valid()) return ValueId{};
    const auto [at, is_new] = copies.emplace(value.index, ValueId{});
    if (!is_new) return at->second;
    const Value& original = graph.value(value);
    at->second = original.has_known()
                     ? builder.constant(original.known)
                     : builder.input(original.name, original.spec.dtype, original.dims);
    return at->second;
  };
  const std::vector<char> needed = needed_nodes(graph, id);
  for (std::size_t n = 0; n < needed.size(); ++n) {
    if (needed[n] == 0) continue;
    const Node& node = graph.nodes()[n];
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(copy_of(input));
    const std::vector<std::string> names(node.outputs.size());
    const auto outputs = builder.add_node(*node.op, inputs, node.attrs, "", names);
    for (std::size_t i = 0; i < outputs.size(); ++i) copies[node.outputs[i].index] = outputs[i];
  }
  builder.output(copy_of(id));
  return builder.build();
}

}  // namespace

Tensor Target::known(ValueId id) const {
  if (builder_.value(id).has_known()) return builder_.value(id).known;
  GraphBuilder copy = builder_;
  copy.output(id);
  try {
    const Graph graph = extract(copy.build(), builder_.ops(), id);
    if (!graph.symbols().empty()) return {};
    const Graph bound = graph.bind({});
    return bound.value(bound.outputs()[0]).known;
  } catch (const Error&) {  // the model is at fault; it will be an error again when it is bound
    return {};
  }
}

}  // namespace turnout::onnx_import
