#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "generated/turnout_config.hpp"
#include "runtime/plan/evidence_error.hpp"
#include "runtime/report/crossover_report.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

std::vector<BatchInterval> every_batch(std::int64_t first, std::int64_t last, const KeyAt& key) {
  std::vector<BatchInterval> intervals;
  for (std::int64_t batch = first; batch <= last; ++batch) {
    if (intervals.empty() || intervals.back().key != key(batch)) {
      intervals.push_back({batch, batch, key(batch)});
    }
    intervals.back().last = batch;
  }
  return intervals;
}

void check_same(const std::vector<BatchInterval>& got, const std::vector<BatchInterval>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].first == want[i].first);
    CHECK(got[i].last == want[i].last);
    CHECK(got[i].key == want[i].key);
  }
}

SessionOptions on(std::vector<std::string> devices) {
  SessionOptions options;
  options.devices = std::move(devices);
  return options;
}

// A sweep and what it refers to.
struct Swept {
  Swept(System& system, CostModel model_costs, const std::string& device)
      : costs(std::move(model_costs)),
        model(mlp({64, 512, 512, 10})),
        sweep(system, model, costs, on({"cpu", device}), "N") {}
  CostsAt at() {
    return [this](std::int64_t batch) -> const BatchCosts& { return sweep.at(batch); };
  }
  CostModel costs;
  Graph model;
  BatchSweep sweep;
};

// First batch from which `device` is fastest to the end; more than any batch if it never is.
std::int64_t device_flip(const CrossoverCurve& curve, const std::string& device) {
  const CrossoverInterval& last = curve.intervals.back();
  return last.choice == device ? last.first : std::numeric_limits<std::int64_t>::max();
}

std::int64_t op_flip(const FlipBatch& flip) {
  return flip.batch > 0 ? flip.batch : std::numeric_limits<std::int64_t>::max();
}

// A model of one node whose times are straight lines: a b + c.
BatchCosts two_lines(std::int64_t batch, double cpu_a, double cpu_c, double gpu_a, double gpu_c) {
  const auto b = static_cast<double>(batch);
  BatchCosts costs;
  costs.batch = batch;
  costs.devices = {"cpu", "gpu"};
  const double cpu = cpu_a * b + cpu_c;
  const double gpu = gpu_a * b + gpu_c;
  BatchCosts::NodeCost node;
  node.name = "n";
  node.op = "relu";
  node.on = {{true, cpu, Evidence::calibrated}, {true, gpu, Evidence::predicted}};
  costs.nodes.push_back(node);
  costs.placement = {cpu <= gpu ? 0 : 1};
  costs.alone.resize(2);
  costs.alone[0] = {cpu, relative_error(Evidence::calibrated), Evidence::calibrated, ""};
  costs.alone[1] = {gpu, relative_error(Evidence::predicted), Evidence::predicted, ""};
  return costs;
}

TEST_CASE("intervals have exact boundaries") {
  const auto at_thresholds = [](std::int64_t batch) {
    int above = 0;
    for (const std::int64_t threshold : {7, 300, 301, 777}) above += batch >= threshold ? 1 : 0;
    return std::to_string(above);
  };
  check_same(constant_intervals(1, 1024, at_thresholds), every_batch(1, 1024, at_thresholds));
  check_same(constant_intervals(5, 5, at_thresholds), every_batch(5, 5, at_thresholds));
  // On short ranges nothing is missed, however often the key changes.
  const auto restless = [](std::int64_t batch) { return std::to_string(batch * batch % 5 / 2); };
  check_same(constant_intervals(1, kDenseBatches, restless),
             every_batch(1, kDenseBatches, restless));
}

TEST_CASE("ranges of batches that make no sense are errors") {
  const auto key = [](std::int64_t) { return std::string(); };
  CHECK_THROWS_AS(constant_intervals(0, 8, key), Error);
  CHECK_THROWS_AS(constant_intervals(8, 7, key), Error);
  CHECK_THROWS_AS(probe_grid(-3, 7), Error);
}

TEST_CASE("flips say whether they are the only one") {
  const auto from = [](std::int64_t threshold) {
    return flip_of(1, 1000, [=](std::int64_t batch) { return batch >= threshold; });
  };
  CHECK(from(123).batch == 123);
  CHECK(from(123).single);
  CHECK_FALSE(from(123).always);
  CHECK(from(1).always);
  CHECK(from(2000).batch == 0);
  const FlipBatch twice = flip_of(1, 20, [](std::int64_t b) { return b == 5 || b >= 9; });
  CHECK(twice.batch == 9);
  CHECK_FALSE(twice.single);
}

