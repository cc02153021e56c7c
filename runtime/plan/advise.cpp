#include "runtime/plan/advise.hpp"

#include <algorithm>
#include <limits>

#include "runtime/passes/passes.hpp"

namespace turnout {
namespace {

Advice advice_of(const Candidate& candidate) {
  Advice advice;
  advice.device = candidate.device;
  advice.title = candidate.title;
  advice.memory_limit_bytes = candidate.memory_limit_bytes.value;
  for (const Candidate::At& at : candidate.at) {
    if (!at.time.refusal.empty()) continue;
    const double rate = static_cast<double>(at.batch) / at.time.seconds;
    advice.fits_to = std::max(advice.fits_to, at.batch);
    if (rate <= advice.items_per_s) continue;
    advice.items_per_s = rate;
    advice.best_batch = at.batch;
    advice.memory_bytes = at.memory_bytes;
    advice.error = at.time.error;
    advice.evidence = at.time.evidence;
  }
  if (candidate.at.empty()) {
    advice.refusal = "no batch was tried";
    return advice;
  }
  const Candidate::At& first = candidate.at.front();
  advice.refusal = first.time.refusal;
  if (!advice.refusal.empty()) return advice;
  advice.latency_batch = first.batch;
  advice.latency_seconds = first.time.seconds;
  advice.joules_per_item = candidate.tdp_watts.value / advice.items_per_s;
  advice.price_per_rate = candidate.price / advice.items_per_s;
  return advice;
}

void set_score(const Candidate& candidate, Objective objective, Advice& advice) {
  switch (objective) {
    case Objective::latency:
      advice.score = advice.latency_seconds;
      advice.error = candidate.at.front().time.error;
      advice.evidence = candidate.at.front().time.evidence;
      return;
    case Objective::throughput:
      advice.score = 1 / advice.items_per_s;
      return;
    case Objective::energy:
      advice.score = advice.joules_per_item;
      if (!candidate.tdp_watts.known()) advice.refusal = "its TDP is not known";
      return;
    case Objective::price:
      advice.score = advice.price_per_rate;
      if (candidate.price <= 0) advice.refusal = "no price was given (--price)";
      return;
  }
}

double memory_of(const Plan& plan, int device) {
  return plan.memory_bytes[static_cast<std::size_t>(device)];
}

Candidate::At try_device(const Graph& graph, const DeviceSlot& host, const DeviceSlot& device,
                         const CostModel& costs, const WeightPolicy& weights, std::int64_t batch) {
  const bool is_host = device.info().is_host;
  std::vector<DeviceSlot> slots = {is_host ? device : host};
  if (!is_host) slots.push_back(device);
  Candidate::At at;
  at.batch = batch;
  try {
    PlanOptions options;
    options.weights = weights;
    const Plan plan = make_plan(graph, std::move(slots), is_host, costs, options);
    at.time = alone_time(graph, plan);
    at.memory_bytes = memory_of(plan, is_host ? 0 : 1);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::out_of_memory) throw;
    at.time.refusal = error.what();
  }
  return at;
}

}  // namespace

std::string_view to_string(Objective objective) {
  switch (objective) {
    case Objective::latency:
      return "latency";
    case Objective::throughput:
      return "throughput";
    case Objective::energy:
      return "energy";
    case Objective::price:
      return "price";
  }
  return "latency";
}

std::vector<Advice> rank(const std::vector<Candidate>& candidates, Objective objective) {
  std::vector<Advice> ranked;
  for (const Candidate& candidate : candidates) {
    Advice advice = advice_of(candidate);
    if (advice.refusal.empty()) set_score(candidate, objective, advice);
    ranked.push_back(std::move(advice));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Advice& a, const Advice& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    return a.refusal.empty() && a.score < b.score;
  });
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    Advice& advice = ranked[i];
    const Advice& best = ranked.front();
    advice.rank = static_cast<int>(i) + 1;
    advice.undecided =
        i > 0 && advice.refusal.empty() &&
        advice.score - best.score <= advice.score * advice.error + best.score * best.error;
  }
  return ranked;
}

std::vector<Candidate> candidates(System& system, const Graph& model, const CostModel& costs,
                                  SessionOptions options, const std::string& symbol,
                                  const std::vector<std::string>& devices,
                                  const std::vector<std::int64_t>& batches,
                                  const std::map<std::string, double>& prices) {
  std::vector<Candidate> result;
  std::vector<DeviceSlot> slots;
  const DeviceSlot host = system.open("cpu", options.providers, options.threads);
  for (const std::string& label : devices) {
    slots.push_back(system.open(label, options.providers, options.threads));
    const DeviceInfo& info = slots.back().info();
    Candidate candidate{label, info.title, info.memory_bytes, info.tdp_watts, 0, {}};
    const auto price = prices.find(label);
    if (price != prices.end()) candidate.price = price->second;
    result.push_back(std::move(candidate));
  }
  for (const std::int64_t batch : batches) {
    if (!symbol.empty()) options.dims[symbol] = batch;
    const Graph graph = optimize(model, options.dims, {options.fold, options.fuse});
    for (std::size_t d = 0; d < slots.size(); ++d) {
      result[d].at.push_back(try_device(graph, host, slots[d], costs, options.weights, batch));
    }
  }
  return result;
}

}  // namespace turnout
