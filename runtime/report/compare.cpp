#include "runtime/report/compare.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/gate.hpp"
#include "runtime/plan/digest.hpp"
#include "runtime/plan/explain.hpp"

namespace turnout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxRuns = 1000;
constexpr int kGateRounds = 2;  // at least, whatever the budget
constexpr int kTimedRuns = CostHistory::kMinSamples;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool is_batched(const Value& input, const std::string& symbol) {
  return !symbol.empty() && !input.dims.empty() && input.dims[0].symbol == symbol;
}

class Comparer {
 public:
  Comparer(const std::shared_ptr<System>& system, const Graph& model, const CompareOptions& options)
      : system_(system),
        model_(model),
        options_(options),
        symbol_(options.batch_symbol),
        history_(options.history != nullptr ? options.history : std::make_shared<CostHistory>()) {
    if (symbol_.empty()) symbol_ = batch_symbol_of(model);
    if (symbol_.empty() && options.batches.size() > 1) {
      fail(ErrorCode::invalid_argument, "model '{}' has no symbolic batch dimension", model.name());
    }
    result_.model = model.name();
    result_.model_digest = graph_digest(model);
    result_.input_digest = digest_inputs();
    result_.machines = {this_machine(*system)};
  }

  Comparison run();

 private:
  void run_batch(std::int64_t batch, int& done);
  CompareRow run_cell(const std::string& device, std::int64_t batch);
  void measure(const Session& session, std::int64_t batch, CompareRow& row);
  void check_virtual(const Session& session, std::int64_t batch, CompareRow& row);
  void describe(const Session& session, const std::vector<double>* seconds, CompareRow& row) const;
  void describe(const PlannedModel& planned, CompareRow& row) const;
  void compare_outputs(std::span<const Tensor> outputs, std::int64_t batch, CompareRow& row);
  std::vector<Tensor> make_inputs(const Session& session) const;
  SessionOptions session_options(const std::string& device, std::int64_t batch) const;
  bool over_budget(const std::string& device, std::int64_t batch) const;
  void find_crossovers();
  std::string digest_inputs() const;

  const std::shared_ptr<System>& system_;
  const Graph& model_;
  const CompareOptions& options_;
  std::string symbol_;
  std::shared_ptr<CostHistory> history_;
  int timed_ = 0, disturbed_ = 0;  // runs with the time of every node
  CostModel costs_;
  Comparison result_;
  std::vector<Tensor> reference_;            // outputs of the current batch's first executed row
  std::set<std::int64_t> executed_batches_;  // of virtual devices
};

// Of what was given, and of the names of what wasn't: those get seeded random numbers.
std::string Comparer::digest_inputs() const {
  Digest digest;
  for (ValueId id : model_.inputs()) {
    const std::string& name = model_.value(id).name;
    const auto given = options_.inputs.find(name);
    digest.add(name);
    if (given != options_.inputs.end()) digest.add(given->second);
  }
  for (const auto& [name, size] : options_.dims) digest.add(fmt::format("{}={}", name, size));
  return digest.hex();
}

SessionOptions Comparer::session_options(const std::string& device, std::int64_t batch) const {
  SessionOptions options;
  options.dims = options_.dims;
  if (!symbol_.empty()) options.dims[symbol_] = batch;
  options.providers = options_.providers;
  options.threads = options_.threads;
  options.devices = {device};
  if (device != "auto") return options;
  options.devices = {"cpu"};
  for (const std::string& other : options_.devices) {
    const bool is_cpu = other == "cpu" || other.rfind("cpu:", 0) == 0;
    if (other != "auto" && !is_cpu) options.devices.push_back(other);
  }
  return options;
}

// A device whose one run took longer than its budget at a smaller batch isn't tried at a larger one
// if that would take longer still.
bool Comparer::over_budget(const std::string& device, std::int64_t batch) const {
  for (const CompareRow& row : result_.rows) {
    if (row.device != device || row.batch >= batch || !row.skipped.empty() || !row.executed)
      continue;
    const double scale = static_cast<double>(batch) / static_cast<double>(row.batch);
    if (row.evidence == Evidence::measured &&
        row.latency_seconds * scale > options_.budget_seconds * 1.5) {
      return true;
    }
  }
  return false;
}