TEST_CASE("uncertain ranges end where a decision becomes certain") {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{{20, 90}, {49, 50}, {1, 1000}}) {
    const UncertainRange range = uncertain_range(
        1, 1000, 50, [&, l = low, h = high](std::int64_t b) { return b >= l && b <= h; });
    CHECK(range.low == low);
    CHECK(range.open_low == (low == 1));
    CHECK(range.open_high == (high == 1000));
    CHECK(range.high == (high == 1000 ? 1000 : high + 1));
  }
  const UncertainRange jump = uncertain_range(1, 1000, 50, [](std::int64_t) { return false; });
  CHECK(jump.low == 50);
  CHECK(jump.high == 50);
}

TEST_CASE("the crossing of two straight lines and its uncertainty are those of the formula") {
  std::map<std::int64_t, BatchCosts> kept;
  const CostsAt costs = [&](std::int64_t batch) -> const BatchCosts& {
    return kept[batch] = two_lines(batch, 1e-6, 0, 0, 50e-6);
  };
  const CrossoverCurve curve = fastest_device(costs, 1, 1024);
  REQUIRE(curve.intervals.size() == 2);
  CHECK(curve.intervals[0].choice == "cpu");
  CHECK(curve.crossings[0].batch == 51);
  const double cpu = relative_error(Evidence::calibrated);
  const double gpu = relative_error(Evidence::predicted);
  // |b - 50| <= cpu b + gpu 50
  CHECK(curve.crossings[0].range.low == std::ceil(50 * (1 - gpu) / (1 + cpu)));
  CHECK(curve.crossings[0].range.high == std::floor(50 * (1 + gpu) / (1 - cpu)) + 1);
  const CrossoverCurve plan = automatic_plan(costs, 1, 1024);
  REQUIRE(plan.crossings.size() == 1);
  CHECK(plan.crossings[0].batch == 51);
  CHECK(plan.crossings[0].range.low == curve.crossings[0].range.low);
  CHECK(plan.crossings[0].range.high == curve.crossings[0].range.high);
  CHECK(plan.crossings[0].moved == std::vector<std::string>{"n: cpu -> gpu"});
}

TEST_CASE("a node that comes with a batch cuts the axis at exactly that batch") {
  std::map<std::int64_t, BatchCosts> kept;
  const CostsAt costs = [&](std::int64_t batch) -> const BatchCosts& {
    BatchCosts& at = kept[batch] = two_lines(batch, 1e-6, 0, 0, 1);
    if (batch < 10) return at;
    at.nodes.push_back(at.nodes[0]);
    at.nodes[1].name = "expanded";
    at.placement.push_back(0);
    return at;
  };
  const CrossoverCurve plan = automatic_plan(costs, 1, 64);
  REQUIRE(plan.crossings.size() == 1);
  CHECK(plan.crossings[0].batch == 10);
  CHECK(plan.crossings[0].range.low == 10);
  CHECK(plan.crossings[0].range.high == 10);
  CHECK(plan.crossings[0].moved == std::vector<std::string>{"expanded: new -> cpu"});
}

TEST_CASE("boundaries are those of planning every batch") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  for (const double flops : {30e9, 100e9}) {
    Swept swept(system, CostModel(made_up_cpu(flops)), "virtual:v100");
    const auto plan = automatic_plan(swept.at(), 1, 96);
    const auto single = fastest_device(swept.at(), 1, 96);
    CHECK(plan.intervals.front().first == 1);
    CHECK(plan.intervals.back().last == 96);
    std::size_t p = 0;
    std::size_t s = 0;
    std::vector<int> before;
    for (std::int64_t batch = 1; batch <= 96; ++batch) {
      const BatchCosts& costs = swept.sweep.at(batch);
      if (batch > plan.intervals[p].last) {
        ++p;
        CHECK(batch == plan.crossings[p - 1].batch);
        CHECK(costs.placement != before);
      } else if (batch > 1) {
        CHECK(costs.placement == before);
      }
      if (batch > single.intervals[s].last) ++s;
      const bool gpu_wins = costs.alone[1].seconds < costs.alone[0].seconds;
      CHECK(single.intervals[s].choice == (gpu_wins ? "virtual:v100" : "cpu"));
      before = costs.placement;
    }
  }
}

