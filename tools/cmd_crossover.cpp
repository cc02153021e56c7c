#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/report/crossover_report.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct CrossoverCommand {
  ModelOptions model;
  std::string devices = "cpu,virtual:v100";
  std::string batches = "1..1024";
  std::string json;
  bool per_op = false;
};

void crossover(const CrossoverCommand& command) {
  const auto system = std::make_shared<System>();
  const auto [first, last] = parse_range(command.batches);
  const auto [graph, given] = command.model.load();
  SessionOptions options = command.model.session();
  options.devices = split_list(command.devices);
  std::erase(options.devices, "auto");  // the plan over all devices is always there
  if (options.devices.size() < 2) {
    fail(ErrorCode::invalid_argument, "--devices {}: a crossover needs two devices",
         command.devices);
  }
  bind_from_inputs(graph, given, options.dims);
  const CostModel costs =
      machine_costs(system, options.devices, options.threads, command.model.history(*system));
  BatchSweep sweep(*system, graph, costs, options, batch_symbol_of(graph));
  const CrossoverReport report = find_crossover(*system, sweep, costs, first, last, command.per_op);
  fmt::print("{}", to_text(report));
  if (!command.json.empty()) write_text(command.json, to_json(report) + "\n");
}

}  // namespace

void add_crossover(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "crossover", "From which batch on which device wins, with how sure that is; nothing is run");
  auto options = std::make_shared<CrossoverCommand>();
  options->model.add_to(*command);
  options->model.add_weights_to(*command);
  command->add_option("--devices", options->devices, "comma list of two or more devices");
  command->add_option("--batch", options->batches, "LOW..HIGH: the batches looked at");
  command->add_flag("--per-op", options->per_op, "also each op alone");
  command->add_option("--json", options->json, "write the intervals to this file");
  command->callback([options] { crossover(*options); });
}

}  // namespace turnout::tools
