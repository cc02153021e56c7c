#include "runtime/gate.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "runtime/report/units.hpp"

namespace turnout {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::set<std::string> used_devices(const Plan& plan) {
  std::set<std::string> labels;
  for (const NodePlan& node : plan.nodes) {
    if (node.chosen().kernel == nullptr) continue;
    labels.insert(plan.devices[static_cast<std::size_t>(node.device)].label);
  }
  return labels;
}

// Why the plan is kept without a measurement; empty: it has to prove itself.
std::string exemption(const Plan& plan, const SessionOptions& options) {
  if (options.devices.size() < 2) return "there is one device";
  if (!options.pins.empty() || options.alternate) return "places of nodes were asked for";
  for (const DeviceSlot& slot : plan.devices) {
    if (slot.info().is_virtual) return fmt::format("{} is emulated", slot.label);
  }
  return "";
}

// One way of running the model, with memory for its outputs.
struct Runner {
  std::shared_ptr<const Session> session;
  std::vector<Tensor> outputs;
  std::vector<double> seconds;
};

}  // namespace

std::size_t choose_candidate(std::span<const GateCandidate> candidates) {
  if (candidates.empty() || !candidates[0].refusal.empty()) {
    fail(ErrorCode::invalid_argument, "gate: the plan has no measurement");
  }
  std::size_t best = 0;
  for (std::size_t c = 1; c < candidates.size(); ++c) {
    const bool better = best == 0 || candidates[c].sample.seconds < candidates[best].sample.seconds;
    if (candidates[c].refusal.empty() && better) best = c;
  }
  if (best == 0) return 0;
  const Sample& plan = candidates[0].sample;
  const Sample& alone = candidates[best].sample;
  const double spread = std::max(plan.spread, alone.spread);
  return worth_leaving(alone.seconds, plan.seconds, spread) ? 0 : best;
}

GateResult gate_plan(const std::shared_ptr<System>& system, const Graph& model,
                     const CostModel& costs, const SessionOptions& options,
                     std::span<const Tensor> inputs, const GateOptions& gate) {
  GateResult result;
  std::vector<Runner> runners(1);
  result.session = std::make_shared<const Session>(system, model, costs, options);
  runners[0].session = result.session;
  const Plan& plan = result.session->plan();
  result.candidates.push_back({"plan", {}, plan.predicted_seconds, ""});
  if (const std::string reason = exemption(plan, options); !reason.empty()) {
    result.why = "the plan is kept unmeasured: " + reason;
    return result;
  }
  const std::set<std::string> used = used_devices(plan);
  for (const std::string& label : options.devices) {
    if (used.size() == 1 && used.count(label) > 0) {
      result.candidates[0].name = label;  // the plan is that device alone
      continue;
    }
    SessionOptions alone = options;
    alone.devices = {label};
    Runner runner;
    GateCandidate candidate{label, {}, 0, ""};
    try {
      runner.session = std::make_shared<const Session>(system, model, costs, alone);
      candidate.predicted_seconds = runner.session->plan().predicted_seconds;
    } catch (const Error& error) {  // a node that the device refuses, or too little memory
      candidate.refusal = error.what();
    }
    result.candidates.push_back(std::move(candidate));
    runners.push_back(std::move(runner));
  }
  for (std::size_t c = 0; c < runners.size(); ++c) {
    if (runners[c].session != nullptr) runners[c].outputs = runners[c].session->run(inputs);
  }
  const auto begin = Clock::now();
  for (int round = 0; round < gate.least_rounds || seconds_since(begin) < gate.budget_seconds;
       ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      Runner& runner = runners[(i + static_cast<std::size_t>(round)) % runners.size()];
      if (runner.session == nullptr) continue;
      const auto start = Clock::now();
      runner.session->run(inputs, runner.outputs);
      runner.seconds.push_back(seconds_since(start));
    }
  }
  for (std::size_t c = 0; c < runners.size(); ++c) {
    result.candidates[c].sample = summarize(runners[c].seconds);
  }
  result.kept = choose_candidate(result.candidates);
  result.session = runners[result.kept].session;
  const std::string& name = result.candidates[result.kept].name;
  if (result.candidates.size() == 1) {
    result.why = "nothing to choose from";
  } else if (result.kept == 0) {
    result.why = fmt::format("{} is kept: faster than the others by more than the noise", name);
  } else {
    result.why =
        fmt::format("{} is taken instead of {}, which doesn't beat it by more than the noise", name,
                    result.candidates[0].name);
  }
  return result;
}

std::string to_text(const GateResult& result) {
  std::string text = "gate\n";
  for (const GateCandidate& candidate : result.candidates) {
    if (!candidate.refusal.empty()) {
      text += fmt::format("  {:<20} can't: {}\n", candidate.name, candidate.refusal);
    } else if (candidate.sample.count == 0) {
      text += fmt::format("  {:<20} not run\n", candidate.name);
    } else {
      text += fmt::format("  {:<20} {:>10} +- {:.1f} % of {} runs (measured), {} predicted\n",
                          candidate.name, format_seconds(candidate.sample.seconds),
                          candidate.sample.spread * 100, candidate.sample.count,
                          format_seconds(candidate.predicted_seconds));
    }
  }
  return text + "  " + result.why + "\n";
}

}  // namespace turnout
