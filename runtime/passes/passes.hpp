#pragma once

#include "core/graph.hpp"

namespace turnout {

// Passes take a bound graph and return a new one that computes the same outputs; the result has to
// be bound again. Pure.

/// Replaces composite ops (those with OpDef::decompose) by their parts, until none is left.
Graph decompose(const Graph& graph, const OpRegistry& ops);
/// Turns everything that follows from constants and bound dimensions alone into constants.
Graph fold_constants(const Graph& graph, const OpRegistry& ops);
/// Drops nodes that no output needs.
Graph remove_dead_code(const Graph& graph, const OpRegistry& ops);
/// Batch normalization into the weights of the convolution before it; bias, residual sum and
/// activation into convolutions and products.
Graph fuse(const Graph& graph, const OpRegistry& ops);

struct PassOptions {
  bool fold = true;
  bool fuse = true;
};

/// bind() and the passes above, in order. The result is bound.
Graph optimize(const Graph& graph, const Bindings& sizes, const PassOptions& options = {});

}  // namespace turnout
