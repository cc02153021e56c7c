#include <catch2/catch_test_macros.hpp>

#include "generated/turnout_config.hpp"
#include "runtime/cost/sampling.hpp"
#include "runtime/plan/digest.hpp"
#include "runtime/plan/plan_cache.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

using Placement = PlanCache::Placement;

const PlanCache::Key kKey = {"graph", "devices"};
const Placement kHost = {{"a", "cpu"}};
const Placement kGpu = {{"a", "gpu"}};

TEST_CASE("a batch finds the plan of its interval") {
  PlanCache cache;
  CHECK(cache.find(kKey, 1) == nullptr);
  cache.put(kKey, {1, 24, kHost});
  cache.put(kKey, {25, 1024, kGpu});
  CHECK(cache.find(kKey, 24)->placement == kHost);
  CHECK(cache.find(kKey, 25)->placement == kGpu);
  CHECK(cache.find(kKey, 1025) == nullptr);
  CHECK(cache.find({"another graph", "devices"}, 1) == nullptr);
  CHECK(cache.find({"graph", "another machine"}, 1) == nullptr);
  CHECK_THROWS_AS(cache.put(kKey, {0, 3, kHost}), Error);
  CHECK_THROWS_AS(cache.put(kKey, {4, 3, kHost}), Error);
}

TEST_CASE("a new interval cuts what it overlaps") {
  PlanCache cache;
  cache.put(kKey, {1, 100, kHost});
  cache.put(kKey, {40, 60, kGpu});
  CHECK(cache.entries(kKey) == 3);
  CHECK(cache.find(kKey, 39)->placement == kHost);
  CHECK(cache.find(kKey, 40)->placement == kGpu);
  CHECK(cache.find(kKey, 60)->placement == kGpu);
  CHECK(cache.find(kKey, 61)->placement == kHost);
  CHECK(cache.find(kKey, 61)->last == 100);
  cache.put(kKey, {1, 100, kGpu});
  CHECK(cache.entries(kKey) == 1);
}

TEST_CASE("a plan is left only for more than 5 % and two spreads") {
  CHECK_FALSE(worth_leaving(100, 96, 0));
  CHECK(worth_leaving(100, 94, 0));
  CHECK_FALSE(worth_leaving(100, 94, 0.04));
  CHECK(worth_leaving(100, 91, 0.04));
  CHECK_FALSE(worth_leaving(100, 110, 0));
  PlanCache cache;
  CHECK(cache.choose(kKey, 8, 0, kHost, 1, 0).placement == kHost);  // nothing was kept
  cache.put(kKey, {1, 100, kHost});
  CHECK(cache.choose(kKey, 20, 1.0, kGpu, 0.97, 0).placement == kHost);
  CHECK(cache.choose(kKey, 24, 1.0, kGpu, 0.80, 0).placement == kGpu);
  CHECK(cache.choose(kKey, 24, 1.0, kHost, 0.98, 0).placement == kGpu);
  CHECK(cache.find(kKey, 25)->placement == kHost);
}

TEST_CASE("what was used least recently goes first") {
  PlanCache cache(2);
  cache.put({"a", ""}, {1, 1, kHost});
  cache.put({"b", ""}, {1, 1, kHost});
  cache.find({"a", ""}, 1);
  cache.put({"c", ""}, {1, 1, kHost});
  CHECK(cache.keys() == 2);
  CHECK(cache.find({"a", ""}, 1) != nullptr);
  CHECK(cache.find({"b", ""}, 1) == nullptr);
}

TEST_CASE("keys tell graphs, weights, devices and links apart") {
  const auto same = mlp({8, 16, 4});
  CHECK(graph_digest(same) == graph_digest(mlp({8, 16, 4})));
  CHECK(graph_digest(same) != graph_digest(mlp({8, 17, 4})));
  GraphBuilder b(all_ops(), "mlp");
  b.output(b.add("add", {b.input("x", DType::f32, {"N", 2}), b.constant(random_tensor({2}, 1))}));
  GraphBuilder c(all_ops(), "mlp");
  c.output(c.add("add", {c.input("x", DType::f32, {"N", 2}), c.constant(random_tensor({2}, 2))}));
  CHECK(graph_digest(b.build()) != graph_digest(c.build()));
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const auto fingerprint = [&](const char* device, int threads) {
    const std::vector<DeviceSlot> slots = {system.open("cpu", {}, threads), system.open(device)};
    return device_fingerprint(slots);
  };
  CHECK(fingerprint("virtual:v100", 1) == fingerprint("virtual:v100", 1));
  CHECK(fingerprint("virtual:v100", 1) != fingerprint("virtual:v100", 2));
  CHECK(fingerprint("virtual:v100", 1) != fingerprint("virtual:t4", 1));
  CHECK(fingerprint("virtual:v100@pcie3", 1) != fingerprint("virtual:v100@pcie4", 1));
}