TEST_CASE("a placement's parts add up to the planner's sum") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = small_cnn();
  for (const char* device : {"virtual:v100", "virtual:h100-pcie"}) {
    BatchSweep sweep(system, model, costs, on({"cpu", device}), "N");
    for (const std::int64_t batch : {1, 7, 64, 500}) {
      const BatchCosts& at = sweep.at(batch);
      const double sum = sum_of(cost_parts(at, at.placement));
      CHECK(std::abs(sum - at.serial_seconds) <= 1e-12 + 1e-9 * sum);
    }
  }
}

TEST_CASE("half the link never lowers a crossing, half the CPU never raises it") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  for (const char* device : {"virtual:v100", "virtual:t4", "virtual:mi210", "virtual:h100-sxm"}) {
    for (const double flops : {30e9, 200e9}) {
      const CostModel costs(made_up_cpu(flops));
      Swept base(system, costs, device);
      Swept link(system, costs.with({0.5, 1}), device);
      Swept cpu(system, costs.with({1, 0.5}), device);
      INFO(device << " against " << flops << " flop/s");
      const auto flip = [&](Swept& swept) {
        return device_flip(fastest_device(swept.at(), 1, 512), device);
      };
      CHECK(flip(link) >= flip(base));
      CHECK(flip(cpu) <= flip(base));
      const auto ops = op_flips(base.at(), 1, 128);
      const auto link_ops = op_flips(link.at(), 1, 128);
      const auto cpu_ops = op_flips(cpu.at(), 1, 128);
      REQUIRE(ops.size() == link_ops.size());
      for (std::size_t i = 0; i < ops.size(); ++i) {
        INFO(ops[i].node);
        CHECK(op_flip(link_ops[i].with_transfers) >= op_flip(ops[i].with_transfers));
        CHECK(op_flip(link_ops[i].kernel) == op_flip(ops[i].kernel));
        CHECK(op_flip(cpu_ops[i].with_transfers) <= op_flip(ops[i].with_transfers));
        CHECK(op_flip(cpu_ops[i].kernel) <= op_flip(ops[i].kernel));
        CHECK(op_flip(ops[i].kernel) <= op_flip(ops[i].with_transfers));
      }
    }
  }
}

TEST_CASE("break-evens are those of the formulas") {
  CpuProfile cpu = made_up_cpu(1e12);
  DeviceInfo device;
  device.link.h2d_bytes_per_s = {25e9, Evidence::spec, "test"};
  device.link.latency_seconds = {8e-6, Evidence::fallback, "test"};
  device.launch_seconds = {5e-6, Evidence::fallback, "test"};
  device.synchronize_seconds = {10e-6, Evidence::fallback, "test"};
  const BreakEven even = break_even(cpu, device, "gpu");
  CHECK(std::abs(even.rows(4) - 80) < 1e-9);
  CHECK(std::abs(even.rows(2) - 40) < 1e-9);
  CHECK(std::abs(even.rows(1) - 20) < 1e-9);
  CHECK(std::abs(even.rows(0.5) - 10) < 1e-9);
  CHECK(std::abs(even.fixed_seconds() - 31e-6) < 1e-12);
  CHECK(std::abs(even.weight_bytes() - cpu.stream.back().rate * 31e-6) < 1);
  CHECK(even.cpu_flops_per_s.evidence == Evidence::calibrated);
}

TEST_CASE("the report names evidence, range and errors, and its JSON says the same") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  Swept swept(system, CostModel(made_up_cpu()), "virtual:v100");
  const CrossoverReport report = find_crossover(system, swept.sweep, swept.costs, 1, 256, true);
  const std::string text = to_text(report);
  for (const char* needle : {"calibrated", "predicted", "crossing at", "within the errors",
                             "errors assumed", "B* = s Fc / (2 Bw)", "with copies"}) {
    INFO(needle);
    CHECK(text.find(needle) != std::string::npos);
  }
  CHECK(to_json(report).find("\"relative_errors\"") != std::string::npos);
  CHECK_FALSE(report.ops.empty());
}

TEST_CASE("a model without a batch dimension has no crossover") {
  System system;
  GraphBuilder b(all_ops(), "fixed");
  b.output(b.add("relu", {b.input("x", DType::f32, {2, 4})}), "y");
  const Graph model = b.build();
  const CostModel costs(made_up_cpu());
  CHECK_THROWS_AS(BatchSweep(system, model, costs, on({"cpu"}), ""), Error);
}

}  // namespace
}  // namespace turnout::testing
