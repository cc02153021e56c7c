#pragma once

#include <vector>

#include "core/graph.hpp"

namespace turnout {

/// Copies a bound graph node by node into a new one, with changes: the frame of every pass. Inputs
/// keep their order and dims, constants come along when first used, outputs keep their names.
/// The result isn't bound: bind() it again.
class Rewriter {
 public:
  Rewriter(const Graph& from, const OpRegistry& ops);

  const Graph& from() const { return from_; }
  GraphBuilder& builder() { return builder_; }
  /// The new graph's value for one of the old graph's. Constants are copied on demand.
  ValueId map(ValueId old);
  std::vector<ValueId> map(std::span<const ValueId> old);
  void set(ValueId old, ValueId replacement);
  bool has(ValueId old) const { return map_[old.index].valid(); }
  /// Makes the old value a constant of the new graph.
  void set_constant(ValueId old, const Tensor& value);
  void copy_node(const Node& node);
  /// A changed copy: the outputs stand for the old `node`'s.
  void emit(const Node& node, const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
            std::span<const ValueId> old_outputs);
  Graph finish();

 private:
  const Graph& from_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;
};

}  // namespace turnout