TEST_CASE("remembered plans are the planner's at every batch") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = mlp({64, 512, 512, 10});
  SessionOptions options;
  options.devices = {"cpu", "virtual:v100"};
  BatchSweep sweep(system, model, costs, options, "N");
  PlanCache cache;
  remember(
      cache, kKey, [&](std::int64_t batch) -> const BatchCosts& { return sweep.at(batch); }, 1, 64);
  CHECK(cache.entries(kKey) > 1);
  for (std::int64_t batch = 1; batch <= 64; ++batch) {
    const PlanCache::Entry* entry = cache.find(kKey, batch);
    REQUIRE(entry != nullptr);
    options.dims["N"] = batch;
    options.pins = entry->placement;
    const Plan pinned = plan_model(system, model, costs, options).plan;
    options.pins.clear();
    const Plan planned = plan_model(system, model, costs, options).plan;
    CHECK(pinned.serial_seconds <= planned.serial_seconds * (1 + 1e-9));
  }
}

TEST_CASE("weights: streamed ones are copied each run, resident ones bear their share") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = mlp({64, 512, 512, 10});
  SessionOptions options;
  options.devices = {"virtual:v100"};
  options.dims["N"] = 64;
  const auto planned = [&](WeightPolicy weights) {
    options.weights = weights;
    return plan_model(system, model, costs, options).plan;
  };
  const Plan free = planned({});
  const Plan streamed = planned({true, 0});
  CHECK(free.upload_seconds == 0);
  CHECK(streamed.copies.size() == free.copies.size() + 6);  // three products with bias
  CHECK(streamed.serial_seconds > free.serial_seconds);
  CHECK(streamed.predicted_seconds <= streamed.serial_seconds * (1 + 1e-12));
  double uploads = 0;
  for (const CopyPlan& copy : streamed.copies) uploads += copy.seconds;
  for (const CopyPlan& copy : free.copies) uploads -= copy.seconds;
  CHECK(std::abs(streamed.serial_seconds - free.serial_seconds - uploads) < 1e-12);
  for (const double runs : {1.0, 10.0, 1e6}) {
    const Plan shared = planned({false, runs});
    CHECK(std::abs(shared.upload_seconds - uploads / runs) < 1e-12);
    CHECK(std::abs(shared.serial_seconds - free.serial_seconds - uploads / runs) < 1e-12);
    CHECK(shared.copies.size() == free.copies.size());
    CHECK(shared.memory_bytes == free.memory_bytes);
  }
  CHECK(streamed.memory_bytes[1] <= free.memory_bytes[1]);
  // Fewer expected runs never bring more work to the device.
  options.devices = {"cpu", "virtual:v100"};
  std::size_t last = 0;
  for (const double runs : {1.0, 10.0, 100.0, 1e9}) {
    const Plan plan = planned({false, runs});
    std::size_t on_device = 0;
    for (const NodePlan& node : plan.nodes) on_device += node.device == 1 ? 1 : 0;
    CHECK(on_device >= last);
    last = on_device;
  }
  CHECK(last > 0);
  options.weights = {true, 0};
  CHECK_THROWS_AS(Session(std::make_shared<System>(), model, costs, options), Error);
}

TEST_CASE("streamed weights move a device's win to the break-even's batch") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  // One wide product on a slow CPU behind a link: B* = s Fc / (2 Bw).
  System system;
  CpuProfile cpu = made_up_cpu(400e9);
  cpu.stream = {{1e4, 400e9}, {1e8, 400e9}};  // bound by arithmetic, as the formula has it
  const CostModel costs(cpu);
  const Graph model = mlp({2048, 2048});
  SessionOptions options;
  options.devices = {"cpu", "virtual:h100-sxm@pcie3"};
  options.weights = {true, 0};
  BatchSweep sweep(system, model, costs, options, "N");
  const auto at = [&](std::int64_t batch) -> const BatchCosts& { return sweep.at(batch); };
  const CrossoverCurve curve = fastest_device(at, 1, 1024);
  const double rows = 4 * 400e9 / (2 * 12.918e9);
  INFO("B* " << rows);
  REQUIRE(curve.crossings.size() == 1);
  // The formula leaves out latencies, activations and the device's own time: within a factor of
  // two.
  CHECK(static_cast<double>(curve.crossings[0].batch) >= rows / 2);
  CHECK(static_cast<double>(curve.crossings[0].batch) <= rows * 2);
}

}  // namespace
}  // namespace turnout::testing
