#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/graph.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::ContainsSubstring;

namespace {

#define CHECK_ERROR(expression, text) CHECK_THROWS_WITH(expression, ContainsSubstring(text))

// relu(x w + b) with x f32[N,3].
Graph small_graph() {
  GraphBuilder b(all_ops(), "small");
  const ValueId x = b.input("x", DType::f32, {"N", 3});
  const ValueId w = b.constant(counting({3, 2}), "w");
  const ValueId bias = b.constant(counting({2}), "b");
  const ValueId y = b.add("add", {b.add("matmul", {x, w}, {}, "product"), bias});
  b.output(b.add("relu", {y}), "y");
  return b.build();
}

}  // namespace

TEST_CASE("shapes check their dimensions") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape.elements() == 24);
  CHECK(shape.elements(1, 3) == 12);
  CHECK(shape.dim(-1) == 4);
  CHECK(shape.strides()[0] == 12);
  CHECK(shape.strides()[2] == 1);
  CHECK(to_string(shape) == "[2,3,4]");
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{5, 0}.elements() == 0);
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK_ERROR((Shape{-1}), "negative dimension");
  CHECK_ERROR((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), "rank 9");
  CHECK_ERROR((Shape{1LL << 40, 1LL << 40}), "elements");
  // An empty dimension doesn't excuse the others.
  CHECK_ERROR((Shape{0, 1LL << 40, 1LL << 40}), "elements");
}

TEST_CASE("axes and broadcasting") {
  CHECK(normalize_axis(-1, 3, "op") == 2);
  CHECK(normalize_axis(0, 3, "op") == 0);
  CHECK_ERROR(normalize_axis(3, 3, "op"), "axis 3 out of range for rank 3");
  CHECK_ERROR(normalize_axis(0, 0, "op"), "rank 0");
  CHECK(broadcast({2, 1, 4}, {3, 1}, "op") == Shape{2, 3, 4});
  CHECK(broadcast({}, {5}, "op") == Shape{5});
  CHECK(broadcast({0}, {1}, "op") == Shape{0});
  CHECK_ERROR(broadcast({2}, {3}, "op"), "[op] shapes [2] and [3]");
  CHECK_ERROR(broadcast({0}, {3}, "op"), "broadcast");
}

TEST_CASE("attributes are sorted, typed and printed") {
  AttrMap attrs{{"b", 1.5}, {"a", std::int64_t{2}}};
  attrs.set("c", std::vector<std::int64_t>{1, 2});
  attrs.set("a", std::int64_t{3});
  CHECK(attrs.begin()->first == "a");
  CHECK(attrs.integer("a") == 3);
  CHECK(attrs.real("b") == 1.5);
  CHECK(attrs.integers("c").size() == 2);
  CHECK_ERROR(attrs.integer("b"), "another type");
  CHECK_ERROR(attrs.integer("z"), "missing");
  attrs.erase("a");
  CHECK_FALSE(attrs.has("a"));
  CHECK(to_string(AttrValue{std::string("x")}) == "\"x\"");
  CHECK(to_string(AttrValue{std::vector<std::int64_t>{1, 2}}) == "[1,2]");
  CHECK(attrs == AttrMap{{"c", std::vector<std::int64_t>{1, 2}}, {"b", 1.5}});
}

TEST_CASE("the builder names, numbers and links values") {
  const Graph graph = small_graph();
  REQUIRE(graph.nodes().size() == 3);
  CHECK(graph.nodes()[0].name == "product");
  CHECK(graph.symbols() == std::vector<std::string>{"N"});
  CHECK(graph.find_value("w").has_value());
  CHECK_FALSE(graph.find_value("nothing").has_value());
  CHECK(graph.find_node("product")->index == 0);
  CHECK(graph.output_names()[0] == "y");
  const auto uses = graph.uses();
  const ValueId product = graph.nodes()[0].outputs[0];
  REQUIRE(uses[product.index].size() == 1);
  CHECK(uses[product.index][0].node.index == 1);
  CHECK(uses[product.index][0].input == 0);
  CHECK(graph.value(product).producer.index == 0);
}

TEST_CASE("names are made unique") {
  GraphBuilder b(all_ops(), "g");
  const ValueId x = b.input("x", DType::f32, {2});
  const ValueId again = b.input("x", DType::f32, {2});
  CHECK(b.value(x).name == "x");
  CHECK(b.value(again).name == "x_1");
  b.output(b.add("add", {x, again}, {}, "n"));
  b.output(b.add("add", {x, again}, {}, "n"));
  const Graph graph = b.build();
  CHECK(graph.nodes()[1].name == "n_1");
}

