#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "generated/turnout_config.hpp"
#include "runtime/report/atlas.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

std::int64_t batch_of(const FlipBatch& flip) {
  return flip.batch > 0 ? flip.batch : std::numeric_limits<std::int64_t>::max();
}

Atlas made_up_atlas(System& system, const std::vector<std::string>& devices) {
  AtlasAxes axes;
  axes.last = 128;
  axes.link_factors = {0.5, 1, 4};
  axes.threads = {1, 2};
  return make_atlas(system, mlp({64, 512, 512, 10}), {}, "N", devices, axes,
                    [](int threads) { return CostModel(made_up_cpu(40e9 * threads)); });
}

TEST_CASE("an atlas has every cell, and wins move the way the axes push") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const Atlas atlas = made_up_atlas(system, {"virtual:v100", "virtual:t4"});
  REQUIRE(atlas.cells.size() == 2 * 2 * 2 * 3);
  const auto cell = [&](const std::string& device, int threads, bool streamed, double link) {
    for (const AtlasCell& c : atlas.cells) {
      if (c.device == device && c.threads == threads && c.streamed == streamed &&
          c.link_factor == link) {
        return c;
      }
    }
    FAIL("no cell");
    return AtlasCell{};
  };
  for (const AtlasCell& c : atlas.cells) {
    INFO(c.device << " " << c.threads << " " << c.streamed << " " << c.link_factor);
    CHECK(c.refusal.empty());
    CHECK(c.cpu_evidence == Evidence::calibrated);
    CHECK(c.device_evidence == Evidence::predicted);
    const AtlasCell one = cell(c.device, c.threads, c.streamed, 1);
    if (c.link_factor < 1) CHECK(batch_of(c.device_alone) >= batch_of(one.device_alone));
    if (c.link_factor > 1) CHECK(batch_of(c.device_alone) <= batch_of(one.device_alone));
    const AtlasCell resident = cell(c.device, c.threads, false, c.link_factor);
    CHECK(batch_of(c.device_alone) >= batch_of(resident.device_alone));
    const AtlasCell slower = cell(c.device, 1, c.streamed, c.link_factor);
    CHECK(batch_of(c.device_alone) >= batch_of(slower.device_alone));
    if (c.device_alone.batch > 0 && !c.device_alone.always) {
      CHECK(c.range.low <= c.device_alone.batch);
      CHECK(c.range.high >= c.device_alone.batch);
    }
  }
}

TEST_CASE("an atlas says which axes it has not") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const Atlas atlas = made_up_atlas(system, {"virtual:v100"});
  CHECK(to_text(atlas).find("dtype is not varied") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(atlas));
  CHECK(json["not_varied"].contains("dtype"));
  CHECK(json["cells"].size() == atlas.cells.size());
  CHECK(json["cells"][0]["cpu_evidence"] == "calibrated");
}

}  // namespace
}  // namespace turnout::testing
