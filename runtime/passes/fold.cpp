#include <algorithm>

#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewriter.hpp"

namespace turnout {
namespace {

// What the naive reference does in well under a second. Larger work is left to a kernel.
constexpr double kMaxFlops = 2e8;
constexpr double kMaxBytes = 512.0 * 1024 * 1024;

// Folding must not turn a small model into a huge one (an expand of a scalar).
bool worth_folding(const NodeInfo& info) {
  const Cost cost = cost_of(info);
  if (cost.flops > kMaxFlops || cost.bytes_written > kMaxBytes) return false;
  return cost.bytes_written <= 4 * cost.bytes_read + 65536;
}

}  // namespace

Graph fold_constants(const Graph& graph, const OpRegistry& ops) {
  Rewriter rewriter(graph, ops);
  std::vector<Tensor> known(graph.values().size());
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = graph.values()[i].known;
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    NodeInfo info = graph.info(NodeId{n});
    bool all_known = true;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const Tensor& tensor = known[node.inputs[i].index];
      info.constants[i] = tensor.defined() ? &tensor : nullptr;
      all_known = all_known && tensor.defined();
    }
    const bool done = known[node.outputs[0].index].defined();
    if (!done && all_known && node.op->reference != nullptr && worth_folding(info)) {
      const std::vector<Tensor> outputs = evaluate(info, info.constants);
      for (std::size_t i = 0; i < outputs.size(); ++i) known[node.outputs[i].index] = outputs[i];
    }
    if (!known[node.outputs[0].index].defined()) {
      rewriter.copy_node(node);
      continue;
    }
    for (ValueId id : node.outputs) rewriter.set_constant(id, known[id.index]);
  }
  return rewriter.finish();
}

Graph remove_dead_code(const Graph& graph, const OpRegistry& ops) {
  std::vector<char> needed(graph.values().size(), 0);
  for (ValueId id : graph.outputs()) needed[id.index] = 1;
  std::vector<char> keep(graph.nodes().size(), 0);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    keep[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId id) { return needed[id.index] != 0; });
    if (keep[n] == 0) continue;
    for (ValueId id : node.inputs) {
      if (id.valid()) needed[id.index] = 1;
    }
  }
  Rewriter rewriter(graph, ops);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (keep[n] != 0) rewriter.copy_node(graph.nodes()[n]);
  }
  return rewriter.finish();
}

}  // namespace turnout
