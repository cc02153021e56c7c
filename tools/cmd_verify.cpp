#include <fmt/format.h>

#include <memory>

#include "runtime/onnx/verify.hpp"
#include "runtime/session.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct VerifyCommand {
  std::vector<std::string> folders;
  std::string device = "cpu";
  std::string providers;
  std::string place = "plan";
  bool quiet = false;
};

void verify(const VerifyCommand& command) {
  const auto system = std::make_shared<System>();
  SessionOptions options;
  options.devices = split_list(command.device);
  if (!command.providers.empty()) options.providers = split_list(command.providers);
  options.alternate = command.place == "alternate";
  const RunGraph run = [&](const Graph& graph, const std::vector<Tensor>& inputs) {
    SessionOptions bound = options;
    bound.dims = bindings_from(graph, inputs);
    return Session(system, graph, CostModel(), bound).run(inputs);
  };
  int counts[3] = {0, 0, 0};
  constexpr const char* kNames[] = {"pass", "FAIL", "unsupported"};
  for (const std::string& folder : command.folders) {
    const VerifyResult result = verify_onnx(folder, run);
    const auto status = static_cast<std::size_t>(result.status);
    ++counts[status];
    if (command.quiet && result.status != VerifyResult::Status::failed) continue;
    fmt::print("{:<12} {}{}{}\n", kNames[status], folder, result.reason.empty() ? "" : ": ",
               result.reason);
  }
  fmt::print("{} passed, {} failed, {} unsupported\n", counts[0], counts[1], counts[2]);
  if (counts[1] > 0) throw CLI::RuntimeError(1);
}

}  // namespace

void add_verify(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("verify", "Run ONNX test folders (model.onnx, test_data_set_*)");
  auto options = std::make_shared<VerifyCommand>();
  command->add_option("folders", options->folders, "test folders")->required();
  command->add_option("--device", options->device, "comma list, e.g. cpu or cpu,virtual:v100");
  command->add_option("--providers", options->providers, "the only CPU providers allowed");
  command->add_option("--place", options->place, "plan or alternate")
      ->check(CLI::IsMember({"plan", "alternate"}));
  command->add_flag("--quiet", options->quiet, "print failures and the sum only");
  command->callback([options] { verify(*options); });
}

}  // namespace turnout::tools
