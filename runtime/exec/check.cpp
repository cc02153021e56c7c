#include "runtime/exec/check.hpp"

#include <algorithm>

#include "ops/all_ops.hpp"
#include "runtime/report/compare.hpp"

namespace turnout {
namespace {

// The node alone: constants stay constants, other operands become inputs.
Graph one_node(const Graph& graph, const Node& node, std::vector<ValueId>& fed) {
  GraphBuilder builder(all_ops(), node.name);
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) {
    if (!id.valid()) {
      inputs.push_back(id);
      continue;
    }
    const Value& value = graph.value(id);
    if (value.has_known()) {
      inputs.push_back(builder.constant(value.known));
      continue;
    }
    std::vector<Dim> dims(value.spec.shape.begin(), value.spec.shape.end());
    inputs.push_back(builder.input(value.name, value.spec.dtype, std::move(dims)));
    fed.push_back(id);
  }
  std::vector<std::string> names;
  for (ValueId id : node.outputs) names.push_back(graph.value(id).name);
  for (ValueId id : builder.add_node(*node.op, inputs, node.attrs, node.name, names)) {
    builder.output(id);
  }
  return builder.build();
}

NodeCheck check_node(const std::shared_ptr<System>& system, const Session& session, NodeId id,
                     std::span<const Tensor> values, std::span<const Tensor> expected) {
  const Node& node = session.graph().node(id);
  const NodePlan& planned = session.plan().nodes[id.index];
  const DeviceSlot& slot = session.plan().devices[static_cast<std::size_t>(planned.device)];
  NodeCheck check{node.name, node.op->name, slot.label, planned.chosen().kernel->provider, "", 0,
                  0};
  std::vector<ValueId> fed;
  const Graph alone = one_node(session.graph(), node, fed);
  SessionOptions options;
  options.devices = {slot.info().is_host ? "cpu" : slot.label};
  if (slot.info().is_host) options.providers = {check.provider};
  options.threads = slot.threads;
  options.fold = false;
  options.fuse = false;
  const Session kernel(system, alone, CostModel(), options);
  std::vector<Tensor> inputs;
  for (ValueId value : fed) inputs.push_back(values[value.index]);
  check.difference = output_difference(kernel.run(inputs), expected);
  const Tolerance tolerance = tolerance_of(session.graph().info(id), expected[0].dtype());
  check.allowed = std::max(tolerance.relative, tolerance.absolute);
  for (const ExecStep& step : kernel.program().steps) {
    if (step.kernel != nullptr && step.node.valid()) {
      check.implementation = step.kernel->implementation();
    }
  }
  return check;
}

}  // namespace

std::vector<NodeCheck> check_nodes(const std::shared_ptr<System>& system, const Session& session,
                                   std::span<const Tensor> inputs) {
  const Graph& graph = session.graph();
  std::vector<Tensor> values(graph.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = graph.values()[i].known;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  std::vector<NodeCheck> checks;
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::vector<const Tensor*> operands;
    for (ValueId id : node.inputs) operands.push_back(id.valid() ? &values[id.index] : nullptr);
    const std::vector<Tensor> expected = evaluate(graph.info(NodeId{n}), operands);
    if (!node.op->view) {
      checks.push_back(check_node(system, session, NodeId{n}, values, expected));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) values[node.outputs[i].index] = expected[i];
  }
  return checks;
}

}  // namespace turnout
