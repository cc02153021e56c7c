#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "generated/turnout_config.hpp"
#include "runtime/plan/explain.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

SessionOptions on(std::vector<std::string> devices, std::int64_t batch = 1) {
  SessionOptions options;
  options.devices = std::move(devices);
  options.dims["N"] = batch;
  return options;
}

std::int64_t flip(System& system, const CostModel& costs, const std::string& device) {
  return flip_batch(system, mlp({64, 512, 512, 10}), costs, on({"cpu", device}), device);
}

TEST_CASE("a small batch stays on the CPU, a large one goes to the GPU") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const std::int64_t batch = flip(system, costs, "virtual:v100");
  INFO("flips at " << batch);
  CHECK(batch > 1);
  CHECK(batch <= 4096);
}

TEST_CASE("a slower link never lowers the flip, a slower CPU never raises it") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  for (const char* device : {"virtual:v100", "virtual:t4", "virtual:mi210", "virtual:h100-sxm"}) {
    for (const double flops : {30e9, 100e9, 400e9}) {
      const CostModel costs(made_up_cpu(flops));
      const auto as_number = [](std::int64_t batch) { return batch == 0 ? 1 << 20 : batch; };
      const std::int64_t base = as_number(flip(system, costs, device));
      INFO(device << " against " << flops << " flop/s: " << base);
      CHECK(as_number(flip(system, costs.with({0.5, 1}), device)) >= base);
      CHECK(as_number(flip(system, costs.with({1, 0.5}), device)) <= base);
    }
  }
}

TEST_CASE("a named link is the same as a slower link") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const std::int64_t fast = flip(system, costs, "virtual:h100-pcie@pcie5");
  const std::int64_t slow = flip(system, costs, "virtual:h100-pcie@pcie3");
  CHECK(fast > 0);
  CHECK((slow == 0 || slow >= fast));
}

TEST_CASE("three devices are never worse than the best pair") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  for (const double flops : {30e9, 400e9}) {
    const CostModel costs(made_up_cpu(flops));
    for (const std::int64_t batch : {1, 16, 256, 2048}) {
      const Graph model = mlp({64, 512, 512, 10});
      const auto seconds = [&](std::vector<std::string> devices) {
        return plan_model(system, model, costs, on(std::move(devices), batch)).plan.serial_seconds;
      };
      const double all = seconds({"cpu", "virtual:h100-sxm", "virtual:mi300x"});
      CHECK(all <= seconds({"cpu", "virtual:h100-sxm"}) * (1 + 1e-12));
      CHECK(all <= seconds({"cpu", "virtual:mi300x"}) * (1 + 1e-12));
    }
  }
}

TEST_CASE("explain's flip conditions hold") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = mlp({64, 512, 512, 10});
  const SessionOptions options = on({"cpu", "virtual:v100"}, 4);
  const Explanation explanation = explain(system, model, costs, options, true);
  const auto device_at = [&](std::int64_t batch, std::size_t n) {
    const PlannedModel planned = plan_model(system, model, costs, on(options.devices, batch));
    const auto device = static_cast<std::size_t>(planned.plan.nodes[n].device);
    return planned.plan.devices[device].label;
  };
  int flips = 0;
  for (std::size_t n = 0; n < explanation.flips.size(); ++n) {
    const Flip& flip = explanation.flips[n];
    if (flip.batch == 0) continue;
    ++flips;
    CHECK(device_at(flip.batch, n) == flip.batch_device);
    CHECK(device_at(flip.batch - 1, n) != flip.batch_device);
  }
  CHECK(flips > 0);
  CHECK(to_text(explanation, true).find("at batch") != std::string::npos);
}

TEST_CASE("pins and memory limits are kept") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  SessionOptions options = on({"cpu", "virtual:v100"}, 1);
  options.fuse = false;
  options.pins["product2"] = "virtual:v100";
  const PlannedModel planned = plan_model(system, mlp({64, 512, 512, 10}), costs, options);
  const auto node = planned.graph.find_node("product2");
  REQUIRE(node);
  CHECK(planned.plan.nodes[node->index].device == 1);
  options.pins["product2"] = "virtual:nowhere";
  CHECK_THROWS_AS(plan_model(system, mlp({64, 512, 512, 10}), costs, options), Error);
}

TEST_CASE("costs from outside are minimized exactly") {
  GraphBuilder b(all_ops(), "chain");
  ValueId x = b.input("x", DType::f32, {"N", 4});
  const ValueId y = b.add("relu", {x}, {}, "a");
  const ValueId z = b.add("neg", {y}, {}, "b");
  b.output(z, "z");
  const Graph graph = b.build();
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const auto plan_with = [&](const char* json) {
    const CostTable table = parse_cost_table(json, "test");
    PlanOptions options;
    options.costs = &table;
    std::vector<DeviceSlot> slots = {system.open("cpu"), system.open("virtual:v100")};
    return make_plan(graph, std::move(slots), true, CostModel(), options).serial_seconds;
  };
  const std::string z_name = graph.value(graph.outputs()[0]).name;
  const std::string y_name = graph.value(y).name;
  CHECK(plan_with(R"({"devices": ["cpu", "virtual:v100"],
    "nodes": {"a": [1, 5], "b": [9, 2]}, "transfers": {}})") == 3);
  const std::string priced = fmt::format(
      R"({{"devices": ["cpu", "virtual:v100"], "nodes": {{"a": [1, 5], "b": [9, 2]}},
      "transfers": {{"{}": [4, 0], "{}": [0, 1], "x": [1, 0]}}}})",
      y_name, z_name);
  CHECK(plan_with(priced.c_str()) == 8);  // cpu then device: 1+4+2+1; device alone: 1+5+2+1 = 9
  CHECK_THROWS_AS(plan_with(R"({"devices": ["cpu", "virtual:v100"], "nodes": {"a": [1, 5]}})"),
                  Error);
  for (const char* bad :
       {"", "[]", "{", R"({"devices": ["cpu"], "nodes": {"a": [-1]}})",
        R"({"devices": ["cpu"], "nodes": {"a": [1e999]}})",
        R"({"devices": ["cpu"], "nodes": {"a": [1, 2]}})", R"({"devices": "cpu", "nodes": {}})"}) {
    CHECK_THROWS_AS(parse_cost_table(bad, "test"), Error);
  }
}

}  // namespace
}  // namespace turnout::testing
