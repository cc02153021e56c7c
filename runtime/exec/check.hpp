#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/session.hpp"

namespace turnout {

/// One node's kernel held against the reference of its op, on the reference's inputs.
struct NodeCheck {
  std::string node, op, device, provider, implementation;
  double difference = 0;  ///< of outputs, relative to their range; see output_difference()
  double allowed = 0;     ///< the op's tolerance in the same measure
  bool ok() const { return difference <= allowed; }
};

/// The debug mode of a session: computes every value by the ops' references, in the session's own
/// (optimized) graph, and runs each node's kernel alone on them. Slow: naive loops for everything.
/// Blocking. Errors: what run() throws.
std::vector<NodeCheck> check_nodes(const std::shared_ptr<System>& system, const Session& session,
                                   std::span<const Tensor> inputs);

}  // namespace turnout
