#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "generated/turnout_config.hpp"
#include "runtime/plan/dot.hpp"
#include "runtime/plan/explain.hpp"
#include "runtime/plan/plan_diff.hpp"
#include "tests/support/models.hpp"

namespace turnout::testing {
namespace {

using Json = nlohmann::ordered_json;

bool has(const std::string& text, const std::string& needle) {
  return text.find(needle) != std::string::npos;
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

// A plan of nodes a and b in a row; cost of each on "cpu" and "gpu".
Json made_up(const std::vector<std::array<double, 2>>& seconds, const std::vector<int>& devices) {
  const std::vector<std::string> labels = {"cpu", "gpu"};
  Json plan = {{"format", kPlanFormat},  {"model", "m"},           {"dims", {{"N", 4}}},
               {"predicted_s", 1},       {"lanes_s", 1},           {"evidence", "mixed"},
               {"nodes", Json::array()}, {"copies", Json::array()}};
  for (std::size_t n = 0; n < seconds.size(); ++n) {
    Json node = {{"name", std::string(1, static_cast<char>('a' + n))},
                 {"op", "relu"},
                 {"device", labels[static_cast<std::size_t>(devices[n])]},
                 {"provider", "kokkos"},
                 {"options", Json::array()}};
    for (std::size_t d = 0; d < 2; ++d) {
      node["options"].push_back({{"device", labels[d]},
                                 {"possible", true},
                                 {"seconds", seconds[n][d]},
                                 {"evidence", "predicted"}});
    }
    plan["nodes"].push_back(node);
  }
  return plan;
}

TEST_CASE("each moved node says why") {
  Json before = made_up({{1, 2}, {3, 1}, {1, 2}, {1, 1}}, {0, 0, 0, 0});
  Json after = made_up({{5, 2}, {9, 1}, {1, 2}, {1, 1}}, {1, 1, 1, 0});
  after["copies"].push_back({{"value", "x"},
                             {"from", "cpu"},
                             {"to", "gpu"},
                             {"bytes", 64},
                             {"seconds", 1e-5},
                             {"evidence", "predicted"}});
  const PlanRecord a = parse_plan(before.dump(), "a.json");
  const PlanRecord b = parse_plan(after.dump(), "b.json");
  const PlanDiff diff = diff_plans(a, b);
  REQUIRE(diff.moved.size() == 3);
  CHECK(diff.same == 1);
  CHECK(has(diff.moved[0].why, "its own time: gpu was slower by 1 s, now it is faster by 3 s"));
  CHECK(has(diff.moved[1].why, "the copies became worth it"));
  CHECK(has(diff.moved[2].why, "for its neighbours: gpu is slower by 1 s"));
  REQUIRE(diff.copies.size() == 1);
  CHECK(diff.copies[0].before == nullptr);
  CHECK(diff.copies[0].after->bytes == 64);
  const std::string text = to_text(diff);
  CHECK(has(text, "3 nodes moved, 1 stayed"));
  CHECK(has(text, "none, then 64 B in 10 us (predicted)"));
  const Json json = Json::parse(to_json(diff));
  CHECK(json["moved"][0]["before"]["to"]["seconds"] == 2);
  CHECK(json["copies"][0]["before"].is_null());
}

TEST_CASE("nodes of one plan alone and impossible devices are told") {
  Json before = made_up({{1, 2}, {1, 2}}, {0, 0});
  Json after = made_up({{1, 2}, {1, 2}}, {1, 0});
  before["nodes"][1]["name"] = "gone";
  after["nodes"][0]["options"][0] = {{"device", "cpu"}, {"possible", false}};
  const PlanRecord a = parse_plan(before.dump(), "a.json");
  const PlanRecord b = parse_plan(after.dump(), "b.json");
  const PlanDiff diff = diff_plans(a, b);
  CHECK(diff.only_before == std::vector<std::string>{"gone"});
  CHECK(diff.only_after == std::vector<std::string>{"b"});
  CHECK(diff.moved.at(0).why == "cpu can't run it any more");
  Json other = before;
  other["model"] = "other";
  const PlanRecord c = parse_plan(other.dump(), "c.json");
  CHECK(has(message([&] { diff_plans(a, c); }), "a.json and c.json are plans of different models"));
}

TEST_CASE("cut and hostile plan files get one error that names them") {
  const Json good = made_up({{1, 2}}, {0});
  const std::string whole = good.dump();
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    CHECK(message([&] { parse_plan(whole.substr(0, size), "cut.json"); }) ==
          "cut.json: not valid JSON");
  }
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json bad = good;
    change(bad);
    const std::string error = message([&] { parse_plan(bad.dump(), "bad.json"); });
    INFO(bad.dump());
    CHECK(error.rfind("bad.json", 0) == 0);
  };
  for (const auto& [key, value] : good.items()) {
    refused([&, k = key](Json& json) { json.erase(k); });
    refused([&, k = key](Json& json) { json[k] = Json::array({7}); });
  }
  refused([](Json& json) { json["nodes"][0]["options"][0]["seconds"] = -1; });
  refused([](Json& json) { json["nodes"][0]["options"][0]["evidence"] = "hearsay"; });
  refused([](Json& json) { json["nodes"][0]["options"] = 3; });
  refused([](Json& json) { json["dims"]["N"] = "four"; });
}

TEST_CASE("plans of a model at two batches differ as the planner says") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  const CostModel costs(made_up_cpu());
  const Graph model = mlp({64, 512, 512, 10});
  const auto planned = [&](std::int64_t batch) {
    SessionOptions options;
    options.devices = {"cpu", "virtual:v100"};
    options.dims["N"] = batch;
    return explain(system, model, costs, options, false);
  };
  const Explanation small = planned(1);
  const Explanation large = planned(1024);
  const PlanRecord a = parse_plan(to_json(small), "small.json");
  const PlanRecord b = parse_plan(to_json(large), "large.json");
  CHECK(a.dims.at("N") == 1);
  const PlanDiff diff = diff_plans(a, b);
  std::size_t moved = 0;
  for (std::size_t n = 0; n < small.planned.plan.nodes.size(); ++n) {
    const bool view = small.planned.graph.nodes()[n].op->view;
    if (!view && small.planned.plan.nodes[n].device != large.planned.plan.nodes[n].device) ++moved;
  }
  CHECK(moved > 0);
  CHECK(diff.moved.size() == moved);
  CHECK(diff.copies.size() == large.planned.plan.copies.size());
  const PlanDiff none = diff_plans(a, a);
  CHECK(none.moved.empty());
  CHECK(none.copies.empty());
}

