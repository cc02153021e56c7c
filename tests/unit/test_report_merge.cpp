#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "runtime/io/json_fields.hpp"
#include "runtime/report/html.hpp"
#include "runtime/report/merge.hpp"
#include "runtime/system.hpp"

namespace turnout::testing {
namespace {

using Json = nlohmann::ordered_json;

Comparison made_up(const std::string& cpu, double factor) {
  Comparison comparison;
  comparison.model = "model";
  comparison.model_digest = "00000000000000aa";
  comparison.input_digest = "00000000000000bb";
  comparison.machines = {{cpu, 2, "Linux", "0.1.0", "GCC", {"onednn", "kokkos"}}};
  for (const std::int64_t batch : {1, 8}) {
    for (const char* device : {"cpu", "virtual:v100"}) {
      CompareRow row;
      row.device = device;
      row.batch = batch;
      row.latency_seconds = factor * static_cast<double>(batch) * 1e-3;
      row.evidence = device[0] == 'c' ? Evidence::measured : Evidence::predicted;
      row.executed = true;
      row.runs = 5;
      row.spread = 0.1;
      row.memory_bytes = 1024;
      row.difference = 1e-7;
      row.nodes = "onednn 3";
      row.node_times.push_back({"a", "relu", device, "onednn", 1e-4, row.evidence});
      comparison.rows.push_back(row);
    }
  }
  comparison.rows.back().skipped = "budget";
  comparison.crossovers.push_back({"cpu", "virtual:v100", 5, 1, 8});
  comparison.notes.push_back("a note");
  return comparison;
}

Comparison merged_of(const std::vector<Comparison>& comparisons) {
  std::vector<Comparison> read;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    names.push_back(std::string(1, static_cast<char>('a' + i)) + ".json");
    read.push_back(parse_comparison(to_json(comparisons[i]), names.back()));
  }
  return merge(read, names);
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

bool has(const std::string& text, const std::string& needle) {
  return text.find(needle) != std::string::npos;
}

TEST_CASE("what compare writes is read back whole") {
  const Comparison before = made_up("a CPU", 1);
  CHECK(to_json(parse_comparison(to_json(before), "a.json")) == to_json(before));
}

TEST_CASE("rows of several machines are keyed by machine and device") {
  const Comparison merged = merged_of({made_up("fast", 1), made_up("slow", 3)});
  REQUIRE(merged.machines.size() == 2);
  CHECK(merged.machines[1].cpu == "slow");
  REQUIRE(merged.rows.size() == 8);
  CHECK(merged.rows[0].device == "cpu [A]");
  CHECK(merged.rows[2].device == "cpu [B]");
  CHECK(merged.rows[2].latency_seconds == 3e-3);
  CHECK(merged.winner(1)->host == "A");
  CHECK(merged.crossovers[1].to == "virtual:v100 [B]");
  const Json json = Json::parse(to_json(merged));
  CHECK(json["machines"][1]["host"] == "B");
  CHECK(json["rows"][2]["host"] == "B");
  CHECK(json["rows"][2]["host_device"] == "cpu");
  const std::string html = to_html(merged);
  CHECK(has(html, "id=\"machines\""));
  CHECK(has(html, "cpu [B]"));
  CHECK(has(to_text(merged), "B: slow, 2 cores"));
}

TEST_CASE("runs of one machine in two files share its letter") {
  Comparison first = made_up("one", 1);
  Comparison second = first;
  first.rows.resize(2);
  second.rows.erase(second.rows.begin(), second.rows.begin() + 2);
  CHECK(merged_of({first, second}).machines.size() == 1);
  CHECK(has(message([&] { merged_of({first, first}); }), "batch 1, which another file has too"));
}

TEST_CASE("other models and inputs are refused by name") {
  const Comparison base = made_up("one", 1);
  Comparison other = made_up("two", 1);
  other.model_digest = "00000000000000ff";
  const std::string models = message([&] { merged_of({base, other}); });
  CHECK(has(models, "a.json and b.json have different models"));
  CHECK(has(models, "00000000000000ff"));
  other = made_up("two", 1);
  other.input_digest = "0000000000000000";
  CHECK(has(message([&] { merged_of({base, other}); }), "different inputs"));
}

TEST_CASE("cut files get one error that names them") {
  const std::string whole = to_json(made_up("one", 1));
  for (std::size_t size = 0; size + 1 < whole.size(); size += 7) {
    const std::string error =
        message([&] { parse_comparison(std::string_view(whole).substr(0, size), "cut.json"); });
    CHECK(error == "cut.json: not valid JSON");
  }
}

TEST_CASE("hostile files get one error that names them") {
  const Json good = Json::parse(to_json(made_up("one", 1)));
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& needle) {
    Json bad = good;
    change(bad);
    const std::string error = message([&] { parse_comparison(bad.dump(), "bad.json"); });
    INFO(error);
    CHECK(error.rfind("bad.json", 0) == 0);
    CHECK(has(error, needle));
  };
  for (const auto& [key, value] : good.items()) {
    refused([&, k = key](Json& json) { json.erase(k); }, "'" + key + "' is missing");
    refused([&, k = key](Json& json) { json[k] = Json::array({Json::array()}); }, "");
  }
  for (const auto& [key, value] : good["rows"][0].items()) {
    if (key == "difference" || key == "node_times" || key == "throughput_per_s") continue;
    refused([&, k = key](Json& json) { json["rows"][0].erase(k); }, key);
  }
  refused([](Json& json) { json["rows"][0]["latency_s"] = -1; }, "latency_s");
  refused([](Json& json) { json["rows"][0]["latency_s"] = "1"; }, "latency_s");
  refused([](Json& json) { json["rows"][0]["batch"] = 0; }, "batch");
  refused([](Json& json) { json["rows"][0]["batch"] = 1.5; }, "batch");
  refused([](Json& json) { json["rows"][0]["batch"] = ~std::uint64_t{0}; }, "batch");
  refused([](Json& json) { json["rows"][0]["evidence"] = "gospel"; }, "gospel");
  refused([](Json& json) { json["rows"][0]["node_times"][0]["seconds"] = nullptr; }, "seconds");
  refused([](Json& json) { json["machine"]["cores"] = -2; }, "cores");
  refused([](Json& json) { json["format"] = "turnout-compare-9"; }, "turnout-compare-9");
  refused([](Json& json) { json["machines"] = Json::array(); }, "several machines");
  CHECK(has(message([] { parse_comparison("[]", "x.json"); }), "not a JSON object"));
  CHECK(has(message([] { parse_comparison(std::string(1 << 20, '['), "x.json"); }), "nested"));
}

TEST_CASE("names in a hostile file stay text") {
  Comparison evil = made_up("<script>alert(1)</script>", 1);
  evil.rows[0].device = "</script><img src=x>";
  const std::string html = to_html(merged_of({evil, made_up("two", 1)}));
  CHECK_FALSE(has(html, "<img"));
  CHECK_FALSE(has(html, "<script>alert"));
}

TEST_CASE("a machine's description names the processor and the build, not the host") {
  const System system;
  const Machine machine = this_machine(system);
  CHECK(machine.cores >= 1);
  CHECK_FALSE(machine.cpu.empty());
  CHECK_FALSE(machine.build.empty());
  CHECK(has(describe(machine), machine.version));
}

}  // namespace
}  // namespace turnout::testing
