// Times of kernels on devices known by their figures: which model takes what.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "core/device_times.hpp"
#include "core/roofline.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Approx;

namespace {

// Figures of the size of a V100's, of a generation that no tables were published of.
DeviceInfo sheet() {
  const auto spec = [](double value) { return Figure{value, Evidence::spec, "made up"}; };
  DeviceInfo info;
  info.name = "virtual:sheet";
  info.vendor = "NVIDIA";
  info.generation = "Turing";
  info.compute_units = 80;
  info.warp_size = 32;
  info.peak_f32 = spec(15e12);
  info.peak_f64 = spec(7e12);
  info.peak_f16 = spec(120e12);
  info.matrix_f16 = spec(120e12);
  info.peak_bf16 = spec(15e12);
  info.memory_bytes_per_s = spec(900e9);
  info.clock_hz = spec(1.5e9);
  info.launch_seconds = spec(5e-6);
  return info;
}

Cost cost_of_case(const std::string& line) {
  const Case one = parse_case(line, "here", all_ops());
  return cost_of(one.graph.info(NodeId{0}));
}

}  // namespace

TEST_CASE("products and convolutions take the models, the rest the roofline") {
  const DeviceInfo info = sheet();
  const DeviceTimes times(info);
  const gpu_model::GpuPredictor predictor(info);

  const Cost product = cost_of_case("matmul f32[300,500] f32[500,700]");
  gpu_model::OpShape shape;
  shape.m = 700;
  shape.n = 300;
  shape.k = 500;
  CHECK(times.kernel_seconds(product, DType::f32) == Approx(predictor.seconds(shape)));
  shape.half = true;
  CHECK(times.kernel_seconds(product, DType::f16) == Approx(predictor.seconds(shape)));
  CHECK(times.kernel_seconds(product, DType::f64) == roofline_seconds(info, product, DType::f64));
  // No matrix units for it: its rate is that of f32.
  CHECK(times.kernel_seconds(product, DType::bf16) == roofline_seconds(info, product, DType::bf16));

  const Cost conv = cost_of_case("conv f32[2,64,56,56] f32[64,64,3,3] pads=[1,1,1,1]");
  CHECK(times.kernel_seconds(conv, DType::f32) == Approx(predictor.seconds(conv.conv)));
  const Cost relu = cost_of_case("relu f32[1000,1000]");
  CHECK(times.kernel_seconds(relu, DType::f32) == roofline_seconds(info, relu, DType::f32));
  CHECK(times.evidence(DType::f32) == Evidence::predicted);
}

TEST_CASE("measured rates and missing figures leave products to the roofline") {
  const Cost product = cost_of_case("matmul f32[64,64] f32[64,64]");
  DeviceInfo measured = sheet();
  measured.peak_f32.evidence = Evidence::calibrated;
  CHECK(DeviceTimes(measured).kernel_seconds(product, DType::f32) ==
        roofline_seconds(measured, product, DType::f32));
  DeviceInfo unknown = sheet();
  unknown.clock_hz = {};
  CHECK(DeviceTimes(unknown).kernel_seconds(product, DType::f32) ==
        roofline_seconds(unknown, product, DType::f32));
  CHECK(DeviceTimes(DeviceInfo{}).evidence(DType::f32) == Evidence::unprobed);
}

TEST_CASE("no kernel is shorter than a launch, and empty ones have a time") {
  DeviceInfo info = sheet();
  info.launch_seconds.value = 1e-3;
  const DeviceTimes times(info);
  CHECK(times.kernel_seconds(cost_of_case("matmul f32[4,4] f32[4,4]"), DType::f32) >= 1e-3);
  for (const char* line : {"matmul f32[0,4] f32[4,4]", "matmul f32[4,0] f32[0,4]",
                           "conv f32[0,3,8,8] f32[4,3,3,3]", "conv f32[1,0,4,4] f32[3,0,1,1]"}) {
    const double seconds = times.kernel_seconds(cost_of_case(line), DType::f32);
    CHECK(seconds >= 1e-3);
    CHECK(seconds < 1);
  }
}

TEST_CASE("convolutions tell their sizes") {
  const auto shape_of = [](const std::string& line) { return cost_of_case(line).conv; };
  const auto plain = shape_of("conv f32[2,3,224,224] f32[64,3,7,7] strides=[2,2] pads=[3,3,3,3]");
  REQUIRE(plain.is_conv);
  CHECK(plain.out_height() == 112);
  CHECK(plain.out_width() == 112);
  CHECK(plain.pad_h == 3);
  CHECK(plain.filter_w == 7);
  CHECK(plain.batch == 2);
  CHECK(flops(plain) == Approx(2.0 * 2 * 64 * 112 * 112 * 3 * 49));
  // Uneven padding and dilation: the output's size is what counts.
  const auto uneven = shape_of("conv f32[1,4,9,10] f32[4,4,3,3] pads=[0,1,1,2] strides=[2,1]");
  CHECK(uneven.out_height() == 4);
  CHECK(uneven.out_width() == 11);
  const auto narrow = shape_of("conv f32[1,4,1,1] f32[4,4,2,2] pads=[0,1,1,0]");
  CHECK(narrow.out_height() == 1);
  CHECK(narrow.height >= 1);
  const auto dilated = shape_of("conv f32[1,4,20,20] f32[4,4,3,3] dilations=[4,4]");
  CHECK(dilated.out_height() == 12);
  CHECK(dilated.out_width() == 12);
  const auto line = shape_of("conv f32[2,8,100] f32[16,4,5] group=2");
  REQUIRE(line.is_conv);
  CHECK(line.out_height() == 1);
  CHECK(line.out_width() == 96);
  CHECK(line.groups == 2);
  CHECK_FALSE(shape_of("conv f32[1,2,5,6,7] f32[3,2,2,3,2]").is_conv);
  const auto back = shape_of("conv_transpose f32[1,8,5,5] f32[8,4,3,3] strides=[2,2]");
  REQUIRE(back.is_conv);
  CHECK(back.pass == gpu_model::Pass::backward_data);
  CHECK(back.in_channels == 4);
  CHECK(back.out_channels == 8);
  CHECK(back.out_height() == 5);
  CHECK(back.height == 11);
}
