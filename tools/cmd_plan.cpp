#include <fmt/format.h>

#include <memory>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/io/file.hpp"
#include "runtime/plan/device_share.hpp"
#include "runtime/plan/dot.hpp"
#include "runtime/plan/explain.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct PlanCommand {
  ModelOptions model;
  std::string devices = "cpu";
  std::string batch;
  std::string costs_file;
  std::string objective = "serial";
  std::string json;
  std::string dot;
  bool explain = false;
  bool graph = false;
};

// With costs from outside only the model's structure counts: nothing is bound, folded or fused.
Explanation plan_with_costs(System& system, const PlanCommand& command) {
  constexpr std::uint64_t kMaxBytes = 64 << 20;
  const CostTable table =
      parse_cost_table(read_file(command.costs_file, kMaxBytes), command.costs_file);
  const std::vector<std::string> labels = split_list(command.devices);
  if (labels != table.devices) {
    fail(ErrorCode::invalid_argument, "--devices {} aren't the cost table's devices {}",
         fmt::join(labels, ","), fmt::join(table.devices, ","));
  }
  std::vector<DeviceSlot> slots;
  for (const std::string& label : labels) slots.push_back(system.open(label));
  if (!slots[0].info().is_host) {
    fail(ErrorCode::invalid_argument, "the first device of a cost table has to be the cpu");
  }
  const SessionOptions session = command.model.session();
  PlanOptions options;
  options.pins = session.pins;
  options.alternate = session.alternate;
  options.check_memory = false;
  options.costs = &table;
  Explanation result;
  result.planned.graph = import_onnx(command.model.model);
  result.planned.plan =
      make_plan(result.planned.graph, std::move(slots), true, CostModel(), options);
  return result;
}

Explanation plan_by_model(const std::shared_ptr<System>& system, const PlanCommand& command) {
  const auto [graph, given] = command.model.load();
  SessionOptions options = command.model.session();
  options.devices = split_list(command.devices);
  bind_from_inputs(graph, given, options.dims);
  if (!command.batch.empty()) {
    const std::string symbol = batch_symbol_of(graph);
    if (symbol.empty()) {
      fail(ErrorCode::invalid_argument, "model '{}' has no symbolic batch dimension", graph.name());
    }
    options.dims[symbol] = parse_size(command.batch, "--batch");
  }
  const CostModel costs =
      machine_costs(system, options.devices, options.threads, command.model.history(*system));
  return explain(*system, graph, costs, options, command.explain);
}

void plan(const PlanCommand& command) {
  const auto system = std::make_shared<System>();
  const Explanation explanation = command.costs_file.empty() ? plan_by_model(system, command)
                                                             : plan_with_costs(*system, command);
  if (!command.model.require_device.empty()) {
    require_device(explanation.planned.graph, explanation.planned.plan,
                   command.model.require_device);
  }
  if (command.graph) fmt::print("{}", to_text(explanation.planned.graph));
  fmt::print("{}", to_text(explanation, command.explain));
  if (!command.dot.empty()) write_text(command.dot, to_dot(explanation.planned));
  if (command.json.empty()) return;
  write_text(command.json, to_json(explanation) + "\n");
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "Which node would run where, what is copied, how long it takes");
  auto options = std::make_shared<PlanCommand>();
  options->model.add_to(*command);
  options->model.add_placement_to(*command);
  options->model.add_weights_to(*command);
  command->add_option("--batch", options->batch, "size of the batch dimension");
  command->add_option("--devices", options->devices, "comma list, e.g. cpu,virtual:h100");
  command->add_flag("--explain", options->explain,
                    "per node: times elsewhere, refusals, when it would move");
  command->add_flag("--graph", options->graph, "print the graph that is planned");
  command->add_option(
      "--costs", options->costs_file,
      "JSON file with the seconds of every node and copy, used instead of the model");
  command->add_option("--objective", options->objective, "serial: the sum of all times")
      ->check(CLI::IsMember({"serial"}));
  command->add_option("--json", options->json, "write the plan to this file; see plan-diff");
  command->add_option("--dot", options->dot, "write the plan as a Graphviz graph to this file");
  command->callback([options] { plan(*options); });
}

}  // namespace turnout::tools
