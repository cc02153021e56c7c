// What is done differently for a device that isn't virtual: it is measured, not emulated.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/cost/device_probe.hpp"
#include "runtime/gate.hpp"
#include "runtime/report/compare.hpp"
#include "tests/support/accelerator.hpp"
#include "tests/support/models.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct CacheFolder {
  CacheFolder()
      : path(std::filesystem::temp_directory_path() / fmt::format("turnout-real-{}", getpid())) {
    setenv("TURNOUT_CACHE", path.c_str(), 1);
  }
  ~CacheFolder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    unsetenv("TURNOUT_CACHE");
  }
  std::filesystem::path path;
};

Graph model() {
  GraphBuilder b(all_ops(), "model");
  const ValueId x = b.input("x", DType::f32, {"N", 64});
  const ValueId h = b.add("relu", {b.add("matmul", {x, b.constant(counting({64, 32}))})});
  b.output(b.add("softmax", {h}), "y");
  return b.build();
}

// Those that kernels of an unoptimized build have done in no time.
std::vector<ProbePoint> small_points() { return quick_points({1 << 20, 1 << 20, 128}); }

// A build whose only provider is the reference has nothing to probe the CPU with.
bool can_probe(System& system) { return !cpu_points(system, false).empty(); }

}  // namespace

TEST_CASE("a device without figures can't be priced until it is calibrated") {
  const CacheFolder cache;
  const auto system = std::make_shared<System>(backends_with_accelerator());
  CHECK_FALSE(system->open("fake:0").info().peak_f32.known());
  const std::string first = use_calibration(*system, "fake:0", small_points());
  CHECK_THAT(first, ContainsSubstring("fake:0: calibrated in"));
  const DeviceInfo& info = system->open("fake:0").info();
  CHECK(info.peak_f32.evidence == Evidence::calibrated);
  CHECK(info.peak_f32.value > 1e6);
  CHECK(info.memory_bytes_per_s.evidence == Evidence::calibrated);
  CHECK(info.link.h2d_bytes_per_s.value > 1e6);
  CHECK(info.synchronize_seconds.evidence == Evidence::calibrated);
  // The next program on this machine reads them, or measures what time wasn't left for.
  const std::size_t points = small_points().size();
  System other(backends_with_accelerator());
  std::string said;
  for (std::size_t start = 0; start <= points; ++start) {
    said = use_calibration(other, "fake:0", small_points());
    if (said.find("calibrated in") == std::string::npos) break;
  }
  CHECK_THAT(said, ContainsSubstring("figures of its calibration in"));
  CHECK(other.open("fake:0").info().peak_f32.evidence == Evidence::calibrated);
  CHECK(use_calibration(other, "cpu").empty());
}

TEST_CASE("compare measures a real device and keeps what was predicted beside it") {
  const CacheFolder cache;
  const auto system = std::make_shared<System>(backends_with_accelerator());
  if (!can_probe(*system)) SKIP("only the reference is built: the CPU can't be probed");
  CompareOptions options;
  options.batches = {1, 8};
  options.devices = {"cpu", "fake:0", "auto"};
  options.budget_seconds = 0.01;
  options.providers = testing::every_provider(*system);
  const Comparison result = compare(system, model(), options);
  int measured = 0;
  for (const CompareRow& row : result.rows) {
    if (row.device != "fake:0") continue;
    ++measured;
    CHECK(row.evidence == Evidence::measured);
    CHECK(row.executed);
    CHECK(row.runs >= 1);
    CHECK(row.predicted_seconds > 0);
    CHECK(row.predicted_evidence == Evidence::calibrated);
    CHECK(row.difference == 0);
    REQUIRE(row.node_times.size() == 2);
    for (const CompareRow::NodeTime& node : row.node_times) {
      CHECK(node.evidence == Evidence::measured);
      CHECK(node.device == "fake:0");
    }
  }
  CHECK(measured == 2);
  CHECK(result.outputs_agree);
  bool found = false;
  for (const PredictionError& error : prediction_errors(result)) {
    found = found || (error.device == "fake:0" && error.rows == 2 &&
                      error.evidence == Evidence::calibrated && error.worst >= error.mean);
  }
  CHECK(found);
  CHECK_THAT(to_text(result), ContainsSubstring("fake:0 (calibrated): off by"));
  CHECK_THAT(to_json(result), ContainsSubstring("\"predicted_s\""));
}

