#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/cost/history.hpp"
#include "runtime/plan/explain.hpp"
#include "runtime/report/compare.hpp"
#include "tests/support/models.hpp"
#include "tests/support/op_runner.hpp"

namespace turnout::testing {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

struct CacheFolder {
  CacheFolder()
      : path(std::filesystem::temp_directory_path() / fmt::format("turnout-history-{}", getpid())) {
    setenv("TURNOUT_CACHE", path.c_str(), 1);
  }
  ~CacheFolder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    unsetenv("TURNOUT_CACHE");
  }
  std::filesystem::path path;
};

void add(CostHistory& history, const CostKey& key, double seconds, int times) {
  for (int i = 0; i < times; ++i) history.add(key, seconds);
}

CostKey key_of_node(System& system, const Graph& model, std::int64_t batch,
                    const std::string& provider = "reference") {
  const Graph bound = model.bind({{"N", batch}});
  return cost_key(bound.info(NodeId{0}), provider, system.open("cpu", {}, 1));
}

TEST_CASE("a node's key takes the batch out and keeps everything else") {
  System system;
  const Graph model = mlp({64, 32, 10});
  const CostKey one = key_of_node(system, model, 1), eight = key_of_node(system, model, 8);
  CHECK(one.family == eight.family);
  CHECK(one.rows == 1);
  CHECK(eight.rows == 8);
  CHECK(key_of_node(system, mlp({64, 33, 10}), 1).family != one.family);
  CHECK(key_of_node(system, mlp({65, 32, 10}), 1).family != one.family);
  CHECK(key_of_node(system, model, 1, "onednn").family != one.family);
}

TEST_CASE("few samples don't count unless they were long") {
  CostHistory history;
  const CostKey key{"node", 4};
  CHECK(history.empty());
  add(history, key, 1e-4, 9);
  CHECK_FALSE(history.find(key).has_value());
  history.add(key, 1e-4);
  REQUIRE(history.find(key).has_value());
  CHECK(history.find(key)->exact);
  CHECK(history.find(key)->seconds == Approx(1e-4));
  add(history, {"long", 4}, 0.011, 2);
  CHECK_FALSE(history.find({"long", 4}).has_value());
  history.add({"long", 4}, 0.011);
  CHECK(history.find({"long", 4}).has_value());
  add(history, {"no time", 1}, 0, 20);
  CHECK_FALSE(history.find({"no time", 1}).has_value());
}

TEST_CASE("new samples take the place of old ones, and outliers don't count") {
  CostHistory history;
  const CostKey key{"node", 1};
  add(history, key, 5e-3, 40);  // a busy machine
  add(history, key, 1e-3, 40);
  CHECK(history.find(key)->seconds == Approx(1e-3));
  CHECK(history.find(key)->samples == CostHistory::kMaxSamples);
  history.add(key, 7e-2);
  CHECK(history.find(key)->seconds == Approx(1e-3));
  CHECK(history.nodes() == 1);
}

TEST_CASE("between measured numbers of rows a line is taken, and said to be no measurement") {
  CostHistory history;
  const auto seconds = [](double rows) { return 2e-3 + rows * 1e-3; };
  for (const std::int64_t rows : {4, 16, 64}) {
    add(history, {"node", rows}, seconds(static_cast<double>(rows)), 10);
  }
  const auto at = [&](std::int64_t rows) { return history.find({"node", rows}); };
  CHECK(at(16)->exact);
  REQUIRE(at(10).has_value());
  CHECK_FALSE(at(10)->exact);
  CHECK(at(10)->seconds == Approx(seconds(10)));
  CHECK(at(63)->seconds == Approx(seconds(63)));
  CHECK(at(128)->seconds == Approx(seconds(128)));  // the last two's line
  CHECK_FALSE(at(129).has_value());                 // 16 to 129: too far
  CHECK_FALSE(at(3).has_value());                   // nothing below
  CHECK_FALSE(history.find({"other", 10}).has_value());
  add(history, {"far", 1}, 1e-3, 10);
  add(history, {"far", 9}, 1e-3, 10);
  CHECK_FALSE(history.find({"far", 4}).has_value());
  // Noise must not make more rows cheaper.
  add(history, {"noisy", 32}, 2e-3, 10);
  add(history, {"noisy", 64}, 1.9e-3, 10);
  CHECK(history.find({"noisy", 128})->seconds >= 1.9e-3);
}

TEST_CASE("history is kept, added to by several programs, and read with suspicion") {
  const CacheFolder folder;
  System system;
  CHECK(kept_history(system)->empty());
  const auto one = kept_history(system), two = kept_history(system);
  add(*one, {"a", 1}, 1e-3, 6);
  add(*two, {"a", 1}, 1e-3, 6);
  add(*two, {"b", 2}, 2e-3, 10);
  REQUIRE(keep_history(system, *one));
  REQUIRE(keep_history(system, *two));
  REQUIRE(keep_history(system, *two));  // nothing new: nothing is added twice
  const auto kept = kept_history(system);
  REQUIRE(kept->find({"a", 1}).has_value());
  CHECK(kept->find({"a", 1})->samples == 12);
  CHECK(kept->find({"b", 2})->seconds == Approx(2e-3));
  CHECK(kept->find({"b", 2})->samples == 10);

  const std::string key = history_key(system), good = kept->to_json(key);
  CostHistory read;
  CHECK_THROWS_WITH(read.parse("[]", key, "f.json"), ContainsSubstring("f.json"));
  CHECK_THROWS_WITH(read.parse(good, "another", "f.json"), ContainsSubstring("another machine"));
  const auto damaged = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  CHECK_THROWS_WITH(read.parse(damaged("0.001", "-1"), key, "f"), ContainsSubstring("no time"));
  CHECK_THROWS_WITH(read.parse(damaged("0.001", "\"x\""), key, "f"), ContainsSubstring("no time"));
  CHECK_THROWS_WITH(read.parse(damaged("\"rows\":1", "\"rows\":-1"), key, "f"),
                    ContainsSubstring("rows"));
  CHECK(read.empty());
  for (std::size_t cut = 0; cut < good.size(); cut += 7) {
    CHECK_THROWS_AS(read.parse(good.substr(0, cut), key, "f"), Error);
  }
  std::ofstream(history_path(key)) << good.substr(0, good.size() / 2);
  CHECK(kept_history(system)->empty());
}

