#include "runtime/passes/rewriter.hpp"

namespace turnout {

Rewriter::Rewriter(const Graph& from, const OpRegistry& ops)
    : from_(from), builder_(ops, from.name()), map_(from.values().size()) {
  for (ValueId id : from.inputs()) {
    const Value& value = from.value(id);
    map_[id.index] = builder_.input(value.name, value.spec.dtype, value.dims);
  }
}

ValueId Rewriter::map(ValueId old) {
  if (!old.valid()) return old;
  ValueId& mapped = map_[old.index];
  if (!mapped.valid()) {
    const Value& value = from_.value(old);
    if (value.kind != ValueKind::constant) {
      fail(ErrorCode::internal, "pass over '{}': value '{}' was dropped but is still used",
           from_.name(), value.name);
    }
    mapped = builder_.constant(value.known, value.name);
  }
  return mapped;
}

std::vector<ValueId> Rewriter::map(std::span<const ValueId> old) {
  std::vector<ValueId> result;
  for (ValueId id : old) result.push_back(map(id));
  return result;
}

void Rewriter::set(ValueId old, ValueId replacement) { map_[old.index] = replacement; }

void Rewriter::set_constant(ValueId old, const Tensor& value) {
  set(old, builder_.constant(value, from_.value(old).name));
}

void Rewriter::copy_node(const Node& node) {
  emit(node, *node.op, map(node.inputs), node.attrs, node.outputs);
}

void Rewriter::emit(const Node& node, const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                    std::span<const ValueId> old_outputs) {
  std::vector<std::string> names;
  for (ValueId id : old_outputs) names.push_back(from_.value(id).name);
  const auto outputs = builder_.add_node(op, std::move(inputs), std::move(attrs), node.name, names);
  for (std::size_t i = 0; i < outputs.size(); ++i) set(old_outputs[i], outputs[i]);
}

Graph Rewriter::finish() {
  for (std::size_t i = 0; i < from_.outputs().size(); ++i) {
    builder_.output(map(from_.outputs()[i]), from_.output_names()[i]);
  }
  return builder_.build();
}

}  // namespace turnout
