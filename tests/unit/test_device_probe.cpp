#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/roofline.hpp"
#include "generated/turnout_config.hpp"
#include "runtime/cost/device_probe.hpp"

using namespace turnout;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

#if TURNOUT_HAS_VIRTUAL

// Small enough for an emulated device, which really computes.
constexpr ProbeLimits kSmall{std::int64_t{16} << 20, std::int64_t{16} << 20, 256};

DeviceCalibration calibrate(System& system, std::span<const ProbePoint> points,
                            DeviceCalibration known = {}) {
  const DeviceSlot slot = system.open("virtual:v100");
  return probe_device(slot, points, std::move(known), {60, {}, {}});
}

struct CacheFolder {
  CacheFolder()
      : path(std::filesystem::temp_directory_path() / fmt::format("turnout-{}", getpid())) {
    setenv("TURNOUT_CACHE", path.c_str(), 1);
  }
  ~CacheFolder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    unsetenv("TURNOUT_CACHE");
  }
  std::filesystem::path path;
};
#endif

}  // namespace

TEST_CASE("samples keep the spread and put outliers aside") {
  const double steady[] = {1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 5.0};
  const Sample sample = summarize(steady);
  CHECK(sample.seconds == Approx(1.0));
  CHECK(sample.count == 6);
  CHECK(sample.rejected == 1);
  CHECK_FALSE(sample.noisy());
  const double wild[] = {1, 2, 1.1, 1.9, 1.5, 1.2, 2.4};
  CHECK(summarize(wild).noisy());
  CHECK(summarize({}).count == 0);
  const double one[] = {3};
  CHECK(summarize(one).seconds == 3);
  int calls = 0;
  turnout::sample([&] { return ++calls, 1.0; }, 0.0);
  CHECK(calls == 2);  // the first takes longer than nothing: one to warm up, one that counts
}

TEST_CASE("latency and rate are fitted to the relative errors") {
  DeviceCalibration calibration;
  for (const double bytes : {4e3, 1e5, 1e6, 1e7, 1e8}) {
    calibration.points.push_back(
        {{"h2d", static_cast<std::int64_t>(bytes)}, {8e-6 + bytes / 25e9, 0.01, 20, 0}, 0});
  }
  const TransferFit fit = calibration.transfer("h2d");
  CHECK(fit.latency_seconds == Approx(8e-6).epsilon(1e-6));
  CHECK(fit.bytes_per_s == Approx(25e9).epsilon(1e-6));
  CHECK(fit.worst_error < 1e-6);
  CHECK(calibration.transfer("d2h").points == 0);
  calibration.points.resize(1);
  CHECK(calibration.transfer("h2d").latency_seconds == 0);
  CHECK(calibration.transfer("h2d").bytes_per_s > 0);
}

#if TURNOUT_HAS_VIRTUAL

TEST_CASE("calibration finds the figures of an emulated device through the contract") {
  System system;
  const DeviceSlot slot = system.open("virtual:v100");
  const DeviceInfo& sheet = slot.info();
  const DeviceCalibration calibration = calibrate(system, quick_points(kSmall));
  REQUIRE(calibration.points.size() > 10);
  const DeviceInfo found = calibrated_info(sheet, calibration);

  CHECK(found.link.h2d_bytes_per_s.evidence == Evidence::calibrated);
  CHECK(found.link.h2d_bytes_per_s.value == Approx(sheet.link.h2d_bytes_per_s.value).epsilon(0.02));
  CHECK(found.link.d2h_bytes_per_s.value == Approx(sheet.link.d2h_bytes_per_s.value).epsilon(0.02));
  CHECK(found.link.latency_seconds.value == Approx(sheet.link.latency_seconds.value).epsilon(0.05));
  CHECK(found.launch_seconds.value == Approx(sheet.launch_seconds.value).epsilon(0.02));
  // Attained, so below the sheet: 80 % of the bandwidth less what the launch costs.
  CHECK(found.memory_bytes_per_s.value < 0.8 * sheet.memory_bytes_per_s.value);
  CHECK(found.memory_bytes_per_s.value > 0.4 * sheet.memory_bytes_per_s.value);
  CHECK(calibration.noisy() == 0);
  // The host's wait can't be timed there, which is said.
  REQUIRE(calibration.refused.size() >= 1);
  CHECK(missing_points(calibration, quick_points(kSmall)) == 0);
  CHECK_THAT(calibration.refused[0], ContainsSubstring("emulated device"));
  CHECK(found.synchronize_seconds.evidence == sheet.synchronize_seconds.evidence);
}

