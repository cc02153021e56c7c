#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/report/advise_report.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct AdviseCommand {
  ModelOptions model;
  std::string batches = "1..256";
  std::string devices;
  std::string objective = "throughput";
  std::vector<std::string> prices;
  std::string json;
};

// The CPU and every profile that is shipped.
std::vector<std::string> all_devices(const System& system) {
  std::vector<std::string> devices = {"cpu"};
  for (const auto& backend : system.backends()) {
    if (backend->name() != "virtual") continue;
    for (const std::string& name : backend->device_names()) devices.push_back(name);
  }
  return devices;
}

// "t4" or "h100" (an alias) for "virtual:t4" and "virtual:h100-pcie"; empty if it isn't there.
std::string find_device(System& system, const std::string& name,
                        const std::vector<std::string>& devices) {
  for (const std::string& label : {name, "virtual:" + name}) {
    if (std::find(devices.begin(), devices.end(), label) != devices.end()) return label;
  }
  try {
    const std::string title = system.open("virtual:" + name).info().title;
    for (const std::string& label : devices) {
      if (system.open(label).info().title == title) return label;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
  }
  return "";
}

std::map<std::string, double> parse_prices(System& system, const std::vector<std::string>& texts,
                                           const std::vector<std::string>& devices) {
  std::map<std::string, double> prices;
  for (const std::string& text : texts) {
    const auto [name, amount] = split_pair(text, "--price");
    const std::string device = find_device(system, name, devices);
    if (device.empty()) {
      fail(ErrorCode::invalid_argument, "--price {}: '{}' isn't among the devices", text, name);
    }
    double value = 0;
    const auto [end, error] = std::from_chars(amount.data(), amount.data() + amount.size(), value);
    if (error != std::errc() || end != amount.data() + amount.size() || !std::isfinite(value) ||
        value <= 0) {
      fail(ErrorCode::invalid_argument, "--price {}: '{}' isn't an amount > 0", text, amount);
    }
    prices[device] = value;
  }
  return prices;
}

Objective parse_objective(const std::string& name) {
  for (const Objective objective :
       {Objective::latency, Objective::throughput, Objective::energy, Objective::price}) {
    if (to_string(objective) == name) return objective;
  }
  fail(ErrorCode::invalid_argument, "--objective: there is no '{}'", name);
}

void advise(const AdviseCommand& command) {
  const auto system = std::make_shared<System>();
  AdviceReport report;
  report.objective = parse_objective(command.objective);
  report.batches = parse_batches(command.batches);
  std::sort(report.batches.begin(), report.batches.end());
  const std::vector<std::string> devices =
      command.devices.empty() ? all_devices(*system) : split_list(command.devices);
  const std::map<std::string, double> prices = parse_prices(*system, command.prices, devices);
  if (report.objective == Objective::price && prices.empty()) {
    fail(ErrorCode::invalid_argument, "--objective price needs --price NAME=AMOUNT");
  }
  const auto [graph, given] = command.model.load();
  const std::string symbol = batch_symbol_of(graph);
  if (symbol.empty()) {
    fail(ErrorCode::invalid_argument, "model '{}' has no symbolic batch dimension", graph.name());
  }
  SessionOptions options = command.model.session();
  bind_from_inputs(graph, given, options.dims);
  const CostModel costs =
      machine_costs(system, devices, options.threads, command.model.history(*system));
  report.model = graph.name();
  report.ranked =
      rank(candidates(*system, graph, costs, options, symbol, devices, report.batches, prices),
           report.objective);
  fmt::print("{}", to_text(report));
  if (!command.json.empty()) write_text(command.json, to_json(report) + "\n");
}

}  // namespace

void add_advise(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("advise", "Which device for this model: ranks devices, nothing is run");
  auto options = std::make_shared<AdviseCommand>();
  options->model.add_to(*command);
  options->model.add_weights_to(*command);
  command->add_option("--batch", options->batches, "LOW..HIGH (powers of two) or 1,8,64");
  command->add_option("--devices", options->devices,
                      "comma list (default: cpu and every shipped profile)");
  command->add_option("--objective", options->objective, "what to rank by")
      ->check(CLI::IsMember({"latency", "throughput", "energy", "price"}));
  command->add_option("--price", options->prices,
                      "NAME=AMOUNT of a device, in any unit; may be given several times");
  command->add_option("--json", options->json, "write the ranking to this file");
  command->callback([options] { advise(*options); });
}

}  // namespace turnout::tools
