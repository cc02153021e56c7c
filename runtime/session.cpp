#include "runtime/session.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <bit>

#include "runtime/passes/passes.hpp"
#include "runtime/plan/lanes.hpp"

namespace turnout {
namespace {

constexpr int kMaxContexts = 64;

// The devices asked for, with a host in front.
std::vector<DeviceSlot> open_devices(System& system, const SessionOptions& options,
                                     bool& host_computes) {
  std::vector<DeviceSlot> slots;
  host_computes = false;
  for (const std::string& label : options.devices) {
    DeviceSlot slot = system.open(label, options.providers, options.threads);
    const bool is_host = slot.info().is_host;
    if (is_host && host_computes) {
      fail(ErrorCode::invalid_argument, "devices '{}' and '{}' are both the host",
           slots.front().label, label);
    }
    host_computes = host_computes || is_host;
    slots.insert(is_host ? slots.begin() : slots.end(), std::move(slot));
  }
  if (slots.empty()) fail(ErrorCode::invalid_argument, "no device was named");
  if (!host_computes) {
    slots.insert(slots.begin(), system.open("cpu", options.providers, options.threads));
  }
  return slots;
}

// Measured times tell which provider does best on the CPU: worth asking where the user left the
// choice open.
bool may_choose_provider(const DeviceSlot& host, const SessionOptions& options) {
  return options.providers.empty() && !options.alternate && host.label == "cpu" &&
         host.providers.size() > 1;
}

// Times that a thread of this process was made to give up its core.
long lost_cores() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool host_is_measured(const Plan& plan) {
  bool any = false;
  for (const NodePlan& node : plan.nodes) {
    if (node.device != 0 || node.chosen().kernel == nullptr) continue;
    if (node.chosen().evidence != Evidence::measured) return false;
    any = true;
  }
  return any;
}

}  // namespace

PlannedModel plan_model(System& system, const Graph& model, const CostModel& costs,
                        const SessionOptions& options) {
  constexpr double kWorthLeaving = 0.97;  // of the usual order's time
  PlannedModel result{optimize(model, options.dims, {options.fold, options.fuse}), {}};
  bool host_computes = false;
  std::vector<DeviceSlot> slots = open_devices(system, options, host_computes);
  PlanOptions plan_options;
  plan_options.pins = options.pins;
  plan_options.alternate = options.alternate;
  plan_options.weights = options.weights;
  plan_options.choose_providers = may_choose_provider(slots[0], options);
  result.plan = make_plan(result.graph, slots, host_computes, costs, plan_options);
  if (!plan_options.choose_providers || !host_is_measured(result.plan)) return result;
  const std::vector<std::string> usual = slots[0].providers;
  const double usual_seconds = result.plan.predicted_seconds;
  for (const std::string& first : usual) {
    slots[0].providers = {first};
    for (const std::string& other : usual) {
      if (other != first) slots[0].providers.push_back(other);
    }
    Plan plan = make_plan(result.graph, slots, host_computes, costs, plan_options);
    const double limit = std::min(result.plan.predicted_seconds, usual_seconds * kWorthLeaving);
    if (host_is_measured(plan) && plan.predicted_seconds < limit) result.plan = std::move(plan);
  }
  return result;
}

// Holds one context for one run.
class Session::Lease {
 public:
  explicit Lease(const Session& session) : session_(session) {
    std::uint64_t free = session.free_contexts_.load(std::memory_order_relaxed);
    while (true) {
      if (free == 0) {
        session.free_contexts_.wait(0);
        free = session.free_contexts_.load(std::memory_order_relaxed);
        continue;
      }
      index_ = std::countr_zero(free);
      if (session.free_contexts_.compare_exchange_weak(free, free & (free - 1),
                                                       std::memory_order_acquire)) {
        return;
      }
    }
  }
  ~Lease() {
    session_.free_contexts_.fetch_or(std::uint64_t{1} << index_, std::memory_order_release);
    session_.free_contexts_.notify_one();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Context& context() const { return *session_.contexts_[static_cast<std::size_t>(index_)]; }

 private:
  const Session& session_;
  int index_ = 0;
};

Session::Session(std::shared_ptr<System> system, const Graph& model, const CostModel& costs,
                 const SessionOptions& options)
    : system_(std::move(system)) {
  if (options.contexts < 1 || options.contexts > kMaxContexts) {
    fail(ErrorCode::invalid_argument, "{} contexts, but 1 to {} are possible", options.contexts,
         kMaxContexts);
  }
  if (options.weights.streamed) {
    fail(ErrorCode::unsupported,
         "weights that are copied at every run can be planned, not yet run");
  }
  PlannedModel planned = plan_model(*system_, model, costs, options);
  graph_ = std::move(planned.graph);
  plan_ = std::move(planned.plan);
  program_ = compile(graph_, plan_, {options.choose_layouts});
  for (ValueId id : graph_.inputs()) {
    inputs_.push_back({graph_.value(id).name, graph_.value(id).spec});
  }
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    outputs_.push_back({graph_.output_names()[i], graph_.value(graph_.outputs()[i]).spec});
  }
  for (int i = 0; i < options.contexts; ++i) {
    contexts_.push_back(std::make_unique<Context>(program_, plan_));
  }
  const int spare = kMaxContexts - options.contexts;
  free_contexts_.store(~std::uint64_t{0} >> spare);
}

void Session::check(std::span<const Tensor> tensors, std::span<const Io> wanted,
                    const char* what) const {
  if (tensors.size() != wanted.size()) {
    fail(ErrorCode::invalid_argument, "model '{}' has {} {}s, given: {}", graph_.name(),
         wanted.size(), what, tensors.size());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool fits = tensors[i].defined() && tensors[i].spec() == wanted[i].spec;
    if (fits && tensors[i].device() == nullptr) continue;
    fail(ErrorCode::invalid_argument, "{} '{}' has to be {} in host memory, given: {}", what,
         wanted[i].name, to_string(wanted[i].spec),
         tensors[i].defined() ? to_string(tensors[i].spec()) : "nothing");
  }
}

void Session::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) const {
  const Lease lease(*this);
  bind(lease.context(), inputs, outputs);
  lease.context().run();
}