TEST_CASE("calibrated figures price nodes and copies, and say so") {
  System system;
  const DeviceCalibration calibration = calibrate(system, quick_points(kSmall));
  const DeviceInfo& sheet = system.open("virtual:v100").info();
  CHECK(roofline_evidence(sheet, DType::f32) == Evidence::predicted);
  CHECK(copy_evidence(sheet, true) == Evidence::predicted);
  system.use_info(sheet.name, calibrated_info(sheet, calibration));
  const DeviceInfo& used = system.open("virtual:v100").info();
  CHECK(roofline_evidence(used, DType::f32) == Evidence::calibrated);
  CHECK(copy_evidence(used, true) == Evidence::calibrated);
  CHECK(copy_seconds(used, 1e8, true) == Approx(copy_seconds(sheet, 1e8, true)).epsilon(0.05));
  // What was measured comes back when priced: the attained rate isn't derated again.
  const MeasuredPoint* stream = calibration.find({"stream", kSmall.stream_bytes});
  REQUIRE(stream != nullptr);
  Cost cost;
  cost.bytes_read = cost.bytes_written = static_cast<double>(kSmall.stream_bytes) / 2;
  const double priced = roofline_seconds(used, cost, DType::f32) - used.launch_seconds.value;
  CHECK(priced == Approx(stream->sample.seconds).epsilon(0.01));
}

TEST_CASE("a slow device has every figure, however little time there is") {
  System system;
  const std::vector<ProbePoint> points = quick_points();
  std::set<std::string> names, measured;
  for (const ProbePoint& point : points) names.insert(point.what);
  std::vector<ProbePoint> asked;
  const auto timer = [&](const ProbePoint& point, double) {
    asked.push_back(point);
    return Sample{1, 1, 0.01, 1, 0};
  };
  const DeviceCalibration found = measure_points(points, timer, {}, {-1, {}, {}});
  for (const MeasuredPoint& point : found.points) measured.insert(point.point.what);
  CHECK(measured == names);
  CHECK(found.points.size() == names.size());
  CHECK(missing_points(found, points) == points.size() - names.size());
  for (const ProbePoint& point : asked) {  // the least of its name
    for (const ProbePoint& other : points) {
      CHECK((other.what != point.what || other.size >= point.size));
    }
  }
  const DeviceCalibration whole = measure_points(points, timer, found, {60, {}, {}});
  CHECK(missing_points(whole, points) == 0);
  CHECK(asked.size() == points.size());
}

TEST_CASE("points that a device is too slow for are left out before they are begun") {
  const std::vector<ProbePoint> points{{"product f32", 64}, {"product f32", 4096}, {"h2d", 64}};
  const auto timer = [&](const ProbePoint& point, double) {
    CHECK(point.size == 64);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Sample{1, 1, 0.01, 1, 0};
  };
  const DeviceCalibration found = measure_points(points, timer, {}, {1, {}, {}});
  REQUIRE(found.points.size() == 2);
  CHECK(found.points[0].wall_seconds >= 0.001);  // one of two samples
  CHECK(found.expected_seconds(points[1]) >= 3 * 0.001 * 64 * 64 * 64);
  CHECK(found.expected_seconds({"h2d", 128}) == Approx(6 * found.points[1].wall_seconds));
  CHECK(found.expected_seconds({"d2h", 128}) == 0);
  CHECK(missing_points(found, points) == 1);
  CHECK(missing_points(found, points, 1) == 0);  // so the next start doesn't try again
  CHECK(missing_points(parse_calibration(to_json(found), "f"), points, 1) == 0);
}

