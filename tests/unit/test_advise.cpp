#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "generated/turnout_config.hpp"
#include "runtime/report/advise_report.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

Candidate device(std::string name, double fixed, double per_item, double watts = 0) {
  Candidate candidate;
  candidate.device = std::move(name);
  candidate.memory_limit_bytes = {1e9, Evidence::spec, "test"};
  if (watts > 0) candidate.tdp_watts = {watts, Evidence::spec, "test"};
  for (const std::int64_t batch : {1, 10, 100}) {
    const double seconds = fixed + per_item * static_cast<double>(batch);
    candidate.at.push_back({batch, {seconds, 0.1, Evidence::predicted, ""}, 1e6});
  }
  return candidate;
}

Candidate too_small() {
  Candidate candidate = device("tiny", 1e-9, 1e-9);
  for (auto& at : candidate.at) at.time.refusal = "model 'm' doesn't fit: tiny has 1 MiB";
  return candidate;
}

std::vector<std::string> order(const std::vector<Advice>& ranked) {
  std::vector<std::string> names;
  for (const Advice& advice : ranked) names.push_back(advice.device);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("devices are ranked by the objective, those that can't run the model last") {
  // quick: least latency; wide: most throughput; frugal: least energy.
  std::vector<Candidate> all = {too_small(), device("wide", 0.1, 1e-4, 400),
                                device("quick", 1e-3, 1e-2, 100), device("frugal", 0.2, 2e-4, 50)};
  CHECK(order(rank(all, Objective::latency)) == Names{"quick", "wide", "frugal", "tiny"});
  CHECK(order(rank(all, Objective::throughput)) == Names{"wide", "frugal", "quick", "tiny"});
  CHECK(order(rank(all, Objective::energy)) == Names{"frugal", "wide", "quick", "tiny"});
  const auto by_price = [&](double wide, double frugal) {
    all[1].price = wide;
    all[3].price = frugal;
    return order(rank(all, Objective::price));
  };
  CHECK(by_price(1000, 900) == Names{"wide", "frugal", "tiny", "quick"});
  CHECK(by_price(1000, 400) == Names{"frugal", "wide", "tiny", "quick"});
  const Advice last = rank(all, Objective::throughput).back();
  CHECK(last.rank == 4);
  CHECK(last.refusal.find("doesn't fit") != std::string::npos);
}

TEST_CASE("figures are those of the formulas") {
  const Advice advice = rank({device("gpu", 0.1, 1e-4, 400)}, Objective::throughput).front();
  CHECK(advice.best_batch == 100);
  CHECK(std::abs(advice.items_per_s - 100 / 0.11) < 1e-9);
  CHECK(std::abs(advice.joules_per_item - 400 * 0.11 / 100) < 1e-12);
  CHECK(advice.latency_batch == 1);
  CHECK(std::abs(advice.latency_seconds - 0.1001) < 1e-12);
}

TEST_CASE("what the errors can't tell apart is marked") {
  // 10 % error each: 1.2 is within, 1.3 is not.
  const auto ranked =
      rank({device("a", 1, 0), device("b", 1.2, 0), device("c", 1.3, 0)}, Objective::latency);
  CHECK_FALSE(ranked[0].undecided);
  CHECK(ranked[1].undecided);
  CHECK_FALSE(ranked[2].undecided);
}

TEST_CASE("a device that fits only small batches is ranked by those") {
  Candidate small = device("small", 1e-3, 1e-3);
  small.at[2].time.refusal = "doesn't fit";
  const Advice advice = rank({small}, Objective::throughput).front();
  CHECK(advice.refusal.empty());
  CHECK(advice.fits_to == 10);
  CHECK(advice.best_batch == 10);
}

TEST_CASE("real profiles: every device is ranked, with evidence, and times are those of its plan") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = mlp({64, 512, 512, 10});
  const Names devices = {"cpu", "virtual:t4", "virtual:h100", "virtual:mi300x"};
  AdviceReport report{"mlp", Objective::throughput, {1, 64, 1024}, {}};
  report.ranked =
      rank(candidates(system, model, costs, {}, "N", devices, report.batches, {{"virtual:t4", 10}}),
           report.objective);
  REQUIRE(report.ranked.size() == devices.size());
  for (const Advice& advice : report.ranked) {
    INFO(advice.device);
    CHECK(advice.refusal.empty());
    CHECK(advice.evidence == (advice.device == "cpu" ? Evidence::calibrated : Evidence::predicted));
    SessionOptions options;
    options.devices = {advice.device};
    options.dims["N"] = advice.best_batch;
    const Plan plan = plan_model(system, model, costs, options).plan;
    CHECK(std::abs(advice.items_per_s * plan.predicted_seconds /
                       static_cast<double>(advice.best_batch) -
                   1) < 1e-9);
    CHECK((advice.price_per_rate > 0) == (advice.device == "virtual:t4"));
    CHECK((advice.joules_per_item > 0) == (advice.device != "cpu"));
  }
  CHECK(to_text(report).find("upper bound") != std::string::npos);
  CHECK(to_json(report).find("joules_per_item_at_most") != std::string::npos);
}

}  // namespace
}  // namespace turnout::testing
