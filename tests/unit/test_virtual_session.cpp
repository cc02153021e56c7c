// Whole programs on virtual devices, worked off in the orders that are hardest for them.
#include <cstdio>
#include <random>

#include <catch2/catch_test_macros.hpp>

#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("programs on virtual devices") { SKIP("this build has no virtual devices"); }

#else

#include "backends/gpu/device.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/report/compare.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

const std::vector<std::string> kDevices = {"cpu", "virtual:v100", "virtual:mi210"};

gpu::GpuDevice& open(System& system, const std::string& name) {
  return dynamic_cast<gpu::GpuDevice&>(*system.open(name).device);
}

void set_faults(System& system, const gpu::Faults& faults) {
  for (const std::string& name : kDevices) {
    if (name != "cpu") open(system, name).set_faults(faults);
  }
}

void others_first(System& system, bool on) {
  gpu::Faults faults;
  faults.others_first = on;
  set_faults(system, faults);
}

// Elementwise nodes on [4,64], each on a device of its own choice, that read what was made before.
struct RandomProgram {
  std::shared_ptr<System> system;
  Tensor input;
  PlannedModel planned;
  Program program;
  std::vector<Tensor> expected;

  RandomProgram(std::shared_ptr<System> of, unsigned seed) : system(std::move(of)) {
    std::mt19937 random(seed);
    const Graph model = make_model(random);
    SessionOptions options;
    options.devices = kDevices;
    options.fuse = false;
    options.threads = 1;
    const Graph live = optimize(model, {}, {true, false});
    for (const Node& node : live.nodes()) {
      options.pins[node.name] = kDevices[random() % 3];
    }
    planned = plan_model(*system, model, CostModel(made_up_cpu()), options);
    program = compile(planned.graph, planned.plan);
    input = random_tensor({4, 64}, seed);
    expected = run_reference(model, {}, {input});
  }

  static Graph make_model(std::mt19937& random) {
    GraphBuilder b(all_ops(), "random");
    std::vector<ValueId> values = {b.input("x", DType::f32, {4, 64})};
    for (int i = 0; i < 12; ++i) {
      const auto recent = [&] {
        const std::size_t window = std::min<std::size_t>(values.size(), 4);
        return values[values.size() - 1 - random() % window];
      };
      const std::string name = "n" + std::to_string(i);
      const ValueId a = recent();
      const ValueId c = recent();
      values.push_back(random() % 3 == 0 ? b.add("sigmoid", {a}, {}, name)
                                         : b.add("add", {a, c}, {}, name));
    }
    b.output(values.back(), "y");
    return b.build();
  }

  /// Runs three times, so that arenas are used again and segments are captured. False for wrong
  /// outputs and for errors.
  bool is_right() const {
    Context context(program, planned.plan);
    context.bind_input(0, input.address());
    for (int run = 0; run < 3; ++run) {
      std::vector<Tensor> outputs = {Tensor::empty(expected[0].spec())};
      try {
        context.bind_output(0, outputs[0].address());
        context.run();
      } catch (const Error&) {
        return false;
      }
      for (std::size_t i = 0; i < 256; ++i) {
        const float difference = outputs[0].data<float>()[i] - expected[0].data<float>()[i];
        if (!(std::abs(difference) <= 1e-5F * (1 + std::abs(expected[0].data<float>()[i])))) {
          return false;
        }
      }
    }
    return true;
  }
};

// True if `step` comes after `other` whether it waits for it or not: by the order of its lane, by
// waits of others, or because the host, which works at once, waited before it issued the step.
bool is_implied(const Program& program, std::size_t step, int other) {
  std::vector<bool> after(program.steps.size(), false);
  after[static_cast<std::size_t>(other)] = true;
  bool host = false;
  for (std::size_t s = static_cast<std::size_t>(other) + 1; s <= step; ++s) {
    const ExecStep& each = program.steps[s];
    bool reached = host;
    for (std::size_t p = 0; p < s; ++p) {
      reached = reached || (after[p] && program.steps[p].lane == each.lane);
    }
    for (const int wait : each.waits) {
      reached = reached || after[static_cast<std::size_t>(wait)];
    }
    after[s] = reached;
    host = host || (reached && each.lane == 0);
  }
  return after[step];
}

}  // namespace