void Session::bind(Context& context, std::span<const Tensor> inputs,
                   std::span<Tensor> outputs) const {
  check(inputs, inputs_, "input");
  check(outputs, outputs_, "output");
  for (std::size_t i = 0; i < inputs.size(); ++i) context.bind_input(i, inputs[i].address());
  for (std::size_t i = 0; i < outputs.size(); ++i) context.bind_output(i, outputs[i].address());
}

void Session::run(std::span<const void* const> inputs, std::span<void* const> outputs) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
    fail(ErrorCode::invalid_argument, "model '{}' has {} inputs and {} outputs, given: {} and {}",
         graph_.name(), inputs_.size(), outputs_.size(), inputs.size(), outputs.size());
  }
  const Lease lease(*this);
  for (std::size_t i = 0; i < inputs.size(); ++i) lease.context().bind_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) lease.context().bind_output(i, outputs[i]);
  lease.context().run();
}

std::vector<Tensor> Session::run(std::span<const Tensor> inputs) const {
  std::vector<Tensor> outputs;
  for (const Io& output : outputs_) outputs.push_back(Tensor::empty(output.spec));
  run(inputs, outputs);
  return outputs;
}

Session::Timing Session::run_timed(std::span<const Tensor> inputs,
                                   std::span<Tensor> outputs) const {
  constexpr double kSlice = 0.004;  // of the scheduler: what one loss takes, or waiting for it
  constexpr double kMatters = 0.1;  // of a run
  Timing timing;
  long lost = 0;
  {
    const Lease lease(*this);
    bind(lease.context(), inputs, outputs);
    lost = lost_cores();
    lease.context().run_timed(timing.step_seconds);
    lost = lost_cores() - lost;
  }
  std::vector<LaneStep> steps;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    steps.push_back({program_.steps[s].lane, timing.step_seconds[s], program_.steps[s].after});
  }
  timing.latency_seconds = simulate_lanes(steps, program_.lanes).makespan_seconds;
  timing.disturbed = static_cast<double>(lost) * kSlice > kMatters * timing.latency_seconds;
  return timing;
}

void Session::record(const Timing& timing, CostHistory& history) const {
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const ExecStep& step = program_.steps[s];
    if (!step.node.valid()) continue;
    const DeviceSlot& slot = plan_.devices[static_cast<std::size_t>(step.device)];
    if (slot.info().is_virtual) continue;
    history.add(cost_key(graph_.info(step.node), step.provider, slot), timing.step_seconds[s],
                !timing.disturbed);
  }
}

std::size_t Session::memory_bytes(int device) const {
  const auto at = static_cast<std::size_t>(device);
  std::size_t bytes = program_.packed_bytes[at] + program_.arena_bytes[at] * contexts_.size();
  if (program_.constant_blocks[at] != nullptr) bytes += program_.constant_blocks[at]->bytes();
  if (plan_.devices[at].info().is_host) {
    for (const auto& [location, tensor] : program_.host_constants) bytes += tensor.bytes();
  }
  return bytes;
}

}  // namespace turnout