TEST_CASE("the builder refuses what an op's schema doesn't allow") {
  GraphBuilder b(all_ops(), "g");
  const ValueId x = b.input("x", DType::f32, {2, 3});
  CHECK_ERROR(b.add("no_such_op", {x}), "there is no op 'no_such_op'");
  CHECK_ERROR(b.add("relu", {x, x}, {}, "n"), "[relu] node 'n': 2 inputs, but the op takes 1 to 1");
  CHECK_ERROR(b.add("relu", {}), "0 inputs");
  CHECK_ERROR(b.add("relu", {ValueId{}}), "0 inputs");
  CHECK_ERROR(b.add("relu", {ValueId{99}}), "input 0 doesn't exist");
  CHECK_ERROR(b.add("where", {x, ValueId{}, x}), "input 1 doesn't exist");
  CHECK_ERROR(b.add("relu", {x}, {{"alpha", 1.0}}), "unknown attribute 'alpha'");
  CHECK_ERROR(b.add("elu", {x}, {{"alpha", std::string("big")}}), "wrong type");
  CHECK_ERROR(b.add("cast", {x}), "attribute 'to' is missing");
  CHECK_ERROR(b.output(ValueId{}), "doesn't exist");
  // Integers are taken for reals, and defaults are filled in.
  const ValueId y = b.add("hard_sigmoid", {x}, {{"alpha", std::int64_t{2}}});
  b.output(y);
  const Graph graph = b.build();
  CHECK(graph.nodes()[0].attrs.real("alpha") == 2.0);
  CHECK(graph.nodes()[0].attrs.real("beta") == 0.5);
}

TEST_CASE("a graph without outputs is broken") {
  GraphBuilder b(all_ops(), "g");
  b.input("x", DType::f32, {2});
  CHECK_ERROR(b.build(), "graph 'g': there is no output");
}

TEST_CASE("binding gives every value a spec") {
  const Graph graph = small_graph();
  const Graph bound = graph.bind({{"N", 8}});
  CHECK(bound.bound());
  CHECK(bound.value(bound.outputs()[0]).spec == TensorSpec{DType::f32, {8, 2}});
  CHECK(bound.info(NodeId{1}).output(0).shape == Shape{8, 2});
  // Another size later, and none at all.
  CHECK(bound.bind({{"N", 0}}).value(bound.outputs()[0]).spec.shape == Shape{0, 2});
  CHECK_ERROR(graph.bind({}), "no size given for dimension N");
  CHECK_ERROR(graph.bind({{"N", -3}}), "dimension 'N' can't be -3");
}

TEST_CASE("errors of binding name op and node") {
  GraphBuilder b(all_ops(), "g");
  const ValueId x = b.input("x", DType::f32, {"N", 3});
  const ValueId y = b.input("y", DType::f32, {4, 3});
  b.output(b.add("add", {x, y}, {}, "sum"));
  const Graph graph = b.build();
  CHECK_NOTHROW(graph.bind({{"N", 4}}));
  CHECK_ERROR(graph.bind({{"N", 5}}), "[add] node 'sum': shapes [5,3] and [4,3]");
}

TEST_CASE("shape arithmetic is known once the batch is") {
  // reshape(x, concat(shape(x)[:1], [-1])).
  GraphBuilder b(all_ops(), "g");
  const ValueId x = b.input("x", DType::f32, {"N", 3, 4});
  const ValueId shape = b.add("shape", {x});
  const ValueId batch = b.add("slice", {shape, b.constant(i64({0})), b.constant(i64({1}))});
  const ValueId wanted =
      b.add("concat", {batch, b.constant(i64({-1}))}, {{"axis", std::int64_t{0}}});
  b.output(b.add("reshape", {x, wanted}));
  const Graph bound = b.build().bind({{"N", 5}});
  CHECK(bound.value(bound.outputs()[0]).spec.shape == Shape{5, 12});
  REQUIRE(bound.value(wanted).has_known());
  CHECK(values<std::int64_t>(bound.value(wanted).known) == std::vector<std::int64_t>{5, -1});
}

TEST_CASE("a shape that comes from data is an error that says so") {
  GraphBuilder b(all_ops(), "g");
  const ValueId x = b.input("x", DType::f32, {6});
  const ValueId shape = b.input("shape", DType::i64, {2});
  b.output(b.add("reshape", {x, shape}, {}, "r"));
  CHECK_ERROR(b.build().bind({}), "[reshape] node 'r': input 1 has to be known");
}

TEST_CASE("graphs print as text") {
  const std::string text = to_text(small_graph());
  CHECK_THAT(text, ContainsSubstring("graph \"small\""));
  CHECK_THAT(text, ContainsSubstring("input %x : f32[N,3]"));
  CHECK_THAT(text, ContainsSubstring("constant %w : f32[3,2]"));
  CHECK_THAT(text, ContainsSubstring("matmul(%x, %w)"));
  CHECK_THAT(text, ContainsSubstring("output \"y\" ="));
  CHECK_THAT(to_text(small_graph().bind({{"N", 2}})), ContainsSubstring(": f32[2,2]"));
}
