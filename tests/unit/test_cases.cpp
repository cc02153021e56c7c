// The cases files and their reader; every case through its reference.
#include <map>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Case one(const std::string& line) { return parse_case(line, "test:1", all_ops()); }

#define CHECK_REFUSED(line, text) CHECK_THROWS_WITH(one(line), ContainsSubstring(text))

}  // namespace

TEST_CASE("a line becomes a bound node and its inputs") {
  const Case test = one("  slice f32[5,6] i64{1,0} i64{4,5}  # a comment");
  CHECK(test.op == "slice");
  CHECK(test.text == "slice f32[5,6] i64{1,0} i64{4,5}");
  CHECK(test.graph.bound());
  CHECK(test.inputs.size() == 3);
  CHECK(graph_inputs(test).size() == 1);
  CHECK(test.graph.info(NodeId{0}).output(0).shape == Shape{3, 5});
  CHECK(values<std::int64_t>(test.inputs[2]) == std::vector<std::int64_t>{4, 5});
}

TEST_CASE("left out inputs, scalars, shaped lists, attributes and outputs") {
  const Case clip = one("clip f32[3] - f32(0.25)");
  CHECK_FALSE(clip.inputs[1].defined());
  CHECK(operands(clip)[1] == nullptr);
  CHECK(values(clip.inputs[2]) == std::vector<float>{0.25F});
  CHECK(one("clip f32[3] f32(0) -").graph.nodes()[0].inputs.size() == 2);
  CHECK(one("gather f32[9] i64{1,2,3,4}[2,2]").inputs[1].shape() == Shape{2, 2});
  const Case split = one("split f32[6] num_outputs=2 outputs=2");
  CHECK(split.graph.outputs().size() == 2);
  const Case transposed = one("transpose f32[2,3,4] perm=[2,0,1]");
  CHECK(transposed.graph.nodes()[0].attrs.integers("perm") == std::vector<std::int64_t>{2, 0, 1});
  CHECK(one("cast f32[2] to=f16").graph.nodes()[0].attrs.text("to") == "f16");
}

TEST_CASE("data is random within bounds, and the same every time") {
  const Case test = one("add f32[1000] f32[1000] range=2:3");
  for (const Tensor& input : test.inputs) {
    for (float x : values(input)) CHECK((x >= 2 && x <= 3));
  }
  CHECK(values(test.inputs[0]) != values(test.inputs[1]));
  CHECK(values(test.inputs[0]) == values(one("add f32[1000] f32[1000] range=2:3").inputs[0]));
  std::map<std::int64_t, int> counts;
  for (std::int64_t x : values<std::int64_t>(one("abs i64[1000] ints=-2:1").inputs[0])) ++counts[x];
  CHECK(counts.size() == 4);
  CHECK(counts.begin()->first == -2);
}

TEST_CASE("known weights are constants of the graph") {
  const Case test =
      parse_case("matmul f32[2,3] f32[3,4]", "t", all_ops(), RandomData::known_after_first);
  CHECK(test.graph.info(NodeId{0}).constant(0) == nullptr);
  CHECK(test.graph.info(NodeId{0}).constant(1) != nullptr);
  CHECK(test.inputs.size() == 2);
}

TEST_CASE("errors of cases name the line") {
  CHECK_REFUSED("nothing f32[2]", "test:1: 'nothing f32[2]': there is no op 'nothing'");
  CHECK_REFUSED("abs f33[2]", "'f33[2]' is no operand");
  CHECK_REFUSED("abs f32[2", "is not [...]");
  CHECK_REFUSED("abs f32[x]", "'x' is not an integer");
  CHECK_REFUSED("abs f32{1,2", "has no }");
  CHECK_REFUSED("abs f32{1,a}", "'a' is not a number");
  CHECK_REFUSED("abs f32{1,2}[3]", "2 values for f32[3]");
  CHECK_REFUSED("abs f32[2] alpha=1", "there is no attribute 'alpha'");
  CHECK_REFUSED("abs f32[2] range=1", "is not low:high");
  CHECK_REFUSED("add f32[2] f32[3]", "can't be broadcast");
  CHECK_THROWS_AS(read_cases("/nowhere/abs.txt", all_ops()), Error);
}

TEST_CASE("every op has cases, and references fill outputs of the inferred specs") {
  std::map<std::string, int> counts;
  for (const std::string& file : cases_files()) {
    for (const Case& test : read_cases(file, all_ops())) {
      INFO(test.where << ": " << test.text);
      ++counts[test.op];
      const std::vector<Tensor> outputs = reference_outputs(test);
      const NodeInfo info = test.graph.info(NodeId{0});
      REQUIRE(outputs.size() == info.outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        CHECK(outputs[i].spec() == *info.outputs[i]);
        CHECK(tolerance_of(info, outputs[i].dtype()).reason != "");
      }
      const Cost cost = cost_of(info);
      CHECK((cost.flops >= 0 && cost.bytes_read >= 0 && cost.bytes_written >= 0));
    }
  }
  for (const auto& [name, op] : all_ops().all()) {
    INFO(name << " has no line in tests/cases");
    CHECK(counts[name] > 0);
  }
}

TEST_CASE("every op and attribute is documented") {
  for (const auto& [name, op] : all_ops().all()) {
    INFO(name);
    CHECK_FALSE(op.doc.empty());
    CHECK(op.min_inputs <= op.max_inputs);
    for (const AttrDef& attr : op.attrs) CHECK_FALSE(attr.doc.empty());
  }
}
