#include "generated/turnout_config.hpp"

#include <catch2/catch_test_macros.hpp>

#if TURNOUT_HAS_KOKKOS

#include <limits>

#include "backends/kokkos/host/gemm_split.hpp"
#include "tests/support/host_cases.hpp"

using namespace turnout;
using namespace turnout::kokkos;
using namespace turnout::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Runs a case on data of the test's own and compares with the reference.
void check_with(Host& host, const std::string& line, const std::vector<float>& x) {
  INFO(line);
  const HostCase one = parse_host_case(line, false);
  std::vector<Tensor> inputs = one.inputs();
  inputs[0] = Tensor::of<float>(inputs[0].shape(), x);
  const KernelEntry* entry = host.find(one.info(), "kokkos");
  REQUIRE(entry != nullptr);
  for (const int threads : {1, 2}) {
    const HostNode node(host, one.info(), *entry, threads, false);
    one.check(node.run(inputs), evaluate(one.info(), pointers(inputs)));
  }
}

std::unique_ptr<PreparedKernel> prepared(Host& host, const HostCase& one, int threads) {
  const KernelEntry* entry = host.find(one.info(), "kokkos");
  REQUIRE(entry != nullptr);
  return entry->prepare(PrepareContext{one.info(), host.device, threads, {}, false});
}

}  // namespace

TEST_CASE("every case of products and pools runs on kokkos and equals the reference") {
  Host host;
  for (const std::string op :
       {"matmul", "conv", "conv_transpose", "max_pool", "average_pool", "lp_pool",
        "global_average_pool", "global_max_pool", "global_lp_pool"}) {
    const auto all = static_cast<int>(load_host_cases(op, true).size());
    CHECK(all > 0);
    CHECK(check_provider(host, "kokkos", op) == all);
  }
}

TEST_CASE("products run from several threads at once") {
  Host host;
  check_concurrent(host, "kokkos", parse_host_case("matmul f32[64,130] f32[130,70] f32[70]", true));
  check_concurrent(host, "kokkos",
                   parse_host_case("conv f32[2,16,14,14] f32[20,16,3,3] pads=[1,1,1,1]", true));
  check_concurrent(
      host, "kokkos",
      parse_host_case("conv f32[2,16,14,14] f32[16,1,3,3] group=16 pads=[1,1,1,1]", true));
}

TEST_CASE("tasks of a split cover a product once") {
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    for (const std::int64_t m : {1, 7, 8, 65, 300}) {
      for (const std::int64_t n : {1, 16, 49, 333}) {
        for (const double pack_cost : {0.0, 0.2, 1.5}) {
          const GemmSplit split = split_gemm<float>(3, m, n, threads, pack_cost);
          std::vector<int> seen(static_cast<std::size_t>(3 * m * n), 0);
          for (std::int64_t slot = 0; slot < split.slots; ++slot) {
            for (auto i = split.first_task(slot); i < split.first_task(slot + 1); ++i) {
              const GemmSplit::Task task = split.task(i);
              for (auto row = task.m0; row < task.m1; ++row) {
                for (auto col = task.n0; col < task.n1; ++col) {
                  ++seen[static_cast<std::size_t>((task.batch * m + row) * n + col)];
                }
              }
            }
          }
          INFO("threads " << threads << ", m " << m << ", n " << n << ", pack " << pack_cost);
          CHECK(std::ranges::all_of(seen, [](int count) { return count == 1; }));
        }
      }
    }
  }
}

TEST_CASE("NaN and infinity go through pools, padding doesn't") {
  Host host;
  const std::vector<float> nan = {kNan, -1, -2, -3, -4, -5, -6, -7, -8};
  const std::vector<float> low(9, -kInf);
  const std::vector<float> mixed = {kInf, 1, -kInf, 2, 3, 4, 5, 6, 7};
  for (const auto& x : {nan, low, mixed}) {
    for (const std::string window : {" kernel_shape=[2,2] pads=[1,1,1,1]", " kernel_shape=[3,3]",
                                     " kernel_shape=[2,2] strides=[2,2] ceil_mode=1"}) {
      check_with(host, "max_pool f32[1,1,3,3]" + window, x);
      check_with(host, "max_pool f32[1,1,3,3] outputs=2" + window, x);
      check_with(host, "average_pool f32[1,1,3,3]" + window, x);
    }
    check_with(host, "global_max_pool f32[1,1,3,3]", x);
    check_with(host, "global_average_pool f32[1,1,3,3]", x);
  }
}

TEST_CASE("NaN goes through products and relu") {
  Host host;
  check_with(host, "matmul f32[2,2] f32[2,40] activation=relu", {kNan, 1, -1, -2});
  check_with(host, "conv f32[1,1,2,2] f32[3,1,1,1] activation=relu", {kNan, 1, -kInf, -2});
}

TEST_CASE("constant weights are packed and workspaces stay small") {
  Host host;
  const HostCase wide = parse_host_case("matmul f32[64,4096] f32[4096,4096]", true);
  const auto product = prepared(host, wide, 2);
  CHECK(product->packs_input(1));
  CHECK_FALSE(product->packs_input(0));
  CHECK(product->packed_bytes() >= 4U * 4096 * 4096);
  CHECK(product->workspace_bytes() == 0);
  const HostCase conv = parse_host_case("conv f32[1,512,128,128] f32[512,512,3,3]", false);
  CHECK(prepared(host, conv, 2)->workspace_bytes() <= 2U << 20);
  const HostCase depthwise = parse_host_case("conv f32[1,2,2000,2000] f32[2,1,3,3] group=2", false);
  CHECK(prepared(host, depthwise, 2)->workspace_bytes() <= 2U << 20);
}

TEST_CASE("types without a kernel are refused with the reason") {
  Host host;
  const HostCase sums = parse_host_case("average_pool f32[1,1,4] kernel_shape=[2]", false);
  NodeInfo info = sums.info();
  const TensorSpec wrong{DType::i8, info.input(0).shape};
  info.inputs[0] = &wrong;
  std::vector<KernelRegistry::Refusal> refusals;
  const std::vector<std::string> providers = {"kokkos"};
  CHECK(host.registry.accepting(info, host.device.info(), providers, &refusals).empty());
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].reason.find("i8") != std::string::npos);
}

#else

TEST_CASE("Kokkos products") { SKIP("this build has no Kokkos"); }

#endif
