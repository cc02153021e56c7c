#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewriter.hpp"

namespace turnout {

Graph decompose(const Graph& graph, const OpRegistry& ops) {
  Rewriter rewriter(graph, ops);
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op->decompose == nullptr) {
      rewriter.copy_node(node);
      continue;
    }
    const std::vector<ValueId> inputs = rewriter.map(node.inputs);
    const auto outputs = node.op->decompose(graph.info(NodeId{n}), inputs, rewriter.builder());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      rewriter.set(node.outputs[i], outputs.at(i));
    }
  }
  return rewriter.finish();
}

}  // namespace turnout
