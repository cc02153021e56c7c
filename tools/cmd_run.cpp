#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/exec/check.hpp"
#include "runtime/gate.hpp"
#include "runtime/io/npy.hpp"
#include "runtime/plan/device_share.hpp"
#include "runtime/plan/explain.hpp"
#include "runtime/report/units.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct RunCommand {
  ModelOptions model;
  std::string device = "auto";
  std::string batch;
  std::string output_folder;
  int repeat = 1;
  double gate = 0;
  bool plain_layouts = false;
  bool check = false;
};

// 64-bit FNV-1a of the bytes: to see at a glance whether two runs gave the same.
std::uint64_t digest(const Tensor& tensor) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto* bytes = static_cast<const unsigned char*>(tensor.address());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3U;
  return hash;
}

void print_output(const std::string& name, const Tensor& tensor) {
  const std::vector<double> values = to_double(tensor);
  std::string shown;
  for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 6); ++i) {
    shown += fmt::format(" {:.6g}", values[i]);
  }
  fmt::print("output {:<24} {:<18} digest {:016x} {}{}\n", name, to_string(tensor.spec()),
             digest(tensor), shown, values.size() > 6 ? " ..." : "");
}

// ONNX names may hold characters that a file name can't.
std::string file_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '_';
  }
  return name + ".npy";
}

void print_providers(const Session& session, const Session::Timing& timing) {
  std::map<std::string, std::pair<int, double>> sums;
  for (std::size_t s = 0; s < session.program().steps.size(); ++s) {
    const ExecStep& step = session.program().steps[s];
    const DeviceSlot& slot = session.plan().devices[static_cast<std::size_t>(step.device)];
    std::string key = step.kind == ExecStep::Kind::copy ? "copies"
                      : !step.node.valid()              ? slot.label + " reorders"
                                                        : slot.label + " " + step.provider;
    auto& [count, seconds] = sums[key];
    ++count;
    seconds += timing.step_seconds[s];
  }
  for (const auto& [key, sum] : sums) {
    fmt::print("  {:<32} {:>5}  {:>10}\n", key, sum.first, format_seconds(sum.second));
  }
}

// Every node's kernel against the reference; exit code 1 if one is off.
void check(const std::shared_ptr<System>& system, const Session& session,
           std::span<const Tensor> inputs) {
  int wrong = 0;
  const std::vector<NodeCheck> checks = check_nodes(system, session, inputs);
  for (const NodeCheck& node : checks) {
    if (!node.ok()) ++wrong;
    fmt::print("  {} {:<32} {:<20} {} {} {}: difference {:.1e}, allowed {:.1e}\n",
               node.ok() ? "ok  " : "FAIL", node.node, node.op, node.device, node.provider,
               node.implementation, node.difference, node.allowed);
  }
  fmt::print("{} nodes checked against the reference, {} off\n", checks.size(), wrong);
  if (wrong > 0) throw CLI::RuntimeError(1);
}

void run(const RunCommand& command) {
  const auto system = std::make_shared<System>();
  const auto [graph, given] = command.model.load();
  SessionOptions options = command.model.session();
  options.devices = command.device == "auto" ? real_devices(*system) : split_list(command.device);
  options.choose_layouts = !command.plain_layouts;
  const std::string symbol = batch_symbol_of(graph);
  if (!command.batch.empty()) {
    if (symbol.empty()) {
      fail(ErrorCode::invalid_argument, "model '{}' has no symbolic batch dimension", graph.name());
    }
    options.dims[symbol] = parse_size(command.batch, "--batch");
  }
  bind_from_inputs(graph, given, options.dims);
  const bool plans = options.devices.size() > 1;
  const std::shared_ptr<CostHistory> history = command.model.history(*system);
  const CostModel costs =
      plans ? machine_costs(system, options.devices, options.threads, history) : CostModel();
  auto chosen = std::make_shared<const Session>(system, graph, costs, options);
  if (!command.model.require_device.empty()) {
    require_device(chosen->graph(), chosen->plan(), command.model.require_device);
  }
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < chosen->inputs().size(); ++i) {
    const auto& io = chosen->inputs()[i];
    const auto at = given.find(io.name);
    const Value& declared = graph.value(graph.inputs()[i]);
    const bool batched =
        !symbol.empty() && !declared.dims.empty() && declared.dims[0].symbol == symbol;
    if (at == given.end())
      fmt::print("note: input '{}' was not given: seeded random numbers\n", io.name);
    inputs.push_back(
        make_input(io.name, io.spec, at == given.end() ? nullptr : &at->second, batched));
  }
  if (command.gate > 0) {
    const GateResult gate = gate_plan(system, graph, costs, options, inputs, {command.gate, 5});
    chosen = gate.session;
    fmt::print("{}", to_text(gate));
  }
  const Session& session = *chosen;
  std::vector<Tensor> outputs = session.run(inputs);
  Session::Timing timing;
  int disturbed = 0;
  for (int i = 0; i < command.repeat; ++i) {
    timing = session.run_timed(inputs, outputs);
    session.record(timing, *history);
    disturbed += timing.disturbed ? 1 : 0;
  }
  if (!command.model.no_history) keep_history(*system, *history);
  if (disturbed > 0) {
    fmt::print("note: the machine had other work during {} of {} runs: their times aren't kept\n",
               disturbed, command.repeat);
  }
  fmt::print("{}\n", summary(session.plan()));
  print_providers(session, timing);
  const bool is_virtual = std::any_of(
      session.plan().nodes.begin(), session.plan().nodes.end(), [&](const NodePlan& node) {
        return session.plan().devices[static_cast<std::size_t>(node.device)].info().is_virtual;
      });
  fmt::print("latency {} ({})\n", format_seconds(timing.latency_seconds),
             is_virtual ? "virtual devices predicted, CPU measured" : "measured, step by step");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    print_output(session.outputs()[i].name, outputs[i]);
    if (command.output_folder.empty()) continue;
    std::filesystem::create_directories(command.output_folder);
    save_npy(std::filesystem::path(command.output_folder) / file_name(session.outputs()[i].name),
             outputs[i]);
  }
  if (command.check) check(system, session, inputs);
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Run a model once; print and write its outputs");
  auto options = std::make_shared<RunCommand>();
  options->model.add_to(*command);
  options->model.add_placement_to(*command);
  command->add_option("--batch", options->batch,
                      "size of the batch dimension; inputs are repeated");
  command->add_option("--device,--devices", options->device,
                      "auto (every real device), or a comma list, e.g. cpu,virtual:h100");
  command->add_option("--output-dir", options->output_folder, "write outputs there as .npy");
  command->add_option("--repeat", options->repeat, "runs; the last one's times are printed")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--gate", options->gate,
                   "seconds to try the plan in against each of its real devices alone")
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--plain-layouts", options->plain_layouts, "no blocked layouts");
  command->add_flag("--check", options->check,
                    "hold every node's kernel against the reference (slow)");
  command->callback([options] { run(*options); });
}

}  // namespace turnout::tools