std::vector<Tensor> Comparer::make_inputs(const Session& session) const {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < session.inputs().size(); ++i) {
    const auto& io = session.inputs()[i];
    const auto given = options_.inputs.find(io.name);
    const Value& declared = model_.value(model_.inputs()[i]);
    inputs.push_back(make_input(io.name, io.spec,
                                given == options_.inputs.end() ? nullptr : &given->second,
                                is_batched(declared, symbol_)));
  }
  return inputs;
}

void Comparer::compare_outputs(std::span<const Tensor> outputs, std::int64_t batch,
                               CompareRow& row) {
  if (reference_.empty()) {
    reference_.assign(outputs.begin(), outputs.end());
    return;
  }
  row.difference = output_difference(outputs, reference_);
  if (row.difference <= options_.tolerance) return;
  result_.outputs_agree = false;
  result_.notes.push_back(fmt::format("outputs of {} at batch {} differ by {:.2g} of their range",
                                      row.device, batch, row.difference));
}

// Runs until the budget is used up; then a few runs with the time of every step.
void Comparer::measure(const Session& session, std::int64_t batch, CompareRow& row) {
  const std::vector<Tensor> inputs = make_inputs(session);
  std::vector<double> times;
  const auto begin = Clock::now();
  std::vector<Tensor> outputs = session.run(inputs);
  const double first = seconds_since(begin);
  compare_outputs(outputs, batch, row);
  while (static_cast<int>(times.size()) < kMaxRuns &&
         seconds_since(begin) + (times.empty() ? 0 : times.back()) < options_.budget_seconds) {
    const auto start = Clock::now();
    session.run(inputs, outputs);
    times.push_back(seconds_since(start));
  }
  row.runs = static_cast<int>(times.size());
  if (times.empty()) {
    times.push_back(first);
    row.runs = 1;
    result_.notes.push_back(
        fmt::format("{} at batch {}: one run, the first call included (budget {:.2g} s)",
                    row.device, batch, options_.budget_seconds));
  }
  std::sort(times.begin(), times.end());
  row.latency_seconds = times[times.size() / 2];
  row.spread = (times[times.size() * 3 / 4] - times[times.size() / 4]) / row.latency_seconds;
  row.evidence = Evidence::measured;
  row.executed = true;
  std::vector<std::vector<double>> step_times;
  for (int i = 0; i < kTimedRuns && (i < 1 || row.latency_seconds * i < options_.budget_seconds);
       ++i) {
    const Session::Timing timing = session.run_timed(inputs, outputs);
    session.record(timing, *history_);
    disturbed_ += timing.disturbed ? 1 : 0;
    ++timed_;
    step_times.push_back(timing.step_seconds);
  }
  std::vector<double> medians;
  for (std::size_t s = 0; s < step_times[0].size(); ++s) {
    std::vector<double> column;
    for (const auto& run : step_times) column.push_back(run[s]);
    std::sort(column.begin(), column.end());
    medians.push_back(column[column.size() / 2]);
  }
  describe(session, &medians, row);
}

void Comparer::check_virtual(const Session& session, std::int64_t batch, CompareRow& row) {
  const std::vector<Tensor> inputs = make_inputs(session);
  std::vector<Tensor> outputs = session.run(inputs);
  compare_outputs(outputs, batch, row);
  const Session::Timing timing = session.run_timed(inputs, outputs);
  row.latency_seconds = timing.latency_seconds;
  row.executed = true;
  row.runs = 1;
  describe(session, &timing.step_seconds, row);
}

void Comparer::describe(const PlannedModel& planned, CompareRow& row) const {
  const Plan& plan = planned.plan;
  row.nodes = summary(plan);
  row.transfer_seconds = plan.copy_seconds();
  row.node_times.clear();
  bool host = false;
  bool device = false;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodePlan& node = plan.nodes[n];
    if (node.chosen().kernel == nullptr) continue;
    const DeviceSlot& slot = plan.devices[static_cast<std::size_t>(node.device)];
    (slot.info().is_host ? host : device) = true;
    row.node_times.push_back({planned.graph.nodes()[n].name, planned.graph.nodes()[n].op->name,
                              slot.label, node.chosen().kernel->provider, node.chosen().seconds,
                              node.chosen().evidence});
  }
  row.evidence = host && device ? Evidence::mixed : device ? Evidence::predicted : plan.evidence;
  row.memory_bytes = 0;
  for (std::size_t d = 0; d < plan.memory_bytes.size(); ++d) {
    if (d > 0 || !device) row.memory_bytes += static_cast<std::size_t>(plan.memory_bytes[d]);
  }
  if (host && !device) row.evidence = plan.evidence;
}

