#include <algorithm>

#include "core/graph.hpp"

namespace turnout {
namespace {

// Attributes as the schema wants them, defaults filled in. Integers given where reals are wanted
// are taken.
AttrMap checked_attrs(const OpDef& op, AttrMap given, const std::string& node) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorCode::invalid_argument, "[{}] node '{}': {}", op.name, node, what);
  };
  for (const auto& [name, value] : given) {
    const auto same = [&name = name](const AttrDef& def) { return def.name == name; };
    if (std::none_of(op.attrs.begin(), op.attrs.end(), same)) {
      refuse(fmt::format("unknown attribute '{}'", name));
    }
  }
  for (const AttrDef& def : op.attrs) {
    const AttrValue* value = given.find(def.name);
    if (value == nullptr) {
      if (def.required) refuse(fmt::format("attribute '{}' is missing", def.name));
      if (def.has_default) given.set(def.name, def.default_value);
      continue;
    }
    if (static_cast<AttrType>(value->index()) == def.type) continue;
    const auto* integer = std::get_if<std::int64_t>(value);
    if (def.type == AttrType::real && integer != nullptr) {
      given.set(def.name, static_cast<double>(*integer));
    } else {
      refuse(fmt::format("attribute '{}' has the wrong type", def.name));
    }
  }
  return given;
}

}  // namespace

GraphBuilder::GraphBuilder(const OpRegistry& ops, std::string name) : ops_(&ops) {
  graph_.name_ = std::move(name);
}

std::string GraphBuilder::unique(std::map<std::string, int, std::less<>>& taken,
                                 std::string_view name) {
  std::string candidate(name);
  while (taken.count(candidate) > 0) {
    candidate = fmt::format("{}_{}", name, taken.find(name)->second++);
  }
  taken.emplace(candidate, 1);
  return candidate;
}

ValueId GraphBuilder::new_value(std::string_view name, std::string_view fallback) {
  const ValueId id{static_cast<std::uint32_t>(graph_.values_.size())};
  Value value;
  value.name = unique(value_names_, name.empty() ? fallback : name);
  graph_.values_.push_back(std::move(value));
  return id;
}

ValueId GraphBuilder::input(std::string_view name, DType dtype, std::vector<Dim> dims) {
  const ValueId id = new_value(name, "input");
  Value& value = graph_.values_[id.index];
  value.kind = ValueKind::input;
  value.spec.dtype = dtype;
  if (dims.size() > Shape::kMaxRank) {
    fail(ErrorCode::unsupported, "input '{}': rank {} is above the limit of {}", value.name,
         dims.size(), Shape::kMaxRank);
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].fixed() && dims[i].size < 0) {
      dims[i] = Dim(fmt::format("{}_dim{}", value.name, i));
    }
  }
  value.dims = std::move(dims);
  graph_.inputs_.push_back(id);
  return id;
}

ValueId GraphBuilder::constant(Tensor tensor, std::string_view name) {
  if (!tensor.defined() || tensor.device() != nullptr) {
    fail(ErrorCode::invalid_argument, "constant '{}' is not a host tensor", name);
  }
  const ValueId id = new_value(name, "constant");
  Value& value = graph_.values_[id.index];
  value.kind = ValueKind::constant;
  value.spec = tensor.spec();
  value.known = std::move(tensor);
  return id;
}

ValueId GraphBuilder::add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs,
                          std::string_view name) {
  const std::string output;
  return add_node(ops_->get(op), std::move(inputs), std::move(attrs), name, {&output, 1})[0];
}

std::vector<ValueId> GraphBuilder::add_node(const OpDef& op, std::vector<ValueId> inputs,
                                            AttrMap attrs, std::string_view name,
                                            std::span<const std::string> output_names) {
  const std::string label(name.empty() && !output_names.empty() ? output_names[0] : name);
  const auto refuse = [&](const std::string& what) {
    fail(ErrorCode::invalid_argument, "[{}] node '{}': {}", op.name, label, what);
  };
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  const int input_count = static_cast<int>(inputs.size());
  const int output_count = static_cast<int>(output_names.size());
  if (input_count < op.min_inputs || input_count > op.max_inputs) {
    refuse(fmt::format("{} inputs, but the op takes {} to {}", input_count, op.min_inputs,
                       op.max_inputs));
  }
  if (output_count < op.min_outputs || output_count > op.max_outputs) {
    refuse(fmt::format("{} outputs, but the op gives {} to {}", output_count, op.min_outputs,
                       op.max_outputs));
  }
  for (int i = 0; i < input_count; ++i) {
    const ValueId id = inputs[static_cast<std::size_t>(i)];
    if (id.valid() ? id.index >= graph_.values_.size() : i < op.min_inputs) {
      refuse(fmt::format("input {} doesn't exist", i));
    }
  }
  Node node;
  node.op = &op;
  node.attrs = checked_attrs(op, std::move(attrs), label);
  node.inputs = std::move(inputs);
  const NodeId id{static_cast<std::uint32_t>(graph_.nodes_.size())};
  for (int i = 0; i < output_count; ++i) {
    const ValueId output = new_value(output_names[static_cast<std::size_t>(i)], op.name);
    graph_.values_[output.index].producer = id;
    graph_.values_[output.index].output_index = i;
    node.outputs.push_back(output);
  }
  node.name = unique(node_names_, name.empty() ? value(node.outputs[0]).name : std::string(name));
  graph_.nodes_.push_back(std::move(node));
  return graph_.nodes_.back().outputs;
}

void GraphBuilder::output(ValueId id, std::string_view name) {
  if (id.index >= graph_.values_.size()) {
    fail(ErrorCode::invalid_argument, "output '{}' doesn't exist", name);
  }
  graph_.outputs_.push_back(id);
  graph_.output_names_.emplace_back(name.empty() ? std::string_view(value(id).name) : name);
}

void GraphBuilder::set_known(ValueId id, const Tensor& known) {
  graph_.values_[id.index].known = known;
}

Graph GraphBuilder::build(bool bound) {
  graph_.bound_ = bound;
  verify(graph_);
  return std::move(graph_);
}

}  // namespace turnout
