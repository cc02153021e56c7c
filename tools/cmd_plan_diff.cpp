#include <fmt/format.h>

#include <memory>

#include "runtime/io/file.hpp"
#include "runtime/plan/plan_diff.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct PlanDiffCommand {
  std::string before, after, json;
};

void plan_diff(const PlanDiffCommand& command) {
  constexpr std::uint64_t kMaxBytes = 64 << 20;
  const PlanRecord before = parse_plan(read_file(command.before, kMaxBytes), command.before);
  const PlanRecord after = parse_plan(read_file(command.after, kMaxBytes), command.after);
  const PlanDiff diff = diff_plans(before, after);
  fmt::print("{}", to_text(diff));
  if (!command.json.empty()) write_text(command.json, to_json(diff) + "\n");
}

}  // namespace

void add_plan_diff(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "plan-diff", "What moved between two plans of a model, and why (files of plan --json)");
  auto options = std::make_shared<PlanDiffCommand>();
  command->add_option("before", options->before, "JSON file of turnout plan")->required();
  command->add_option("after", options->after, "JSON file of turnout plan")->required();
  command->add_option("--json", options->json, "write the differences to this file");
  command->callback([options] { plan_diff(*options); });
}

}  // namespace turnout::tools
