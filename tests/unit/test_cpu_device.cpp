#include <algorithm>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "ops/all_ops.hpp"
#include "tests/support/device_conformance.hpp"
#include "tests/support/host_device.hpp"

using namespace turnout;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the host's device does what devices do") {
  const auto backend = make_cpu_backend();
  conformance::check_device(backend->open("cpu"));
}

TEST_CASE("the CPU backend opens one device") {
  const auto backend = make_cpu_backend();
  CHECK(backend->name() == "cpu");
  CHECK(backend->device_names() == std::vector<std::string>{"cpu"});
  CHECK(&backend->open("cpu") == &backend->open("cpu"));
  CHECK_THROWS_AS(backend->open("gpu"), Error);
  const DeviceInfo& info = backend->open("cpu").info();
  CHECK(info.is_host);
  CHECK_FALSE(info.is_virtual);
  CHECK_FALSE(info.title.empty());
  CHECK(info.compute_units >= 1);
  CHECK(info.memory_bytes.value > 1e6);
  CHECK(info.memory_bytes.evidence == Evidence::measured);
  CHECK_FALSE(info.peak_f32.known());
}

TEST_CASE("every provider is either built or missing with a reason") {
  const auto backend = make_cpu_backend();
  const auto built = backend->default_providers();
  const auto missing = backend->missing();
  for (const std::string provider : {"onednn", "openblas", "kokkos"}) {
    const bool there = std::ranges::find(built, provider) != built.end();
    const auto line = std::ranges::find_if(
        missing, [&](const std::string& text) { return text.starts_with(provider + ": "); });
    CHECK(there == (line == missing.end()));
    if (line != missing.end()) CHECK(line->size() > provider.size() + 2);
  }
  KernelRegistry registry;
  backend->register_kernels(registry);
  for (const std::string& provider : built) CHECK(registry.kernel_count(provider) > 0);
  const bool only = built == std::vector<std::string>{"reference"};
  CHECK((only || std::ranges::find(built, "reference") == built.end()));
}

namespace {

Graph relu_of_sum() {
  GraphBuilder builder(all_ops(), "test");
  const ValueId x = builder.input("x", DType::f32, {2, 3});
  const ValueId y = builder.input("y", DType::f32, {3, 2});
  builder.output(builder.add("matmul", {x, y}, {{"activation", std::string("relu")}}));
  return builder.build().bind({});
}

}  // namespace

TEST_CASE("the reference provider runs an op's own reference") {
  test::Host host;
  const Graph graph = relu_of_sum();
  const NodeInfo info = graph.info(NodeId{0});
  const std::vector<std::string> providers = {"reference"};
  const auto selection = host.registry.select(info, host.device.info(), providers);
  REQUIRE(selection.entry != nullptr);
  const test::HostNode node(host, info, *selection.entry, 1, false);
  CHECK(node.kernel().implementation() == "reference");
  CHECK(node.kernel().cost.flops > 0);
  const auto result = node.run({Tensor::of<float>({2, 3}, {1, 2, 3, -1, -2, -3}),
                                Tensor::of<float>({3, 2}, {1, 0, 0, 1, 1, 1})});
  CHECK(std::ranges::equal(result[0].values<float>(), std::vector<float>{4, 5, 0, 0}));
}

TEST_CASE("the reference provider has a kernel for every op that has a reference") {
  KernelRegistry registry;
  register_reference_kernels(registry);
  std::size_t count = 0;
  for (const auto& [name, def] : all_ops().all()) count += def.reference != nullptr ? 1U : 0U;
  CHECK(registry.kernel_count("reference") == count);
}

TEST_CASE("no provider of the host takes nodes of other devices") {
  test::Host host;
  const Graph graph = relu_of_sum();
  DeviceInfo elsewhere;
  elsewhere.name = "elsewhere";
  const std::vector<std::string> providers = {"onednn", "openblas", "reference"};
  const auto selection = host.registry.select(graph.info(NodeId{0}), elsewhere, providers);
  CHECK(selection.entry == nullptr);
  for (const auto& refusal : selection.refusals) {
    if (host.registry.kernel_count(refusal.provider) > 0) {
      CHECK_THAT(refusal.reason, ContainsSubstring("host"));
    }
  }
}
