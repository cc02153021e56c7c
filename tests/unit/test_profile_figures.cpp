// The shipped profiles' figures against each other and against what the architectures do in a
// clock. A rate is units x operations per unit and clock x clock; the operations are those of the
// makers' architecture papers (dense), so a rate with sparsity is off by two and fails, as does a
// wrong clock or number of units. Example, V100: 80 x 128 x 1.53 GHz = 15.67, sheet 15.7 TFLOPS.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include "backends/gpu/profile.hpp"
#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("profile figures") { SKIP("this build has no virtual devices"); }

#else

using namespace turnout;
using Catch::Matchers::WithinRel;

namespace {

/// Sheets round to two or three digits; no figure may be further off than this.
constexpr double kRounding = 0.01;

/// Operations of one unit in one clock, a multiplication and addition being two. Zero: no rate of
/// that class may be stated.
struct Operations {
  double f64 = 0, f32 = 0, tf32 = 0, f16 = 0, bf16 = 0, int8 = 0;
};

/// What one unit of an architecture does in a clock.
struct Unit {
  Operations vector, matrix;
};

// NVIDIA: architecture whitepapers of V100, Turing, A100, Ada and H100. AMD: ROCm documentation,
// microarchitecture pages of MI250 and MI300 (operations per clock and compute unit).
constexpr Unit kPascal = {{.f64 = 64, .f32 = 128, .f16 = 256}, {}};
constexpr Unit kVolta = {{.f64 = 64, .f32 = 128, .f16 = 256}, {.f16 = 1024}};
constexpr Unit kTuring = {{.f64 = 4, .f32 = 128, .f16 = 256}, {.f16 = 1024, .int8 = 2048}};
constexpr Unit kAmpere = {{.f64 = 64, .f32 = 128, .f16 = 512, .bf16 = 256},
                          {.f64 = 128, .tf32 = 1024, .f16 = 2048, .bf16 = 2048, .int8 = 4096}};
constexpr Unit kAda = {{.f64 = 4, .f32 = 256, .f16 = 256, .bf16 = 256},
                       {.tf32 = 512, .f16 = 1024, .bf16 = 1024, .int8 = 2048}};
// GeForce boards: half the rate where the sum is kept in FP32.
constexpr Unit kAdaGeForce = {kAda.vector, {.tf32 = 256, .f16 = 512, .bf16 = 512, .int8 = 2048}};
constexpr Unit kHopper = {{.f64 = 128, .f32 = 256, .f16 = 512, .bf16 = 512},
                          {.f64 = 256, .tf32 = 2048, .f16 = 4096, .bf16 = 4096, .int8 = 8192}};
constexpr Unit kVega = {{.f64 = 8, .f32 = 128, .f16 = 256}, {}};
constexpr Unit kCdna2 = {{.f64 = 128, .f32 = 128},
                         {.f64 = 256, .f32 = 256, .f16 = 1024, .bf16 = 1024, .int8 = 1024}};
constexpr Unit kCdna3 = {
    {.f64 = 128, .f32 = 256},
    {.f64 = 256, .f32 = 256, .tf32 = 1024, .f16 = 2048, .bf16 = 2048, .int8 = 4096}};

struct Expected {
  Unit unit;
  /// Clock of the tensor rates other than f64 where the maker states them below the boost clock.
  double tensor_clock_hz = 0;
  /// The same for the vector rates.
  double vector_clock_hz = 0;
};

// The P100's sheet states its rates at 1303 MHz, below the boost clock of its profile.
const std::map<std::string, Expected> kExpected = {{"a100-40-pcie", {kAmpere}},
                                                   {"a100-40-sxm", {kAmpere}},
                                                   {"a100-80-pcie", {kAmpere}},
                                                   {"a100-80-sxm", {kAmpere}},
                                                   {"h100-pcie", {kHopper, 1.62e9}},
                                                   {"h100-sxm", {kHopper, 1.83e9}},
                                                   {"h200", {kHopper, 1.83e9}},
                                                   {"l4", {kAda}},
                                                   {"mi210", {kCdna2}},
                                                   {"mi25", {kVega}},
                                                   {"mi250x", {kCdna2}},
                                                   {"mi300x", {kCdna3}},
                                                   {"p100", {kPascal, 0, 1.303e9}},
                                                   {"rtx4090", {kAdaGeForce}},
                                                   {"t4", {kTuring}},
                                                   {"v100", {kVolta}}};

struct Class {
  const char* name;
  std::optional<Figure> PeakRates::*rate;
  double Operations::*operations;
};

constexpr std::array<Class, 6> kClasses = {{{"f64", &PeakRates::f64, &Operations::f64},
                                            {"f32", &PeakRates::f32, &Operations::f32},
                                            {"tf32", &PeakRates::tf32, &Operations::tf32},
                                            {"f16", &PeakRates::f16, &Operations::f16},
                                            {"bf16", &PeakRates::bf16, &Operations::bf16},
                                            {"int8", &PeakRates::int8, &Operations::int8}}};

void for_each_profile(const std::function<void(const GpuProfile&)>& check) {
  for (const auto& name : shipped_profiles()) {
    INFO(name);
    check(load_profile(name));
  }
}

/// Every figure of a profile with its key.
std::vector<std::pair<std::string, const Figure*>> figures(const GpuProfile& profile) {
  std::vector<std::pair<std::string, const Figure*>> all = {
      {"compute_units", &profile.compute_units},
      {"warp_size", &profile.warp_size},
      {"base_clock_hz", &profile.base_clock_hz},
      {"boost_clock_hz", &profile.boost_clock_hz},
      {"tdp_w", &profile.tdp_w},
      {"memory_bytes", &profile.memory_bytes},
      {"memory_bandwidth_bytes_per_s", &profile.memory_bandwidth_bytes_per_s},
      {"l2_bytes", &profile.l2_bytes},
      {"shared_memory_per_unit_bytes", &profile.shared_memory_per_unit_bytes},
      {"launch_overhead_s", &profile.launch_overhead_s},
      {"synchronize_s", &profile.synchronize_s},
      {"h2d_bytes_per_s", &profile.link.h2d_bytes_per_s},
      {"d2h_bytes_per_s", &profile.link.d2h_bytes_per_s},
      {"pageable_h2d_bytes_per_s", &profile.link.pageable_h2d_bytes_per_s},
      {"pageable_d2h_bytes_per_s", &profile.link.pageable_d2h_bytes_per_s},
      {"latency_s", &profile.link.latency_s}};
  for (const auto* rates : {&profile.vector_flops_per_s, &profile.matrix_flops_per_s})
    for (const auto& c : kClasses)
      if (const auto& rate = rates->*c.rate) all.emplace_back(c.name, &*rate);
  return all;
}

/// Bytes per second that the wires of "pcie4x16" carry in one direction after the 128-of-130 bit
/// encoding (PCI Express Base Specification, generations 3 to 5: 8, 16 and 32 GT/s a lane).
double wire_bytes_per_s(const std::string& link) {
  int generation = 0, lanes = 0;
  REQUIRE(link.starts_with("pcie"));
  const auto cross = link.find('x');
  REQUIRE(cross != std::string::npos);
  std::from_chars(link.data() + 4, link.data() + cross, generation);
  std::from_chars(link.data() + cross + 1, link.data() + link.size(), lanes);
  REQUIRE(generation >= 3);
  REQUIRE(generation <= 5);
  REQUIRE(lanes > 0);
  return 8e9 * std::pow(2, generation - 3) * lanes * 128 / 130 / 8;
}

bool contains_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("every shipped profile is held against its architecture") {
  std::set<std::string> expected;
  for (const auto& [name, unused] : kExpected) expected.insert(name);
  const auto shipped = shipped_profiles();
  CHECK(std::set<std::string>(shipped.begin(), shipped.end()) == expected);
}

TEST_CASE("rates are units times operations times clock, dense") {
  for_each_profile([](const GpuProfile& profile) {
    const Expected& expected = kExpected.at(profile.name);
    const double units = profile.compute_units.value;
    const double boost = profile.boost_clock_hz.value;
    const double tensor = expected.tensor_clock_hz > 0 ? expected.tensor_clock_hz : boost;
    const double vector = expected.vector_clock_hz > 0 ? expected.vector_clock_hz : boost;
    CHECK(tensor <= boost);
    CHECK(vector <= boost);
    for (const auto& c : kClasses) {
      INFO(c.name);
      const bool is_f64 = c.rate == &PeakRates::f64;
      const auto check = [&](const char* kind, const std::optional<Figure>& rate, double operations,
                             double clock) {
        INFO(kind);
        if (!rate) return;  // a sheet need not state every class
        REQUIRE(operations > 0);
        CHECK_THAT(rate->value, WithinRel(units * operations * clock, kRounding));
      };
      check("vector", profile.vector_flops_per_s.*c.rate, expected.unit.vector.*c.operations,
            vector);
      check("matrix", profile.matrix_flops_per_s.*c.rate, expected.unit.matrix.*c.operations,
            is_f64 ? boost : tensor);
    }
  });
}

TEST_CASE("matrix units are stated in full and not slower than the vector units") {
  for_each_profile([](const GpuProfile& profile) {
    const Unit& unit = kExpected.at(profile.name).unit;
    for (const auto& c : kClasses) {
      INFO(c.name);
      const auto& matrix = profile.matrix_flops_per_s.*c.rate;
      const auto& vector = profile.vector_flops_per_s.*c.rate;
      CHECK(matrix.has_value() == (unit.matrix.*c.operations > 0));
      if (matrix && vector) CHECK(matrix->value >= vector->value);
      // Without units of its own, TF32 would be priced as f32; it must not be slower than that.
      if (matrix && c.rate == &PeakRates::tf32)
        CHECK(matrix->value >= profile.vector_flops_per_s.f32->value * (1 - kRounding));
    }
  });
}

TEST_CASE("clocks and memories are plausible") {
  for_each_profile([](const GpuProfile& profile) {
    CHECK(profile.boost_clock_hz.value >= profile.base_clock_hz.value);
    CHECK(profile.base_clock_hz.value >= 0.3 * profile.boost_clock_hz.value);
    constexpr double kGiB = 1 << 30, kKiB = 1 << 10;
    CHECK(std::fmod(profile.memory_bytes.value, kGiB) == 0);
    CHECK(std::fmod(profile.l2_bytes.value, 1024 * kKiB) == 0);
    CHECK(std::fmod(profile.shared_memory_per_unit_bytes.value, kKiB) == 0);
    CHECK(profile.shared_memory_per_unit_bytes.value < profile.l2_bytes.value);
    CHECK(profile.l2_bytes.value < profile.memory_bytes.value);
  });
}

TEST_CASE("no link is faster than its wires") {
  for_each_profile([](const GpuProfile& profile) {
    const LinkProfile& link = profile.link;
    const double wire = wire_bytes_per_s(link.name);
    for (const Figure* rate : {&link.h2d_bytes_per_s, &link.d2h_bytes_per_s}) {
      CHECK(rate->value < wire);
      CHECK(rate->value > 0.5 * wire);
    }
    CHECK(link.pageable_h2d_bytes_per_s.value < link.h2d_bytes_per_s.value);
    CHECK(link.pageable_d2h_bytes_per_s.value < link.d2h_bytes_per_s.value);
  });
}

TEST_CASE("every figure has a source, and a spec names a maker's document") {
  for_each_profile([](const GpuProfile& profile) {
    for (const auto& [key, figure] : figures(profile)) {
      INFO(key << ": " << figure->source);
      CHECK(!figure->source.empty());
      CHECK(!contains_any(figure->source, {"://", "www.", ".com"}));
      CHECK((figure->evidence == Evidence::spec || figure->evidence == Evidence::fallback));
      if (figure->evidence == Evidence::spec) {
        CHECK(contains_any(figure->source, {"NVIDIA", "AMD", "CUDA"}));
        CHECK(!contains_any(figure->source, {"TechPowerUp", "assumed", "public GPU listings"}));
      }
    }
  });
}

#endif
