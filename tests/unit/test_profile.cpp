// Profiles of virtual devices: the shipped ones, links, and hostile files.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "backends/gpu/profile.hpp"
#include "core/error.hpp"
#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("profiles") { SKIP("this build has no virtual devices"); }

#else

using namespace turnout;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

/// The text of a shipped profile, to be spoilt.
std::string shipped_text(std::string_view name) {
  for (const auto& profile : embedded_profiles())
    if (profile.name == name) return std::string(profile.json);
  FAIL("no such profile");
  return {};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The V100's text with the value of one figure replaced by other JSON text.
std::string with_value(std::string_view key, std::string_view json) {
  auto text = shipped_text("v100");
  const auto begin = text.find(fmt::format("\"{}\": {{\"value\": ", key));
  REQUIRE(begin != std::string::npos);
  const auto value = text.find("\"value\": ", begin) + 9;
  return text.replace(value, text.find(',', value) - value, json);
}

struct Refusal {
  ErrorCode code;
  std::string message;
};

template <typename Call>
Refusal refusal_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("nothing was refused");
  return {};
}

void check_refused(const std::string& text, const std::string& message) {
  const auto refusal = refusal_of([&] { parse_profile(text, "x.json"); });
  CHECK(refusal.code == ErrorCode::invalid_model);
  CHECK_THAT(refusal.message, ContainsSubstring("[profile] x.json: "));
  CHECK_THAT(refusal.message, ContainsSubstring(message));
}

/// A folder of its own for one test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("turnout_profile_{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

void check_same_link(const LinkProfile& a, const LinkProfile& b) {
  CHECK(a.name == b.name);
  const auto same = [](const Figure& x, const Figure& y) {
    return x.value == y.value && x.evidence == y.evidence && x.source == y.source;
  };
  CHECK(same(a.h2d_bytes_per_s, b.h2d_bytes_per_s));
  CHECK(same(a.d2h_bytes_per_s, b.d2h_bytes_per_s));
  CHECK(same(a.pageable_h2d_bytes_per_s, b.pageable_h2d_bytes_per_s));
  CHECK(same(a.pageable_d2h_bytes_per_s, b.pageable_d2h_bytes_per_s));
  CHECK(same(a.latency_s, b.latency_s));
}

double best(const GpuProfile& profile, RateClass rate) {
  const Figure* figure = profile.best_flops_per_s(rate);
  return figure ? figure->value : 0;
}

}  // namespace

TEST_CASE("every shipped profile loads and is consistent") {
  const std::vector<std::string> expected = {
      "a100-40-pcie", "a100-40-sxm", "a100-80-pcie", "a100-80-sxm", "h100-pcie", "h100-sxm",
      "h200",         "l4",          "mi210",        "mi25",        "mi250x",    "mi300x",
      "p100",         "rtx4090",     "t4",           "v100"};
  REQUIRE(shipped_profiles() == expected);
  for (const auto& name : expected) {
    INFO(name);
    const auto profile = load_profile(name);
    CHECK(profile.name == name);
    CHECK(profile.warp_size.value == (profile.vendor == "AMD" ? 64 : 32));
    check_same_link(profile.link, pcie_link(profile.link.name));
    // Peak of the ordinary units: units x lanes x 2 x boost clock, with 64 or 128 lanes (MI300X:
    // dual issue, 256 operations). Sheets round, and state some peaks at a lower clock.
    const double per_unit_cycle = best(profile, RateClass::f32) /
                                  (profile.compute_units.value * profile.boost_clock_hz.value);
    const double vector_per_unit_cycle =
        profile.vector_rate(RateClass::f32)->value /
        (profile.compute_units.value * profile.boost_clock_hz.value);
    CHECK(per_unit_cycle >= vector_per_unit_cycle);
    const double steps = vector_per_unit_cycle / 128;
    CHECK_THAT(steps, WithinRel(std::round(steps), 0.03));
    // No device computes f64 faster than f32, or f32 faster than f16 where both have matrix units.
    CHECK(best(profile, RateClass::f64) <= best(profile, RateClass::f32) * 1.001);
    if (profile.matrix_flops_per_s.f16)
      CHECK(profile.matrix_flops_per_s.f16->value > profile.vector_rate(RateClass::f32)->value);
    CHECK(profile.link.pageable_h2d_bytes_per_s.value < profile.link.h2d_bytes_per_s.value);
    CHECK(profile.link.h2d_bytes_per_s.value < profile.memory_bandwidth_bytes_per_s.value);
    CHECK(profile.launch_overhead_s.evidence == Evidence::fallback);
    CHECK(profile.memory_bytes.evidence == Evidence::spec);
  }
}

