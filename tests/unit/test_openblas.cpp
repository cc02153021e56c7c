#include "generated/turnout_config.hpp"

#include <catch2/catch_test_macros.hpp>

#if TURNOUT_HAS_OPENBLAS

#include <cmath>

#include "backends/cpu/openblas/im2col.hpp"
#include "backends/cpu/openblas/partition.hpp"
#include "tests/support/host_cases.hpp"

using namespace turnout;
using namespace turnout::test;

TEST_CASE("OpenBLAS's kernels compute what the references do") {
  Host host;
  CHECK(check_provider(host, "openblas", "matmul") >= 25);
  CHECK(check_provider(host, "openblas", "conv") >= 18);
}

TEST_CASE("several threads may run one prepared OpenBLAS kernel") {
  Host host;
  for (const std::string_view line :
       {"conv f32[1,24,20,20] f32[40,24,3,3] f32[40] f32[1,40,20,20] pads=[1,1,1,1] "
        "activation=relu",
        "matmul f32[16,300] f32[300,70] f32[70] activation=gelu",
        "matmul f32[1,300] f32[300,700] f32[700]"}) {
    check_concurrent(host, "openblas", parse_host_case(line, true));
  }
}

TEST_CASE("products of many shapes on three threads") {
  Host host;
  for (const std::string_view line :
       {"matmul f32[1,784] f32[784,512] f32[512] activation=relu",
        "matmul f32[1,90] f32[33,90] trans_b=1", "matmul f32[700,90] f32[90,1]",
        "matmul f32[90,700] f32[90,1] trans_a=1", "matmul f32[90,1] f32[50,90] trans_a=1 trans_b=1",
        "matmul f32[2,200,33] f32[2,33,190] f32[190]", "matmul f32[7,3,65] f32[7,65,4]",
        "matmul f32[513,40] f32[40,600] f32[600] f32[513,600]",
        "conv f32[1,64,56,56] f32[48,64,3,3] f32[48] pads=[1,1,1,1] strides=[2,2]",
        "conv f32[1,128,7,7] f32[200,128,3,3] f32[200] pads=[1,1,1,1] activation=relu",
        "conv f32[3,40,9,9] f32[40,20,3,3] group=2 dilations=[2,2]"}) {
    const HostCase one = parse_host_case(line, true);
    INFO(line);
    const KernelEntry* entry = host.find(one.info(), "openblas");
    REQUIRE(entry != nullptr);
    one.check(HostNode(host, one.info(), *entry, 3, false).run(one.inputs()), one.reference());
  }
}

TEST_CASE("depthwise convolution is left to others") {
  Host host;
  const HostCase one = parse_host_case("conv f32[1,8,6,6] f32[8,1,3,3] group=8", true);
  CHECK(host.find(one.info(), "openblas") == nullptr);
}

TEST_CASE("parts cover a range once, in multiples of the unit") {
  using openblas::part_of;
  for (const std::int64_t size : {1, 15, 16, 17, 100, 1000}) {
    for (const std::int64_t parts : {1, 2, 3, 7}) {
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const auto part = part_of(size, parts, i, 16);
        CHECK(part.begin == at);
        CHECK((part.end % 16 == 0 || part.end == size));
        at = part.end;
      }
      CHECK(at == size);
    }
  }
}

TEST_CASE("im2col unfolds a block of positions") {
  Window window;
  window.rank = 1;
  window.axis(0) = {4, 4, 3, 1, 1, 1, 1};  // in, out, kernel, stride, dilation, pads
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> columns(9, -1);
  openblas::im2col(x.data(), 1, window, {0, 3}, columns.data());
  CHECK(columns == std::vector<float>{0, 1, 2, 1, 2, 3, 2, 3, 4});
  openblas::im2col(x.data(), 1, window, {1, 4}, columns.data());
  CHECK(columns == std::vector<float>{1, 2, 3, 2, 3, 4, 3, 4, 0});
}

#else

TEST_CASE("OpenBLAS") { SKIP("this build has no OpenBLAS"); }

#endif