TEST_CASE("programs are right in either order; a missing wait is noticed", "[virtual]") {
  const auto system = std::make_shared<System>();
  int waits = 0;
  int implied = 0;
  int noticed = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    RandomProgram test(system, seed);
    const auto is_right = [&](bool order) {
      others_first(*system, order);
      return test.is_right();
    };
    CHECK(is_right(false));
    CHECK(is_right(true));
    // Each wait left out in turn.
    for (std::size_t s = 0; s < test.program.steps.size(); ++s) {
      std::vector<int>& all = test.program.steps[s].waits;
      for (std::size_t w = 0; w < all.size(); ++w) {
        const std::vector<int> whole = all;
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(w));
        ++waits;
        if (is_implied(test.program, s, whole[w])) {
          ++implied;
          CHECK(is_right(false));
          CHECK(is_right(true));
        } else {
          noticed += is_right(false) && is_right(true) ? 0 : 1;
        }
        all = whole;
      }
    }
  }
  std::printf("%d waits, %d implied by others; %d of the other %d are noticed when missing\n",
              waits, implied, noticed, waits - implied);
  CHECK(waits - implied > 200);
  // Two orders can't be wrong for all of them: some late writers still come after their readers.
  CHECK(noticed * 4 >= (waits - implied) * 3);
}

TEST_CASE("kernels in a row are captured, and the host waits once a lane", "[virtual]") {
  const auto system = std::make_shared<System>();
  gpu::GpuDevice& device = open(*system, "virtual:v100");
  const Graph model = mlp({20, 33, 33, 10});
  SessionOptions options;
  options.dims["N"] = 3;
  options.devices = {"virtual:v100"};
  const PlannedModel planned = plan_model(*system, model, CostModel(made_up_cpu()), options);
  const Tensor input = random_tensor({3, 20}, 1);
  const std::vector<Tensor> expected = run_reference(model, {{"N", 3}}, {input});
  for (const bool capture : {true, false}) {
    ProgramOptions program_options;
    program_options.capture = capture;
    const Program program = compile(planned.graph, planned.plan, program_options);
    CHECK(program.segments.size() == (capture ? 1 : 0));
    Context context(program, planned.plan);
    context.bind_input(0, input.address());
    for (int run = 0; run < 4; ++run) {
      std::vector<Tensor> outputs = {Tensor::empty(expected[0].spec())};
      context.bind_output(0, outputs[0].address());
      const std::int64_t before = device.synchronize_count();
      context.run();
      CHECK(device.synchronize_count() - before == program.lanes - 1);
      CHECK(output_difference(outputs, expected) < 1e-5);
    }
  }
}

TEST_CASE("a session outlives the faults of its device", "[virtual]") {
  const auto system = std::make_shared<System>();
  gpu::GpuDevice& device = open(*system, "virtual:v100");
  const Graph model = mlp({20, 33, 10});
  SessionOptions options;
  options.dims["N"] = 3;
  options.devices = {"virtual:v100"};
  const std::vector<Tensor> inputs = {random_tensor({3, 20}, 1)};
  const auto make = [&] {
    return std::make_unique<Session>(system, model, CostModel(made_up_cpu()), options);
  };
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  // Every allocation that making it needs fails once: an error, and nothing is left behind.
  int allocations = 0;
  for (; allocations < 100; ++allocations) {
    gpu::Faults faults;
    faults.fail_allocation = allocations;
    device.set_faults(faults);
    try {
      make();
      break;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::out_of_memory);
      CHECK(device.memory_use().bytes == 0);
    }
  }
  CHECK(allocations >= 1);
  CHECK(allocations < 100);
  device.set_faults({});
  const auto session = make();
  const std::vector<Tensor> expected = session->run(inputs);
  for (int launches = 0; launches < 2; ++launches) {
    gpu::Faults faults;
    faults.lose_device_after = launches;
    device.set_faults(faults);
    CHECK(code_of([&] { session->run(inputs); }) == ErrorCode::device_lost);
  }
  device.set_faults({});
  const std::vector<Tensor> again = session->run(inputs);
  for (std::int64_t i = 0; i < expected[0].elements(); ++i) {
    CHECK(again[0].data<float>()[i] == expected[0].data<float>()[i]);
  }
}

}  // namespace turnout::testing

#endif