void Comparer::describe(const Session& session, const std::vector<double>* seconds,
                        CompareRow& row) const {
  const Plan& plan = session.plan();
  std::map<std::string, int> providers;
  row.memory_bytes = 0;
  bool uses_device = false;
  for (const NodePlan& node : plan.nodes) uses_device = uses_device || node.device > 0;
  for (int d = 0; d < plan.device_count(); ++d) {
    if (d > 0 || !uses_device) row.memory_bytes += session.memory_bytes(d);
  }
  row.transfer_seconds = plan.copy_seconds();
  row.node_times.clear();
  for (std::size_t s = 0; s < session.program().steps.size(); ++s) {
    const ExecStep& step = session.program().steps[s];
    const bool is_reorder = step.kind == ExecStep::Kind::run && !step.node.valid();
    if (step.kind == ExecStep::Kind::copy) continue;
    const DeviceSlot& slot = plan.devices[static_cast<std::size_t>(step.device)];
    const std::string name =
        is_reorder ? session.graph().value(step.value).name : session.graph().node(step.node).name;
    row.node_times.push_back({name,
                              is_reorder ? "reorder" : session.graph().node(step.node).op->name,
                              slot.label, step.provider, (*seconds)[s],
                              slot.info().is_virtual ? Evidence::predicted : Evidence::measured});
    ++providers[is_reorder ? "reorder" : step.provider];
  }
  std::vector<std::string> parts;
  for (const auto& [provider, count] : providers) {
    parts.push_back(fmt::format("{} {}", provider, count));
  }
  row.nodes = uses_device ? summary(plan) : fmt::format("{}", fmt::join(parts, ", "));
}

CompareRow Comparer::run_cell(const std::string& device, std::int64_t batch) {
  CompareRow row;
  row.device = device;
  row.batch = batch;
  if (over_budget(device, batch)) {
    row.skipped = "budget";
    return row;
  }
  const SessionOptions options = session_options(device, batch);
  const PlannedModel planned = plan_model(*system_, model_, costs_, options);
  const bool by_clock =
      std::any_of(planned.plan.nodes.begin(), planned.plan.nodes.end(), [&](const NodePlan& node) {
        return planned.plan.devices[static_cast<std::size_t>(node.device)].info().is_virtual;
      });
  if (!by_clock) {
    row.predicted_seconds = planned.plan.predicted_seconds;
    row.predicted_evidence = planned.plan.evidence;
    const auto session = std::make_shared<const Session>(system_, model_, costs_, options);
    if (options.devices.size() == 1) {
      measure(*session, batch, row);
      return row;
    }
    const std::vector<Tensor> inputs = make_inputs(*session);
    const GateResult gate =
        gate_plan(system_, model_, costs_, options, inputs, {options_.budget_seconds, kGateRounds});
    result_.notes.push_back(fmt::format("{} at batch {}: {}", device, batch, gate.why));
    measure(*gate.session, batch, row);
    return row;
  }
  row.latency_seconds = planned.plan.predicted_seconds;
  describe(planned, row);
  if (executed_batches_.count(batch) == 0) return row;
  const Evidence evidence = row.evidence;
  const Session session(system_, model_, costs_, options);
  check_virtual(session, batch, row);
  row.evidence = evidence;
  return row;
}