TEST_CASE("the Graphviz text has every node, copy and evidence, and names can't break out") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  System system;
  GraphBuilder b(all_ops(), "evil\"]; x -> y [label=\"");
  const ValueId x = b.input("in\"put\n", DType::f32, {"N", 4});
  b.output(b.add("relu", {x}, {}, "no\\de\"];"), "out\"");
  const Graph model = b.build();
  SessionOptions options;
  options.devices = {"virtual:v100"};
  options.dims["N"] = 8;
  const PlannedModel planned = plan_model(system, model, CostModel(made_up_cpu()), options);
  const std::string dot = to_dot(planned);
  CHECK(has(dot, "label=\"no\\\\de\\\"];\\nrelu\\nvirtual:v100"));
  CHECK(has(dot, "label=\"in\\\"put?\""));
  CHECK(has(dot, "style=dashed"));
  CHECK(has(dot, "(predicted)"));
  // Outside of escapes every quote opens or closes: their number is even on each line.
  for (std::size_t i = 0, quotes = 0; i < dot.size(); ++i) {
    if (dot[i] == '\\') {
      ++i;
    } else if (dot[i] == '"') {
      ++quotes;
    } else if (dot[i] == '\n') {
      CHECK(quotes % 2 == 0);
      quotes = 0;
    }
  }
}

}  // namespace
}  // namespace turnout::testing
