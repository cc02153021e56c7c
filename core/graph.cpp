#include "core/graph.hpp"

#include <algorithm>

namespace turnout {

std::vector<std::vector<Graph::Use>> Graph::uses() const {
  std::vector<std::vector<Use>> result(values_.size());
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    for (std::size_t i = 0; i < nodes_[n].inputs.size(); ++i) {
      const ValueId id = nodes_[n].inputs[i];
      if (id.valid()) result[id.index].push_back({NodeId{n}, static_cast<int>(i)});
    }
  }
  return result;
}

std::optional<ValueId> Graph::find_value(std::string_view name) const {
  for (std::uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return ValueId{i};
  }
  return std::nullopt;
}

std::optional<NodeId> Graph::find_node(std::string_view name) const {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return NodeId{i};
  }
  return std::nullopt;
}

std::vector<std::string> Graph::symbols() const {
  std::vector<std::string> result;
  for (ValueId id : inputs_) {
    for (const Dim& dim : value(id).dims) {
      const bool is_new = std::find(result.begin(), result.end(), dim.symbol) == result.end();
      if (!dim.fixed() && is_new) result.push_back(dim.symbol);
    }
  }
  return result;
}

NodeInfo Graph::info(NodeId id) const {
  const Node& n = node(id);
  NodeInfo info;
  info.op = n.op;
  info.name = n.name;
  info.attrs = &n.attrs;
  for (ValueId input : n.inputs) {
    info.inputs.push_back(input.valid() ? &value(input).spec : nullptr);
    const bool known = input.valid() && value(input).has_known();
    info.constants.push_back(known ? &value(input).known : nullptr);
  }
  for (ValueId output : n.outputs) info.outputs.push_back(&value(output).spec);
  return info;
}

void verify(const Graph& graph) {
  const auto broken = [&](const std::string& what) {
    fail(ErrorCode::invalid_model, "graph '{}': {}", graph.name(), what);
  };
  std::vector<char> defined(graph.values().size(), 0);
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.kind != ValueKind::computed) defined[i] = 1;
    if (value.kind == ValueKind::constant && !value.has_known()) {
      broken(fmt::format("constant '{}' has no data", value.name));
    }
  }
  for (const Node& node : graph.nodes()) {
    for (ValueId id : node.inputs) {
      if (!id.valid()) continue;
      if (id.index >= defined.size() || defined[id.index] == 0) {
        broken(fmt::format("node '{}' reads a value that isn't defined before it", node.name));
      }
    }
    for (ValueId id : node.outputs) {
      if (!id.valid() || id.index >= defined.size() || defined[id.index] != 0) {
        broken(fmt::format("node '{}' writes a value that is defined already", node.name));
      }
      defined[id.index] = 1;
    }
  }
  if (graph.outputs().empty()) broken("there is no output");
  for (ValueId id : graph.outputs()) {
    if (id.index >= defined.size() || defined[id.index] == 0) broken("an output is never computed");
  }
}

}  // namespace turnout
