#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "runtime/report/compare.hpp"
#include "runtime/report/html.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct CompareCommand {
  ModelOptions model;
  std::string batches = "1..64";
  std::string devices = "cpu,auto";
  std::string json;
  std::string html;
  double budget = 1;
};

void show_progress(int done, int total, const std::string& what) {
  constexpr int kWidth = 30;
  const int filled = total > 0 ? kWidth * done / total : kWidth;
  fmt::print(stderr, "\r[{:<{}}] {}/{} {:<40}", std::string(static_cast<std::size_t>(filled), '#'),
             kWidth, done, total, what);
  if (what == "done") fmt::print(stderr, "\r{:<90}\r", "");
  std::fflush(stderr);
}

void run_compare(const CompareCommand& command) {
  const auto system = std::make_shared<System>();
  CompareOptions options;
  const auto [graph, given] = command.model.load();
  options.batches = parse_batches(command.batches);
  options.devices = split_list(command.devices);
  options.inputs = given;
  const SessionOptions session = command.model.session();
  options.dims = session.dims;
  options.batch_symbol = batch_symbol_of(graph);
  bind_from_inputs(graph, options.inputs, options.dims);
  options.dims.erase(options.batch_symbol);
  options.providers = session.providers;
  options.threads = session.threads;
  options.budget_seconds = command.budget;
  if (isatty(STDERR_FILENO) != 0) options.progress = show_progress;
  options.history = command.model.history(*system);
  Comparison comparison = compare(system, graph, options);
  if (!command.model.no_history) keep_history(*system, *options.history);
  comparison.model = std::filesystem::path(command.model.model).stem().string();
  fmt::print("{}", to_text(comparison));
  if (!command.json.empty()) write_text(command.json, to_json(comparison) + "\n");
  if (!command.html.empty()) write_text(command.html, to_html(comparison));
  if (!comparison.outputs_agree) {
    fail(ErrorCode::internal, "outputs of model '{}' differ between devices", graph.name());
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "The same inputs on every device and batch: who wins, and from which batch on");
  auto options = std::make_shared<CompareCommand>();
  options->model.add_to(*command);
  command->add_option("--batch", options->batches, "1,8,64 or 1..1024 (powers of two)");
  command->add_option("--devices", options->devices,
                      "comma list of cpu, cpu:PROVIDER, virtual:PROFILE, auto");
  command->add_option("--budget", options->budget, "seconds for each device and batch")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--json", options->json, "write the table to this file");
  command->add_option("--html", options->html, "write a report with charts to this file");
  command->callback([options] { run_compare(*options); });
}

}  // namespace turnout::tools
