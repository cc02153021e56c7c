#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <tuple>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/report/atlas.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct AtlasCommand {
  ModelOptions model;
  std::string devices = "virtual:v100";
  std::string batches = "1..256";
  std::string links = "0.5,1,2,4";
  std::string threads;
  std::string weights = "resident,streamed";
  std::string json;
};

std::vector<double> parse_factors(const std::string& text) {
  std::vector<double> factors;
  for (const std::string& number : split_list(text)) {
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() ||
        !(value >= 1e-6 && value <= 1e6)) {
      fail(ErrorCode::invalid_argument, "--links: '{}' isn't a factor from 1e-6 to 1e6", number);
    }
    factors.push_back(value);
  }
  return factors;
}

std::vector<int> parse_threads(const std::string& text) {
  if (text.empty()) {
    return core_count() > 1 ? std::vector<int>{1, core_count()} : std::vector<int>{1};
  }
  std::vector<int> threads;
  for (const std::string& number : split_list(text)) {
    const std::int64_t value = parse_size(number, "--cpu-threads");
    if (value < 1 || value > core_count()) {
      fail(ErrorCode::invalid_argument, "--cpu-threads: {} isn't from 1 to {}", value,
           core_count());
    }
    threads.push_back(static_cast<int>(value));
  }
  return threads;
}

std::vector<bool> parse_weights(const std::string& text) {
  std::vector<bool> streamed;
  for (const std::string& name : split_list(text)) {
    if (name != "resident" && name != "streamed") {
      fail(ErrorCode::invalid_argument, "--weights: '{}' is neither resident nor streamed", name);
    }
    streamed.push_back(name == "streamed");
  }
  return streamed;
}

void atlas(const AtlasCommand& command) {
  const auto system = std::make_shared<System>();
  AtlasAxes axes;
  std::tie(axes.first, axes.last) = parse_range(command.batches);
  axes.link_factors = parse_factors(command.links);
  axes.threads = parse_threads(command.threads);
  axes.streamed = parse_weights(command.weights);
  const std::vector<std::string> devices = split_list(command.devices);
  for (const std::string& device : devices) {
    if (!system->open(device).info().is_host) continue;
    fail(ErrorCode::invalid_argument, "--devices: '{}' is the CPU, which all are held against",
         device);
  }
  const auto [graph, given] = command.model.load();
  SessionOptions options = command.model.session();
  bind_from_inputs(graph, given, options.dims);
  const auto history = command.model.history(*system);
  const Atlas result =
      make_atlas(*system, graph, options, batch_symbol_of(graph), devices, axes,
                 [&](int threads) { return machine_costs(system, devices, threads, history); });
  fmt::print("{}", to_text(result));
  if (!command.json.empty()) write_text(command.json, to_json(result) + "\n");
}

}  // namespace

void add_atlas(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "atlas", "The crossover over link speed, threads and weights as well; nothing is run");
  auto options = std::make_shared<AtlasCommand>();
  options->model.add_to(*command);
  command->add_option("--devices", options->devices, "comma list, each held against the CPU");
  command->add_option("--batch", options->batches, "LOW..HIGH: the batches looked at");
  command->add_option("--links", options->links, "comma list of factors of the link's speed");
  command->add_option("--cpu-threads", options->threads,
                      "comma list (default: 1 and every core); each is probed once");
  command->add_option("--weights", options->weights, "resident, streamed or both");
  command->add_option("--json", options->json, "write the cells to this file");
  command->callback([options] { atlas(*options); });
}

}  // namespace turnout::tools
