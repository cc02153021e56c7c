#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "generated/turnout_config.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/report/compare.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

// Every combination of devices this build can run the test models on.
std::vector<SessionOptions> all_ways() {
  std::vector<SessionOptions> ways;
  const auto add = [&](std::vector<std::string> devices, std::vector<std::string> providers) {
    SessionOptions options;
    options.devices = std::move(devices);
    options.providers = std::move(providers);
    ways.push_back(options);
  };
  add({"cpu"}, {"reference"});
  if (config::kHasKokkos) add({"cpu"}, {"kokkos"});
  if (config::kHasOnednn) add({"cpu"}, {"onednn", "reference"});
  if (config::kHasOpenblas) add({"cpu"}, {"openblas", "reference"});
  if (config::kHasOnednn && config::kHasKokkos) add({"cpu"}, {"onednn", "kokkos"});
  if (config::kHasVirtual) {
    add({"virtual:v100"}, {});
    add({"cpu", "virtual:v100"}, {});
    ways.back().alternate = true;
    add({"cpu", "virtual:v100", "virtual:mi210"}, {});
    ways.back().alternate = true;
  }
  return ways;
}

std::string name_of(const SessionOptions& way) {
  return fmt::format("{} {} {}", fmt::join(way.devices, ","), fmt::join(way.providers, ","),
                     way.alternate ? "alternate" : "");
}

void check_model(const Graph& model, const Shape& row, std::int64_t batch) {
  std::vector<std::int64_t> dims = {batch};
  dims.insert(dims.end(), row.begin(), row.end());
  const std::vector<Tensor> inputs = {random_tensor(Shape(dims), 7)};
  const auto expected = run_reference(model, {{"N", batch}}, inputs);
  const auto system = std::make_shared<System>();
  for (SessionOptions way : all_ways()) {
    for (const bool plain : {false, true}) {
      way.dims["N"] = batch;
      way.choose_layouts = !plain;
      way.fuse = !plain;
      const Session session(system, model, CostModel(made_up_cpu()), way);
      INFO(model.name() << " at batch " << batch << " on " << name_of(way)
                        << (plain ? " unfused, plain layouts" : ""));
      CHECK(output_difference(session.run(inputs), expected) < 1e-5);
      CHECK(output_difference(session.run(inputs), expected) < 1e-5);  // arenas are used again
    }
  }
}

TEST_CASE("every way of running a model gives the reference's outputs") {
  for (const std::int64_t batch : {1, 3}) {
    check_model(mlp({20, 33, 10}), {20}, batch);
    check_model(small_cnn(), {3, 12, 12}, batch);
  }
}

TEST_CASE("alternating devices really copies") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  SessionOptions options;
  options.dims["N"] = 2;
  options.devices = {"cpu", "virtual:v100"};
  options.alternate = true;
  options.fuse = false;
  const Session session(std::make_shared<System>(), mlp({20, 33, 10}), CostModel(made_up_cpu()),
                        options);
  CHECK(session.plan().copies.size() >= 4);
}

TEST_CASE("fusion shortens the graph and keeps its outputs") {
  const Graph plain = optimize(small_cnn(), {{"N", 2}}, {true, false});
  const Graph fused = optimize(small_cnn(), {{"N", 2}});
  CHECK(plain.nodes().size() == 11);
  CHECK(fused.nodes().size() == 5);  // two convolutions, pool, flatten, product
  const std::vector<Tensor> inputs = {random_tensor({2, 3, 12, 12}, 3)};
  const auto expected = run_reference(plain, {{"N", 2}}, inputs);
  CHECK(output_difference(run_reference(fused, {{"N", 2}}, inputs), expected) < 1e-6);
}

TEST_CASE("a session runs from several threads") {
  const Graph model = mlp({64, 96, 10});
  SessionOptions options;
  options.dims["N"] = 4;
  options.contexts = 2;
  const auto system = std::make_shared<System>();
  options.providers = every_provider(*system);
  const Session session(system, model, CostModel(), options);
  std::vector<std::thread> threads;
  std::vector<double> worst(4, 0);
  for (unsigned t = 0; t < worst.size(); ++t) {
    threads.emplace_back([&, t] {
      const std::vector<Tensor> inputs = {random_tensor({4, 64}, t)};
      const auto expected = run_reference(model, {{"N", 4}}, inputs);
      for (int run = 0; run < 50; ++run) {
        worst[t] = std::max(worst[t], output_difference(session.run(inputs), expected));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(*std::max_element(worst.begin(), worst.end()) < 1e-5);
}

TEST_CASE("outputs may be inputs, constants and views") {
  GraphBuilder b(all_ops(), "odd");
  const ValueId x = b.input("x", DType::f32, {"N", 4});
  const ValueId c = b.constant(random_tensor({3}, 1), "c");
  const ValueId flat = b.add("flatten", {b.add("relu", {x})});
  b.output(x, "same");
  b.output(c, "constant");
  b.output(flat, "view");
  b.output(flat, "view_again");
  const Graph model = b.build();
  const std::vector<Tensor> inputs = {random_tensor({2, 4}, 5)};
  const auto expected = run_reference(model, {{"N", 2}}, inputs);
  const auto system = std::make_shared<System>();
  SessionOptions options;
  options.dims["N"] = 2;
  options.providers = every_provider(*system);
  const Session session(system, model, CostModel(), options);
  const auto outputs = session.run(inputs);
  REQUIRE(outputs.size() == 4);
  CHECK(output_difference(outputs, expected) == 0);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("mistakes get one error that names what and where") {
  const auto system = std::make_shared<System>();
  const Graph model = mlp({20, 33, 10});
  SessionOptions options;
  const auto make = [&] { Session(system, model, CostModel(), options); };
  CHECK(error_of(make).find("dimension N") != std::string::npos);
  options.dims["N"] = 2;
  options.devices = {"tpu"};
  CHECK(error_of(make).find("'tpu'") != std::string::npos);
  options.devices = {"cpu"};
  options.providers = {"abacus"};
  CHECK(error_of(make).find("'abacus'") != std::string::npos);
  options.providers = every_provider(*system);
  options.pins["nowhere"] = "cpu";
  CHECK(error_of(make).find("'nowhere'") != std::string::npos);
  options.pins.clear();
  const Session session(system, model, CostModel(), options);
  const std::vector<Tensor> wrong = {random_tensor({2, 21}, 1)};
  CHECK(error_of([&] { session.run(wrong); }) ==
        "input 'x' has to be f32[2,20] in host memory, given: f32[2,21]");
}

}  // namespace
}  // namespace turnout::testing