TEST_CASE("profiles stand in the order of the public sheets") {
  const auto bandwidth = [](const char* name) {
    return load_profile(name).memory_bandwidth_bytes_per_s.value;
  };
  const auto rate = [](const char* name, RateClass c) { return best(load_profile(name), c); };
  const auto memory = [](const char* name) { return load_profile(name).memory_bytes.value; };
  for (const auto c : {RateClass::f64, RateClass::f32, RateClass::f16}) {
    CHECK(rate("p100", c) < rate("v100", c));
    CHECK(rate("v100", c) < rate("a100-80-sxm", c));
    CHECK(rate("a100-80-sxm", c) < rate("h100-pcie", c));
    CHECK(rate("h100-pcie", c) < rate("h100-sxm", c));
    CHECK(rate("h100-sxm", c) == rate("h200", c));
    CHECK(rate("mi25", c) < rate("mi210", c));
    CHECK(rate("mi210", c) < rate("mi250x", c));
    CHECK(rate("mi250x", c) < rate("mi300x", c));
    CHECK(rate("t4", c) < rate("l4", c));
    CHECK(rate("l4", c) < rate("rtx4090", c));
  }
  for (const auto c : {RateClass::tf32, RateClass::bf16, RateClass::int8}) {
    CHECK(rate("v100", c) == 0);  // no such units, or none on its sheet
    CHECK(rate("a100-40-pcie", c) == rate("a100-80-sxm", c));
    CHECK(rate("a100-80-sxm", c) < rate("h100-pcie", c));
    CHECK(rate("h100-sxm", c) < rate("mi300x", c));
  }
  CHECK(bandwidth("a100-40-sxm") < bandwidth("a100-80-pcie"));
  CHECK(bandwidth("a100-80-pcie") < bandwidth("a100-80-sxm"));
  CHECK(bandwidth("h100-pcie") < bandwidth("h100-sxm"));
  CHECK(bandwidth("h100-sxm") < bandwidth("h200"));
  CHECK(bandwidth("h200") < bandwidth("mi300x"));
  CHECK(bandwidth("mi210") == bandwidth("mi250x"));  // one die of two
  CHECK(memory("a100-40-pcie") * 2 == memory("a100-80-pcie"));
  CHECK(memory("h200") < memory("mi300x"));
}

TEST_CASE("the best rate is the matrix one where there is one") {
  const auto a100 = load_profile("a100-80-sxm");
  CHECK(a100.best_flops_per_s(RateClass::f64)->value == 19.5e12);
  CHECK(a100.vector_rate(RateClass::f64)->value == 9.7e12);
  CHECK(a100.best_flops_per_s(RateClass::f32)->value == 19.5e12);  // not TF32
  CHECK(a100.best_flops_per_s(RateClass::tf32)->value == 156e12);
  CHECK(load_profile("mi210").best_flops_per_s(RateClass::f32)->value == 45.3e12);
  const auto p100 = load_profile("p100");
  CHECK(p100.best_flops_per_s(RateClass::f16)->value == 18.7e12);
  CHECK(p100.best_flops_per_s(RateClass::tf32) == nullptr);
  CHECK(p100.best_flops_per_s(RateClass::int8) == nullptr);
}

TEST_CASE("alias and link") {
  CHECK(load_profile("h100").name == "h100-pcie");
  CHECK(load_profile("h100").link.name == "pcie5x16");
  check_same_link(load_profile("h100@pcie3").link, pcie_link("pcie3x16"));
  const auto slow = load_profile("h100@pcie4x8");
  const auto fast = load_profile("h100-pcie@pcie4");
  CHECK(slow.link.name == "pcie4x8");
  CHECK_THAT(fast.link.h2d_bytes_per_s.value, WithinRel(2 * slow.link.h2d_bytes_per_s.value, 1e-3));
  // 16 GT/s x 16 lanes x 128/130 / 8 bits = 31.5 GB/s, of which 82 %.
  CHECK_THAT(fast.link.h2d_bytes_per_s.value, WithinRel(0.82 * 31.508e9, 1e-3));
  CHECK_THAT(fast.link.pageable_d2h_bytes_per_s.value, WithinRel(8.19e9, 1e-2));
  CHECK(fast.link.h2d_bytes_per_s.evidence == Evidence::fallback);
  CHECK(slow.memory_bandwidth_bytes_per_s.value ==
        load_profile("h100").memory_bandwidth_bytes_per_s.value);
  for (const auto* spec : {"v100@pcie6", "v100@pcie2", "v100@", "v100@pcie", "v100@pcie4x3",
                           "v100@pcie4x", "v100@nvlink", "v100@pcie4x16x", "v100@PCIE4",
                           "v100@pcie4x-8", "v100@pcie04444444444444"}) {
    INFO(spec);
    const auto refusal = refusal_of([&] { load_profile(spec); });
    CHECK(refusal.code == ErrorCode::invalid_argument);
    CHECK_THAT(refusal.message, ContainsSubstring("unknown link '") &&
                                    ContainsSubstring("known: pcie3, pcie4, pcie5"));
  }
}

