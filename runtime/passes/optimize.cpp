#include "ops/all_ops.hpp"
#include "runtime/passes/passes.hpp"

namespace turnout {

Graph optimize(const Graph& graph, const Bindings& sizes, const PassOptions& options) {
  const OpRegistry& ops = all_ops();
  Graph bound = graph.bind(sizes);
  bound = decompose(bound, ops).bind(sizes);
  if (options.fold) {
    bound = fold_constants(bound, ops).bind(sizes);
    bound = remove_dead_code(bound, ops).bind(sizes);
  }
  if (options.fuse) {
    bound = fuse(bound, ops).bind(sizes);
    bound = remove_dead_code(bound, ops).bind(sizes);
  }
  return bound;
}

}  // namespace turnout