TEST_CASE("a plan is kept only if it beats every device alone by more than the noise") {
  const auto took = [](std::string name, double seconds, double spread, std::string refusal = "") {
    return GateCandidate{std::move(name), {seconds, seconds, spread, 10, 0}, 0, refusal};
  };
  const auto kept = [](std::vector<GateCandidate> candidates) {
    return choose_candidate(candidates);
  };
  CHECK(kept({took("plan", 1, 0)}) == 0);
  CHECK(kept({took("plan", 0.90, 0), took("cpu", 1, 0), took("gpu", 2, 0)}) == 0);
  CHECK(kept({took("plan", 0.97, 0), took("cpu", 1, 0), took("gpu", 2, 0)}) == 1);
  CHECK(kept({took("plan", 0.90, 0.06), took("cpu", 2, 0), took("gpu", 1, 0)}) == 2);
  CHECK(kept({took("plan", 3, 0), took("cpu", 0, 0, "too small"), took("gpu", 1, 0)}) == 2);
  CHECK(kept({took("plan", 3, 0), took("cpu", 0, 0, "too small")}) == 0);
  CHECK_THROWS_AS(choose_candidate({}), Error);
}

TEST_CASE("a plan that loses to its own devices is found out") {
  const CacheFolder cache;
  const auto system =
      std::make_shared<System>(backends_with_accelerator(std::chrono::milliseconds(2)));
  SessionOptions options;
  options.dims["N"] = 8;
  options.devices = {"cpu", "fake:0"};
  options.providers = testing::every_provider(*system);
  // Copies are said to cost nothing and the device to be fast for products alone, so the plan goes
  // to and fro, and every copy takes 2 ms.
  DeviceInfo wrong = system->open("fake:0").info();
  const auto claim = [](double value) {
    return Figure{value, Evidence::calibrated, "wrong on purpose"};
  };
  wrong.peak_f32 = claim(1e15);
  wrong.memory_bytes_per_s = claim(1e15);
  wrong.launch_seconds = wrong.synchronize_seconds = claim(1e-9);
  wrong.link.latency_seconds = claim(1e-9);
  wrong.link.h2d_bytes_per_s = wrong.link.d2h_bytes_per_s = claim(1e15);
  system->use_info("fake:0", wrong);
  const CostModel costs(testing::made_up_cpu());
  const Graph graph = model();
  const std::vector<Tensor> inputs{Tensor::zeros({DType::f32, {8, 64}})};
  const GateResult result = gate_plan(system, graph, costs, options, inputs, {0.05, 3});
  REQUIRE(result.candidates.size() == 2);
  CHECK(result.candidates[0].name == "fake:0");  // predicted to be best, alone
  CHECK(result.candidates[1].name == "cpu");
  CHECK(result.kept == 1);
  for (const GateCandidate& candidate : result.candidates) CHECK(candidate.sample.count >= 2);
  CHECK(result.candidates[0].sample.seconds > 0.004);  // two copies
  CHECK_THAT(to_text(result), ContainsSubstring("cpu is taken instead of fake:0"));
  for (const NodePlan& node : result.session->plan().nodes) CHECK(node.device == 0);

  options.pins[graph.nodes()[0].name] = "fake:0";
  const GateResult pinned = gate_plan(system, graph, costs, options, inputs);
  CHECK(pinned.candidates.size() == 1);
  CHECK_THAT(to_text(pinned), ContainsSubstring("places of nodes were asked for"));
  options.pins.clear();
  options.devices = {"cpu"};
  CHECK_THAT(gate_plan(system, graph, costs, options, inputs).why, ContainsSubstring("one device"));
}