TEST_CASE("what a busy machine shows counts here and isn't kept") {
  const CacheFolder folder;
  System system;
  CostHistory history;
  for (std::size_t i = 0; i < CostHistory::kMinSamples; ++i) history.add({"node", 1}, 4e-3, false);
  CHECK(history.find({"node", 1}).has_value());
  CHECK(keep_history(system, history));
  CHECK(kept_history(system)->empty());
}

TEST_CASE("the nodes that weren't seen for longest go first") {
  CostHistory history;
  const std::size_t all = CostHistory::kMaxNodes + 3;
  for (std::size_t i = 0; i < CostHistory::kMaxNodes; ++i) {
    history.add({"node", static_cast<std::int64_t>(i)}, 1);
  }
  history.add({"node", 0}, 1);
  for (std::size_t i = CostHistory::kMaxNodes; i < all; ++i) {
    history.add({"node", static_cast<std::int64_t>(i)}, 1);
  }
  CHECK(history.nodes() == CostHistory::kMaxNodes);
  add(history, {"node", 0}, 1, 2);
  CHECK(history.find({"node", 0}).has_value());  // three in all: the first one is still there
}

TEST_CASE("what was measured prices the same nodes in later plans") {
  System system;
  const Graph model = mlp({64, 32, 10});
  SessionOptions options;
  options.dims["N"] = 4;
  options.providers = every_provider(system);
  const Session session(std::make_shared<System>(), model, CostModel(), options);
  std::vector<Tensor> inputs, outputs;
  for (const auto& io : session.inputs()) inputs.push_back(Tensor::zeros(io.spec));
  outputs = session.run(inputs);
  const auto history = std::make_shared<CostHistory>();
  for (std::size_t i = 0; i < CostHistory::kMinSamples; ++i) {
    session.record(session.run_timed(inputs, outputs), *history);
  }
  const Plan plan = plan_model(system, model, CostModel(made_up_cpu(), history), options).plan;
  CHECK(plan.evidence == Evidence::measured);
  options.dims["N"] = 5;  // never run
  const Plan other = plan_model(system, model, CostModel(made_up_cpu(), history), options).plan;
  const Plan without = plan_model(system, model, CostModel(made_up_cpu()), options).plan;
  CHECK(other.evidence == without.evidence);
  CHECK(without.evidence != Evidence::measured);
}

TEST_CASE("each node gets the provider that was measured faster, where that outweighs layouts") {
  System system;
  const DeviceSlot slot = system.open("cpu", {}, 1);
  if (slot.providers.size() < 2) SKIP("one provider is built");
  const Graph model = mlp({256, 256, 256});
  SessionOptions options;
  options.dims["N"] = 4;
  options.threads = 1;
  const PlannedModel usual = plan_model(system, model, CostModel(made_up_cpu()), options);
  std::size_t changed = usual.plan.nodes.size();
  std::string other;
  const auto history = std::make_shared<CostHistory>();
  for (std::size_t n = 0; n < usual.plan.nodes.size(); ++n) {
    const NodeInfo info = usual.graph.info(NodeId{static_cast<std::uint32_t>(n)});
    const KernelEntry* kernel = usual.plan.nodes[n].chosen().kernel;
    if (kernel == nullptr) continue;
    add(*history, cost_key(info, kernel->provider, slot), 1e-3, 10);
    if (changed < n) continue;
    for (const std::string& provider : slot.providers) {
      const std::string names[] = {provider};
      if (provider == kernel->provider ||
          slot.kernels->select(info, slot.info(), names).entry == nullptr) {
        continue;
      }
      add(*history, cost_key(info, provider, slot), 0.5e-3, 10);
      changed = n;
      other = provider;
      break;
    }
  }
  REQUIRE(changed < usual.plan.nodes.size());
  const CostModel costs(made_up_cpu(), history);
  const Plan plan = plan_model(system, model, costs, options).plan;
  CHECK(plan.nodes[changed].chosen().kernel->provider == other);
  CHECK_THAT(plan.nodes[changed].chosen().why, ContainsSubstring("took"));
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (n != changed) CHECK(plan.nodes[n].chosen().kernel == usual.plan.nodes[n].chosen().kernel);
  }
  // A provider that the user named stays.
  options.devices = {"cpu:" + slot.providers[0]};
  const Plan named = plan_model(system, model, costs, options).plan;
  CHECK(named.nodes[changed].chosen().kernel->provider != other);
  // Where passes over memory are dear, half a millisecond isn't worth two of them.
  CpuProfile slow = made_up_cpu();
  for (RatePoint& point : slow.stream) point.rate = 1e6;
  options.devices = {"cpu"};
  const Plan stays = plan_model(system, model, CostModel(slow, history), options).plan;
  CHECK(stays.nodes[changed].chosen().kernel->provider != other);
}

}  // namespace
}  // namespace turnout::testing
