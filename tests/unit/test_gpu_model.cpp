#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>

#include "backends/gpu/profile.hpp"
#include "core/error.hpp"
#include "core/gpu_model/conv.hpp"
#include "core/gpu_model/product.hpp"
#include "generated/turnout_config.hpp"
#include "runtime/cost/accuracy.hpp"
#include "runtime/io/file.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("GPU time models") { SKIP("this build has no virtual device, so no profiles"); }

#else

// Every prediction here is of a device whose tables took no part in what it is made from.
namespace turnout::gpu_model {
namespace {

DeviceInfo device(const std::string& name) { return device_info(load_profile(name), name); }

std::vector<OpRow> table(const std::string& name) {
  const char* source = std::getenv("TURNOUT_SOURCE");
  const std::string folder = source != nullptr ? source : ".";
  const std::string file = folder + "/tests/data/deepbench/" + name + ".csv";
  return parse_op_table(read_file(file, 1 << 20), file);
}

std::vector<OpRow> only(std::vector<OpRow> rows, const char* op) {
  std::erase_if(rows, [&](const OpRow& row) { return row.op != op; });
  return rows;
}

double mean_of(const Prediction& prediction, const std::string& what) {
  for (const ErrorSummary& summary : errors_of(prediction)) {
    if (summary.what == what) return summary.mean;
  }
  FAIL("no errors of " << what);
  return 0;
}

OpShape product(std::int64_t m, std::int64_t n, std::int64_t k) {
  OpShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  return s;
}

const std::string kHeader =
    "device,precision,op,pass,m,n,k,trans_a,trans_b,batch,in_ch,h,w,out_ch,filt_h,filt_w,pad_h,"
    "pad_w,stride_h,stride_w,time_ms\n";
const std::string kProduct = "x,fp32,gemm,fwd,128,64,32,N,T,,,,,,,,,,,,0.5\n";
const std::string kConv = "x,fp16,conv,bwd_data,,,,,,8,64,56,56,32,3,3,1,1,1,1,\n";

std::string refusal_of(const std::string& text) {
  try {
    parse_op_table(text, "t.csv");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// Recorded with the shipped parameters, rounded up to a half percent. docs/predict.md shows them
// beside the targets.
TEST_CASE("errors on devices left out stay below what was recorded") {
  struct Recorded {
    const char* table;
    double gemm, conv;            // from the sheet alone
    double gemm_16, conv_16;      // with 16 measurements, shared by both ops
    double gemm_only, conv_only;  // with 16 measurements of one op, for that op
  };
  constexpr Recorded kRecorded[] = {
      {"v100_fp32", 0.100, 0.205, 0.095, 0.150, 0.075, 0.145},
      {"p100_fp32", 0.195, 0.210, 0.145, 0.175, 0.105, 0.170},
      {"mi25_fp32", 0.210, 0.245, 0.135, 0.215, 0.125, 0.160},
      {"v100_fp16", 0.125, 0.510, 0.135, 0.285, 0.120, 0.250},
      {"p100_fp16", 0.180, 0.410, 0.155, 0.425, 0.120, 0.380},
  };
  for (const Recorded& recorded : kRecorded) {
    INFO(recorded.table);
    const std::vector<OpRow> rows = table(recorded.table);
    const DeviceInfo info = device(std::string(recorded.table).substr(0, 4));
    const Prediction sheet = predict(info, rows);
    CHECK(mean_of(sheet, "gemm fwd") <= recorded.gemm);
    CHECK(mean_of(sheet, "conv") <= recorded.conv);
    const Prediction both = predict(info, rows, 16);
    CHECK(mean_of(both, "gemm fwd") <= recorded.gemm_16);
    CHECK(mean_of(both, "conv") <= recorded.conv_16);
    CHECK(mean_of(predict(info, only(rows, "gemm"), 16), "gemm fwd") <= recorded.gemm_only);
    CHECK(mean_of(predict(info, only(rows, "conv"), 16), "conv") <= recorded.conv_only);
  }
}

TEST_CASE("which of two devices is faster is mostly right") {
  struct Recorded {
    const char *a, *b;
    double sheet, calibrated;
  };
  constexpr Recorded kRecorded[] = {
      {"v100", "p100", 0.920, 0.980},
      {"v100", "mi25", 0.925, 0.955},
      {"p100", "mi25", 0.555, 0.815},
  };
  for (const Recorded& recorded : kRecorded) {
    INFO(recorded.a << " and " << recorded.b);
    const auto accuracy = [&](std::size_t calibrate_with) {
      const auto of = [&](const std::string& name) {
        return predict(device(name), table(name + "_fp32"), calibrate_with);
      };
      const Decisions decisions = decisions_of(of(recorded.a), of(recorded.b));
      CHECK(decisions.counted > 200);
      return decisions.accuracy();
    };
    CHECK(accuracy(0) >= recorded.sheet);
    CHECK(accuracy(16) >= recorded.calibrated);
  }
}

TEST_CASE("a published device never learns from its own tables") {
  CHECK(GpuPredictor(device("v100")).learned_from() == "p100, mi25");
  CHECK(GpuPredictor(device("p100")).learned_from() == "v100, mi25");
  CHECK(GpuPredictor(device("mi25")).learned_from() == "v100, p100");
  CHECK(GpuPredictor(device("t4")).learned_from() == "v100, p100, mi25");
  CHECK(GpuPredictor(device("t4"), "p100").learned_from() == "v100, mi25");
  DeviceInfo renamed = device("v100");
  renamed.name = "virtual:./mine.json";
  CHECK(GpuPredictor(renamed).learned_from() == "p100, mi25");
  CHECK_THROWS_AS(GpuPredictor(device("v100"), "p100"), Error);
  CHECK_THROWS_AS(GpuPredictor(device("t4"), "a100"), Error);
  for (int i = 0; i < 3; ++i) {
    for (const bool half : {false, true}) {
      CHECK(published_errors(i, i, half).empty());
      CHECK(published_errors(i, -1, half).size() == published_errors(i, (i + 1) % 3, half).size());
    }
    const double own = learned_parameters(i).gemm.balance_half;
    CHECK(own != learned_parameters(-1).gemm.balance_half);
    for (int j = 0; j < i; ++j) CHECK(own != learned_parameters(j).gemm.balance_half);
  }
}

TEST_CASE("given times decide nothing but the calibration rows") {
  std::vector<OpRow> rows = table("p100_fp32");
  const Prediction before = predict(device("p100"), rows, 16);
  REQUIRE(before.calibration.size() == 16);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (before.rows[i].evidence != Evidence::measured) rows[i].seconds.reset();
  }
  const Prediction after = predict(device("p100"), rows, 16);
  CHECK(after.calibration == before.calibration);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(after.rows[i].seconds);
    CHECK(*after.rows[i].seconds == *before.rows[i].seconds);
    CHECK(after.rows[i].evidence == before.rows[i].evidence);
  }
  rows[before.calibration[3]].seconds.reset();
  CHECK_THROWS_AS(predict(device("p100"), rows, 16), Error);
}

TEST_CASE("more work never takes less time") {
  for (const char* name : {"v100", "p100", "mi25", "t4", "h100-sxm", "mi300x", "rtx4090", "l4"}) {
    const GpuPredictor predictor(device(name));
    for (const std::int64_t m : {1, 7, 64, 1000, 5124}) {
      for (const std::int64_t k : {1, 64, 1760, 100000}) {
        double last = 0;
        for (std::int64_t n = 1; n <= 65536; n *= 2) {
          const double seconds = predictor.seconds(product(m, n, k));
          INFO(name << " " << m << " x " << n << " x " << k);
          CHECK(std::isfinite(seconds));
          CHECK(seconds >= last);
          last = seconds;
        }
      }
    }
  }
}

TEST_CASE("every row of perturbed tables has a sane time") {
  for (const char* name : {"t4", "mi210", "a100-40-pcie"}) {
    const GpuPredictor predictor(device(name));
    for (const char* file : {"v100_fp32", "v100_fp16"}) {
      for (OpRow row : table(file)) {
        OpShape& s = row.shape;
        s.m += 3;
        s.n += 5;
        s.k += 1;
        s.batch += 1;
        s.in_channels += 1;
        s.height += 2;
        const double seconds = predictor.seconds(s);
        const double peak =
            std::max(predictor.spec().f32_flops_per_s, predictor.spec().half_flops_per_s);
        CHECK(seconds > flops(s) / (8 * peak));  // Winograd saves at most a factor of 4
        CHECK(seconds < 1e-3 + 50 * flops(s) / predictor.spec().f32_flops_per_s +
                            1e4 * static_cast<double>(s.k) * 1e-9);
      }
    }
  }
}

TEST_CASE("rules of the sheet") {
  CHECK(sustained_share(device("v100")) == Catch::Approx(1).margin(0.01));
  CHECK(sustained_share(device("p100")) == 1);
  CHECK(sustained_share(device("mi25")) == 1);
  CHECK(sustained_share(device("t4")) == Catch::Approx(std::sqrt(70 / (19e-12 * 8.1e12))));
  CHECK(gpu_spec(device("v100")).half_flops_per_s > 1e14);
  CHECK(gpu_spec(device("p100")).half_flops_per_s == 0);
  CHECK(gpu_spec(device("mi25")).warps_per_tile == 0.5);
  DeviceInfo unknown = device("v100");
  unknown.memory_bytes_per_s = {};
  CHECK_THROWS_AS(gpu_spec(unknown), Error);
}

TEST_CASE("the algorithm is known") {
  OpShape s;
  s.is_conv = true;
  s.batch = 16;
  s.in_channels = s.out_channels = 256;
  s.height = s.width = 56;
  s.filter_h = s.filter_w = 3;
  s.pad_h = s.pad_w = 1;
  const ConvParameters params = learned_parameters(-1).conv;
  const GpuSpec spec = gpu_spec(device("v100")), other = gpu_spec(device("mi25"));
  CHECK(has(std::string(conv_seconds(spec, s, params).algorithm), "winograd"));
  s.pass = Pass::backward_filter;
  CHECK(has(std::string(conv_seconds(spec, s, params).algorithm), "winograd"));
  CHECK(conv_seconds(other, s, params).algorithm == "implicit");
  s.stride_h = s.stride_w = 2;
  CHECK(conv_seconds(spec, s, params).algorithm == "implicit");
}

TEST_CASE("tables are hostile input") {
  const std::vector<OpRow> rows = parse_op_table(kHeader + kProduct + "\r\n" + kConv, "t.csv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].shape.transpose_b);
  CHECK(*rows[0].seconds == 0.5e-3);
  CHECK(rows[1].shape.half);
  CHECK(rows[1].shape.pass == Pass::backward_data);
  CHECK(!rows[1].seconds);
  CHECK(rows[1].line == 4);
  const auto with = [](const std::string& from, const std::string& to) {
    std::string row = kProduct;
    row.replace(row.find(from), from.size(), to);
    return refusal_of(kHeader + kProduct + row);
  };
  CHECK(has(with("128", "-1"), "t.csv: line 3: m '-1'"));
  CHECK(has(with("128", "99999999999"), "m '99999999999'"));
  CHECK(has(with("128", "1e3"), "m '1e3'"));
  CHECK(has(with("128", ""), "m ''"));
  CHECK(has(with("N,T", "N,x"), "trans_b 'x'"));
  CHECK(has(with("fwd", "bwd_data"), "no pass 'bwd_data'"));
  CHECK(has(with("0.5", "0"), "time_ms '0'"));
  CHECK(has(with("0.5", "nan"), "time_ms 'nan'"));
  CHECK(has(with("0.5", "0.5,1"), "22 cells, the header has 21"));
  CHECK(has(refusal_of(""), "missing columns: precision op"));
  CHECK(has(refusal_of(kHeader), "no rows"));
  CHECK(has(refusal_of("op," + kHeader + kProduct), "'op' is there twice"));
  std::string wide = kConv;
  wide.replace(wide.find(",3,3,"), 5, ",99,3,");
  CHECK(has(refusal_of(kHeader + wide), "doesn't fit"));
}

TEST_CASE("a refused row counts as an error of 100 %") {
  std::string other = kProduct;
  other.replace(other.find("gemm"), 4, "lstm");
  const auto rows = parse_op_table(kHeader + kProduct + other, "t.csv");
  const Prediction prediction = predict(device("t4"), rows);
  CHECK(prediction.rows[0].seconds);
  CHECK(!prediction.rows[1].seconds);
  CHECK(mean_of(prediction, "lstm fwd") == 1);
}

}  // namespace turnout::gpu_model

#endif