TEST_CASE("a device's figures come from its profile") {
  const auto profile = load_profile("v100@pcie4");
  const auto info = device_info(profile, "virtual:v100@pcie4");
  CHECK(info.name == "virtual:v100@pcie4");
  CHECK(info.is_virtual);
  CHECK(!info.is_host);
  CHECK(info.compute_units == 80);
  CHECK(info.memory_bytes.value == 16.0 * (1 << 30));
  CHECK(info.peak(DType::f32).value == 15.7e12);
  CHECK(info.peak(DType::f16).value == 125e12);
  CHECK(info.link.name == "pcie4x16");
  CHECK(info.link.h2d_bytes_per_s.value == profile.link.h2d_bytes_per_s.value);
  // No class is free of charge: without a rate of its own it runs as f32, and says that this is
  // assumed.
  CHECK(info.peak(DType::bf16).value == 15.7e12);
  CHECK(info.peak(DType::bf16).evidence == Evidence::fallback);
  CHECK(info.peak(DType::f32).evidence == Evidence::spec);
  for (const auto& name : shipped_profiles()) {
    const auto device = device_info(load_profile(name), name);
    for (const Figure* figure :
         {&device.memory_bytes, &device.peak_f64, &device.peak_f32, &device.peak_tf32,
          &device.peak_f16, &device.peak_bf16, &device.peak_i8, &device.memory_bytes_per_s,
          &device.l2_bytes, &device.launch_seconds, &device.synchronize_seconds, &device.clock_hz,
          &device.tdp_watts, &device.link.latency_seconds, &device.link.h2d_bytes_per_s,
          &device.link.d2h_bytes_per_s, &device.link.pageable_h2d_bytes_per_s,
          &device.link.pageable_d2h_bytes_per_s}) {
      CHECK(figure->known());
      CHECK(figure->value > 0);
      CHECK(!figure->source.empty());
    }
  }
}

TEST_CASE("an unknown name lists the known ones and the closest") {
  const auto refusal = refusal_of([] { load_profile("mi300"); });
  CHECK(refusal.code == ErrorCode::not_found);
  CHECK_THAT(refusal.message, ContainsSubstring("unknown profile 'mi300'") &&
                                  ContainsSubstring("did you mean 'mi300x'?") &&
                                  ContainsSubstring("a100-40-pcie") && ContainsSubstring("v100"));
  CHECK_THAT(refusal_of([] { load_profile("h100-sxn"); }).message,
             ContainsSubstring("'h100-sxm'?"));
  CHECK(refusal_of([] { load_profile(""); }).code == ErrorCode::not_found);
  const auto hostile = refusal_of([] { load_profile(std::string(1 << 20, '\x1b')); });
  CHECK(hostile.message.size() < 2000);
  CHECK(hostile.message.find('\x1b') == std::string::npos);
}

TEST_CASE("a profile is read from a file") {
  const TemporaryFolder folder;
  auto text = replaced(shipped_text("v100"), "\"name\": \"v100\"", "\"name\": \"mine\"");
  text = replaced(text, "\"evidence\": \"default\"", "\"evidence\": \"measured\"");
  const auto path = folder.write("mine.json", text);
  CHECK(load_profile(path).name == "mine");
  CHECK(load_profile(path).base_clock_hz.evidence == Evidence::measured);
  CHECK(load_profile(path + "@pcie5x4").link.name == "pcie5x4");
  CHECK(load_profile(folder.write("with@sign", text)).name == "mine");
}

