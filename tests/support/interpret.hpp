#pragma once

#include <vector>

#include "core/graph.hpp"

namespace turnout {

/// Runs a graph node by node by the ops' references (ops without one by their decomposition). No
/// backend, no plan: what importer and references say on their own. Inputs give the symbols their
/// sizes.
std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace turnout
