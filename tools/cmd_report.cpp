#include <fmt/format.h>

#include <memory>

#include "runtime/io/file.hpp"
#include "runtime/report/html.hpp"
#include "runtime/report/merge.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct ReportCommand {
  std::vector<std::string> files;
  std::string html;
  std::string json;
};

void report(const ReportCommand& command) {
  constexpr std::uint64_t kMaxBytes = 64 << 20;
  std::vector<Comparison> comparisons;
  for (const std::string& file : command.files) {
    comparisons.push_back(parse_comparison(read_file(file, kMaxBytes), file));
  }
  const Comparison merged = merge(comparisons, command.files);
  fmt::print("{}", to_text(merged));
  if (!command.json.empty()) write_text(command.json, to_json(merged) + "\n");
  if (!command.html.empty()) write_text(command.html, to_html(merged));
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "report", "One report of what compare --json wrote on several machines or builds");
  auto options = std::make_shared<ReportCommand>();
  command->add_option("files", options->files, "JSON files of turnout compare, of one model")
      ->required();
  command->add_option("--html", options->html, "write a report with charts to this file");
  command->add_option("--json", options->json, "write the merged table to this file");
  command->callback([options] { report(*options); });
}

}  // namespace turnout::tools