TEST_CASE("files that can't be read are refused") {
  const TemporaryFolder folder;
  auto refusal = refusal_of([&] { load_profile(folder.path() + "/none.json"); });
  CHECK(refusal.code == ErrorCode::not_found);
  CHECK_THAT(refusal.message, ContainsSubstring("none.json: no such file"));
  refusal = refusal_of([&] { load_profile("none.json"); });
  CHECK(refusal.code == ErrorCode::not_found);
  refusal = refusal_of([&] { load_profile(folder.path()); });
  CHECK(refusal.code == ErrorCode::io);
  CHECK_THAT(refusal.message, ContainsSubstring("is a directory"));
  refusal = refusal_of([] { load_profile("/dev/zero"); });
  CHECK_THAT(refusal.message, ContainsSubstring("not a regular file"));
  refusal = refusal_of([] { load_profile(std::string("a.json\0b.json", 13)); });
  CHECK_THAT(refusal.message, ContainsSubstring("zero byte"));
  refusal =
      refusal_of([&] { load_profile(folder.path() + "/" + std::string(5000, 'a') + ".json"); });
  CHECK(refusal.code == ErrorCode::io);
  refusal = refusal_of([&] { load_profile(folder.write("empty.json", "")); });
  CHECK_THAT(refusal.message, ContainsSubstring("not valid JSON"));
  refusal = refusal_of([&] {
    load_profile(folder.write("big.json", shipped_text("v100") + std::string(1 << 20, ' ')));
  });
  CHECK(refusal.code == ErrorCode::invalid_model);
  CHECK_THAT(refusal.message, ContainsSubstring("larger than 1048576 bytes"));
}

TEST_CASE("text that isn't a profile is refused") {
  const auto good = shipped_text("v100");
  check_refused(good.substr(0, good.size() / 2), "not valid JSON");
  check_refused(good + "}", "not valid JSON");
  check_refused("", "not valid JSON");
  check_refused(std::string("\0\0\0", 3), "not valid JSON");
  check_refused("\xff\xfe{}", "not valid JSON");
  check_refused(replaced(good, "Volta", "Vol\xc3ta"), "not valid JSON");  // broken UTF-8
  check_refused("[]", "the profile must be an object, not array");
  check_refused("null", "the profile must be an object, not null");
  check_refused("3", "must be an object");
  check_refused("{}", "name is missing");
  check_refused(std::string(100000, '['), "nested deeper than 4 levels");
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "{\"a\":";
  check_refused(deep, "nested deeper than 4 levels");
  check_refused(std::string((1 << 20) + 1, ' '), "1048577 bytes; a profile has at most 1048576");
}

TEST_CASE("keys are checked by name") {
  const auto good = shipped_text("v100");
  check_refused(replaced(good, "\"tdp_w\"", "\"tdp_watts\""), "tdp_w is missing");
  check_refused(replaced(good, "{\n", "{\n  \"colour\": 3,\n"), "unknown key 'colour'");
  check_refused(replaced(good, "\"tdp_w\": {", "\"tdp_w\": {\"unit\": \"W\", "),
                "unknown key 'unit' in tdp_w");
  check_refused(replaced(good, "\"link\": {", "\"link\": {\"mtu\": 1, "),
                "unknown key 'mtu' in link");
  check_refused(
      replaced(good, "\"matrix_flops_per_s\": {", "\"matrix_flops_per_s\": {\"fp8\": 1, "),
      "unknown key 'fp8' in matrix_flops_per_s");
  check_refused(replaced(good, "\"link\": {", "\"link\": 5, \"old\": {"),
                "link must be an object, not number");
  check_refused(replaced(good, "{\n", "{\n  \"name\": \"v101\",\n"), "key 'name' is there twice");
  check_refused(replaced(good, "\"tdp_w\": {", "\"tdp_w\": {\"value\": 1, "),
                "key 'value' is there twice");
  check_refused(replaced(good, "\"f32\"", "\"f16\""), "key 'f16' is there twice");
  check_refused(replaced(good, "\"f32\"", "\"bf16\""), "vector_flops_per_s.f32 is missing");
  check_refused(replaced(good, "\"latency_s\"", "\"latency\""), "link.latency_s is missing");
  check_refused(replaced(good, "\"evidence\": \"spec\", ", ""), ".evidence is missing");
  CHECK_NOTHROW(parse_profile(
      replaced(good, "\"matrix_flops_per_s\": {",
               "\"matrix_flops_per_s\": {\"tf32\": "
               "{\"value\": 1e12, \"evidence\": \"measured\", \"source\": \"own\"}, "),
      "x.json"));
}