void Comparer::run_batch(std::int64_t batch, int& done) {
  reference_.clear();
  const int total = static_cast<int>(options_.batches.size() * options_.devices.size());
  // The CPU first: what it measures feeds the plans of the others.
  std::vector<std::string> order = options_.devices;
  const auto rank = [](const std::string& label) {
    return label == "auto" ? 2 : (label == "cpu" || label.rfind("cpu:", 0) == 0 ? 0 : 1);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  for (const std::string& device : order) {
    if (options_.progress) {
      options_.progress(done, total, fmt::format("batch {} on {}", batch, device));
    }
    result_.rows.push_back(run_cell(device, batch));
    ++done;
  }
}

// Smallest tried batch from which on `to` stays faster than `from`.
void Comparer::find_crossovers() {
  std::map<std::string, std::map<std::int64_t, double>> latency;
  std::map<std::int64_t, double> best_cpu;
  std::map<std::int64_t, std::string> best_name;
  for (const CompareRow& row : result_.rows) {
    if (!row.skipped.empty() || row.device == "auto") continue;
    const bool is_cpu = row.device == "cpu" || row.device.rfind("cpu:", 0) == 0;
    if (!is_cpu) {
      latency[row.device][row.batch] = row.latency_seconds;
    } else if (best_cpu.count(row.batch) == 0 || row.latency_seconds < best_cpu[row.batch]) {
      best_cpu[row.batch] = row.latency_seconds;
      best_name[row.batch] = row.device;
    }
  }
  for (const auto& [device, by_batch] : latency) {
    Crossover crossover{"", device, 0, 0, 0};
    std::int64_t last_loss = 0;
    double last_loss_excess = 0;
    for (const auto& [batch, cpu_seconds] : best_cpu) {
      const auto at = by_batch.find(batch);
      if (at == by_batch.end()) continue;
      if (at->second >= cpu_seconds) {
        last_loss = batch;
        last_loss_excess = at->second - cpu_seconds;
        crossover.batch = 0;
        crossover.from = best_name[batch];
      } else if (crossover.batch == 0) {
        crossover.low = last_loss == 0 ? batch : last_loss;
        crossover.high = batch;
        crossover.batch = batch;
        if (crossover.from.empty()) crossover.from = best_name[batch];
        if (last_loss > 0) {  // both curves are taken as straight between tried batches
          const double gain = cpu_seconds - at->second;
          const double t = last_loss_excess / (last_loss_excess + gain);
          crossover.batch = last_loss + static_cast<std::int64_t>(
                                            std::ceil(t * static_cast<double>(batch - last_loss)));
        }
      }
    }
    if (crossover.batch > 0) result_.crossovers.push_back(crossover);
  }
}

Comparison Comparer::run() {
  std::vector<std::string> real = options_.devices;
  std::erase(real, "auto");
  costs_ = machine_costs(system_, real, options_.threads, history_);
  std::vector<std::int64_t> batches = options_.batches;
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  if (batches.empty()) fail(ErrorCode::invalid_argument, "no batch was named");
  executed_batches_ = {batches.front(), batches[(batches.size() - 1) / 2]};
  for (ValueId id : model_.inputs()) {
    if (options_.inputs.count(model_.value(id).name) > 0) continue;
    result_.notes.push_back(
        fmt::format("input '{}' was not given: seeded random numbers", model_.value(id).name));
  }
  for (const auto& [name, tensor] : options_.inputs) {
    const auto value = model_.find_value(name);
    const bool is_input = value && model_.value(*value).kind == ValueKind::input;
    if (!is_input) fail(ErrorCode::not_found, "model '{}' has no input '{}'", model_.name(), name);
  }
  int done = 0;
  for (const std::int64_t batch : batches) run_batch(batch, done);
  if (options_.progress) options_.progress(done, done, "done");
  if (disturbed_ > 0) {
    result_.notes.push_back(fmt::format(
        "the machine had other work during {} of {} runs that timed nodes: those times aren't kept",
        disturbed_, timed_));
  }
  find_crossovers();
  return std::move(result_);
}

}  // namespace

const CompareRow* Comparison::winner(std::int64_t batch) const {
  const CompareRow* best = nullptr;
  for (const CompareRow& row : rows) {
    if (row.batch != batch || !row.skipped.empty()) continue;
    if (best == nullptr || row.latency_seconds < best->latency_seconds) best = &row;
  }
  return best;
}

Comparison compare(const std::shared_ptr<System>& system, const Graph& model,
                   const CompareOptions& options) {
  return Comparer(system, model, options).run();
}

std::string_view base_device(std::string_view label) {
  const bool lettered = label.size() > 4 && label.back() == ']' && label[label.size() - 3] == '[' &&
                        label[label.size() - 4] == ' ';
  return lettered ? label.substr(0, label.size() - 4) : label;
}

std::string batch_symbol_of(const Graph& model) {
  for (ValueId id : model.inputs()) {
    const auto& dims = model.value(id).dims;
    if (!dims.empty() && !dims[0].fixed()) return dims[0].symbol;
  }
  return "";
}

}  // namespace turnout