TEST_CASE("calibration goes on where it stopped") {
  System system;
  const std::vector<ProbePoint> points = quick_points(kSmall);
  const DeviceSlot slot = system.open("virtual:v100");
  ProbeOptions options{60, {}, {}};
  int asked = 0;
  std::size_t kept = 0;
  options.progress = [&](double share, const ProbePoint&) {
    CHECK(share >= 0);
    CHECK(share <= 1);
    return ++asked <= 4;
  };
  options.keep = [&](const DeviceCalibration& c) { kept = c.points.size(); };
  const DeviceCalibration part = probe_device(slot, points, {}, options);
  CHECK(part.points.size() + part.refused.size() == 4);
  CHECK(kept == part.points.size());
  std::vector<ProbePoint> measured;
  options.progress = [&](double, const ProbePoint& next) {
    measured.push_back(next);
    return true;
  };
  const DeviceCalibration all = probe_device(slot, points, part, options);
  CHECK(all.points.size() > part.points.size());
  for (const ProbePoint& point : measured) CHECK(part.find(point) == nullptr);
}

TEST_CASE("pairs of copies and kernels are measured together") {
  System system;
  const std::vector<ProbePoint> points{{"h2d", 1 << 20},
                                       {"h2d during d2h", 1 << 20},
                                       {"h2d during product", 1 << 20},
                                       {"d2h during host product", 1 << 20}};
  const DeviceCalibration calibration = calibrate(system, points);
  CHECK(calibration.refused.empty());
  for (const ProbePoint& point : points) REQUIRE(calibration.find(point) != nullptr);
  // The emulated copy engines don't disturb each other.
  CHECK(calibration.find(points[1])->sample.seconds ==
        Approx(calibration.find(points[0])->sample.seconds).epsilon(0.01));
  const std::vector<ProbePoint> no_type{{"product f99", 8}}, no_probe{{"h2d during sleep", 8}};
  CHECK_THROWS_WITH(calibrate(system, no_type), ContainsSubstring("no element type 'f99'"));
  CHECK_THROWS_WITH(calibrate(system, no_probe), ContainsSubstring("no probe"));
}

TEST_CASE("calibration files are kept whole and read with suspicion") {
  const CacheFolder folder;
  System system;
  const DeviceInfo& info = system.open("virtual:v100").info();
  CHECK_FALSE(kept_calibration(device_key(info)).has_value());
  const DeviceCalibration calibration =
      calibrate(system, std::vector<ProbePoint>{{"launch", 0}, {"h2d", 4096}});
  REQUIRE(keep_calibration(calibration));
  const auto kept = kept_calibration(device_key(info));
  REQUIRE(kept.has_value());
  CHECK(to_json(*kept) == to_json(calibration));

  DeviceInfo other = info;
  other.compute_units += 1;
  CHECK(device_key(other) != device_key(info));
  CHECK_FALSE(kept_calibration(device_key(other)).has_value());
  std::ofstream(calibration_path(device_key(info))) << "{\"format\": 1";
  CHECK_FALSE(kept_calibration(device_key(info)).has_value());

  const std::string good = to_json(calibration);
  const auto damaged = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  CHECK_THROWS_WITH(parse_calibration("[]", "f.json"),
                    ContainsSubstring("f.json: not a JSON object"));
  CHECK_THROWS_WITH(parse_calibration("{}", "f.json"), ContainsSubstring("'format'"));
  CHECK_THROWS_WITH(parse_calibration(damaged("\"seconds\": ", "\"seconds\": -"), "f.json"),
                    ContainsSubstring("'seconds'"));
  CHECK_THROWS_WITH(parse_calibration(damaged("\"count\": ", "\"count\": 9999999"), "f.json"),
                    ContainsSubstring("'count'"));
  CHECK_THROWS_WITH(parse_calibration(damaged("\"what\": \"launch\"", "\"what\": 3"), "f.json"),
                    ContainsSubstring("'what'"));
  CHECK_THROWS_WITH(parse_calibration(std::string(2 << 20, ' '), "f.json"),
                    ContainsSubstring("1 MiB"));
  CHECK_THROWS_WITH(probe_device(system.open("cpu"), quick_points(), {}, {}),
                    ContainsSubstring("no link to measure"));
}

#endif