TEST_CASE("texts are checked") {
  const auto good = shipped_text("v100");
  check_refused(replaced(good, "\"NVIDIA\"", "\"Nvidia\""),
                "vendor must be one of NVIDIA, AMD, not 'Nvidia'");
  check_refused(replaced(good, "\"NVIDIA\"", "5"), "vendor must be a string, not number");
  check_refused(replaced(good, "\"spec\"", "\"rumour\""),
                "must be one of spec, measured, default, not 'rumour'");
  check_refused(replaced(good, "\"Volta\"", "\"\""), "generation must have 1 to 1000 bytes, not 0");
  check_refused(replaced(good, "Volta", std::string(1001, 'v')),
                "generation must have 1 to 1000 bytes, not 1001");
  check_refused(replaced(good, "Volta", "Vol\\u001b[31mta"), "generation has a control character");
  check_refused(replaced(good, "Volta", "Vol\\u009bta"), "generation has a control character");
  check_refused(replaced(good, "Volta", "Vol\\u0000ta"), "generation has a control character");
  check_refused(replaced(good, "\"name\": \"v100\"", "\"name\": \"../v100\""),
                "name may have lower-case letters");
  CHECK(parse_profile(replaced(good, "Volta", "Volt\xc3\xa4"), "x.json").generation ==
        "Volt\xc3\xa4");
}

TEST_CASE("numbers are checked for type and range") {
  check_refused(with_value("tdp_w", "\"300\""), "tdp_w.value must be a number, not string");
  check_refused(with_value("tdp_w", "true"), "tdp_w.value must be a number, not boolean");
  check_refused(with_value("tdp_w", "null"), "tdp_w.value must be a number, not null");
  check_refused(with_value("tdp_w", "[300]"), "tdp_w.value must be a number, not array");
  for (const auto* text :
       {"NaN", "nan", "Infinity", "inf", "-Infinity", "1e999", "0x10", "01", "1."}) {
    INFO(text);
    check_refused(with_value("tdp_w", text), "not valid JSON");
  }
  const char* keys[] = {"compute_units",
                        "base_clock_hz",
                        "tdp_w",
                        "memory_bytes",
                        "memory_bandwidth_bytes_per_s",
                        "l2_bytes",
                        "shared_memory_per_unit_bytes",
                        "f64",
                        "f32",
                        "launch_overhead_s",
                        "synchronize_s",
                        "h2d_bytes_per_s",
                        "d2h_bytes_per_s",
                        "pageable_h2d_bytes_per_s",
                        "pageable_d2h_bytes_per_s",
                        "latency_s"};
  for (const auto* key : keys)
    for (const auto* value : {"0", "-0.0", "-1", "-1e300", "1e-300", "5e-324", "1e30", "1.7e308",
                              "99999999999999999999999999", "-99999999999999999999999999"}) {
      INFO(key << " " << value);
      check_refused(with_value(key, value), fmt::format("{}.value must be from ", key));
    }
  check_refused(with_value("compute_units", "80.5"),
                "compute_units.value must be a whole number, not 80.5");
}

TEST_CASE("figures are checked against each other") {
  check_refused(with_value("base_clock_hz", "1.6e9"), "base_clock_hz is above boost_clock_hz");
  check_refused(with_value("warp_size", "48"), "warp_size.value must be 32 or 64, not 48");
  CHECK(parse_profile(with_value("base_clock_hz", "1.53e9"), "x").base_clock_hz.value == 1.53e9);
}

TEST_CASE("spoilt profiles are read or refused, never anything else") {
  constexpr unsigned kSeed = 20240;
  INFO("seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto good = shipped_text("mi250x");
  const std::string_view alphabet = "{}[]\",:0123456789eE+-.truefalsn\\u \n\xc3\xff";
  int refused = 0;
  constexpr int kRuns = 3000;
  for (int run = 0; run < kRuns; ++run) {
    auto text = good;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 40);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 60));
      }
    }
    try {
      const auto profile = parse_profile(text, "x.json");
      CHECK(profile.vector_flops_per_s.f32->value > 0);
    } catch (const Error& error) {
      ++refused;
      CHECK(error.code() == ErrorCode::invalid_model);
    }
  }
  CHECK(refused > kRuns / 2);
  CHECK(refused < kRuns);
}

#endif
