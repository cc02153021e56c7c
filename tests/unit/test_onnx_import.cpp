// What the importer makes of models: names, dimensions, and old forms brought into the newest one.
// Results are checked by the ops' references.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "tests/support/onnx_model.hpp"

using namespace turnout;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::of(shape, values);
}

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of(shape, values);
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto wide = to_double(tensor);
  return {wide.begin(), wide.end()};
}

// A model of one node with input "x" and output "y".
OnnxModel one(std::int64_t opset, const std::string& op, const Shape& x,
              const std::vector<std::string>& inputs = {"x"}) {
  OnnxModel model(opset);
  model.input("x", DType::f32, std::vector<OnnxModel::DimValue>(x.begin(), x.end())).output("y");
  model.node(op, inputs, {"y"});
  return model;
}
onnx::NodeProto& node_of(OnnxModel& model) { return *model.graph().mutable_node(0); }

}  // namespace

TEST_CASE("values, nodes and dimensions keep or get their names") {
  OnnxModel model;
  model.input("x", DType::f32, {std::string("batch"), std::string(), std::int64_t{4}});
  model.input("w", DType::f32, {std::int64_t{4}}).output("out");
  model.initializer("w", floats({4}, {1, 2, 3, 4}));
  model.node("Mul", {"x", "w"}, {"scaled"});
  model.node("Relu", {"scaled"}, {"out"}).set_name("activation");
  const Graph graph = model.import();
  REQUIRE(graph.inputs().size() == 1);  // w is a constant
  CHECK(graph.value(graph.inputs()[0]).name == "x");
  CHECK(graph.symbols() == std::vector<std::string>{"batch", "x_dim1"});
  CHECK(graph.value(*graph.find_value("w")).kind == ValueKind::constant);
  CHECK(graph.find_node("scaled").has_value());
  CHECK(graph.find_node("activation").has_value());
  CHECK(graph.find_value("scaled").has_value());
  CHECK(graph.output_names()[0] == "out");
}

TEST_CASE("a dimension called ? has no name") {
  OnnxModel model;
  model.input("x", DType::f32, {std::string("?"), std::string("?")}).output("x");
  CHECK(model.import().symbols() == std::vector<std::string>{"x_dim0", "x_dim1"});
}

TEST_CASE("made-up names avoid the model's own") {
  OnnxModel model(11);
  model.input("x", DType::f32, {std::int64_t{2}, std::int64_t{3}}).output("y").output("y/axes");
  set_attr(model.node("ReduceSum", {"x"}, {"y"}), "axes", std::vector<std::int64_t>{1});
  model.node("Relu", {"x"}, {"y/axes"});
  const Graph graph = model.import();
  CHECK(graph.value(*graph.find_value("y/axes")).kind == ValueKind::computed);
  CHECK(graph.find_value("y/axes_1").has_value());
}

TEST_CASE("nodes in any order are sorted") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{2}}).output("c");
  model.node("Neg", {"b"}, {"c"});
  model.node("Relu", {"a"}, {"b"});
  model.node("Neg", {"x"}, {"a"});
  CHECK(values_of(model.run({floats({2}, {-1, 2})})[0]) == std::vector<float>{-1, 0});
}

TEST_CASE("an input or an initializer may be an output") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{1}}).output("x").output("w");
  model.initializer("w", floats({1}, {7}));
  const auto outputs = model.run({floats({1}, {3})});
  CHECK(values_of(outputs[0]) == std::vector<float>{3});
  CHECK(values_of(outputs[1]) == std::vector<float>{7});
}

TEST_CASE("inputs may be given as constants") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{4}}).input("shape", DType::i64, {std::int64_t{2}});
  model.output("y").node("Reshape", {"x", "shape"}, {"y"});
  ImportOptions options;
  options.constants["shape"] = Tensor::of(Shape{2}, std::vector<std::int64_t>{2, 2});
  const Graph graph = import_onnx(model.bytes(), std::filesystem::path(), options);
  REQUIRE(graph.inputs().size() == 1);
  CHECK(interpret(graph, {counting({4})})[0].shape() == Shape{2, 2});
}

TEST_CASE("Softmax before opset 13 normalizes all dimensions from its axis on") {
  const Shape shape{2, 3, 4};
  const Tensor x = counting(shape);
  for (const std::int64_t axis : {-3, -2, -1, 0, 1, 2}) {
    OnnxModel model = one(11, "Softmax", shape);
    set_attr(node_of(model), "axis", axis);
    const Tensor y = model.run({x})[0];
    CHECK(y.shape() == shape);
    const auto rows = shape.elements(0, static_cast<int>(axis < 0 ? axis + 3 : axis));
    const auto values = values_of(y);
    const auto length = values.size() / static_cast<std::size_t>(rows);
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < length; ++i) sum += values[row * length + i];
      CHECK(std::abs(sum - 1) < 1e-6);
    }
  }
  // Without the attribute the axis is 1, later the last one.
  const auto first = values_of(one(11, "Softmax", shape).run({x})[0]);
  const auto last = values_of(one(13, "Softmax", shape).run({x})[0]);
  CHECK(first[11] > 0.6F);
  CHECK(first[3] < 1e-3F);
  CHECK(last[3] > 0.6F);
}

TEST_CASE("attributes of old opsets become inputs") {
  const Shape shape{2, 3, 4};
  const Tensor x = counting(shape);
  SECTION("ReduceSum axes") {
    OnnxModel model = one(11, "ReduceSum", shape);
    set_attr(node_of(model), "axes", std::vector<std::int64_t>{-1, 0});
    set_attr(node_of(model), "keepdims", std::int64_t{0});
    const Tensor y = model.run({x})[0];
    CHECK(y.shape() == Shape{3});
    CHECK(values_of(y) == std::vector<float>{60, 92, 124});
  }
  SECTION("ReduceMax of everything") {
    const Tensor y = one(13, "ReduceMax", shape).run({x})[0];
    CHECK(y.shape() == Shape{1, 1, 1});
    CHECK(values_of(y) == std::vector<float>{23});
  }
  SECTION("Clip bounds") {
    OnnxModel model = one(6 + 1, "Clip", shape);
    set_attr(node_of(model), "max", 2.5F);
    CHECK(values_of(model.run({x})[0])[23] == 2.5F);
    CHECK(values_of(model.run({x})[0])[1] == 1);
  }
  SECTION("Slice") {
    OnnxModel model = one(9, "Slice", shape);
    set_attr(node_of(model), "starts", std::vector<std::int64_t>{1, -2});
    set_attr(node_of(model), "ends", std::vector<std::int64_t>{2, 1000});
    set_attr(node_of(model), "axes", std::vector<std::int64_t>{0, 2});
    const Tensor y = model.run({x})[0];
    CHECK(y.shape() == Shape{1, 3, 2});
    CHECK(values_of(y) == std::vector<float>{14, 15, 18, 19, 22, 23});
  }
  SECTION("Squeeze and Unsqueeze") {
    OnnxModel model(11);
    model.input("x", DType::f32, {std::int64_t{2}, std::int64_t{1}}).output("y");
    set_attr(model.node("Unsqueeze", {"x"}, {"u"}), "axes", std::vector<std::int64_t>{0, 3});
    set_attr(model.node("Squeeze", {"u"}, {"y"}), "axes", std::vector<std::int64_t>{2});
    CHECK(model.run({counting({2, 1})})[0].shape() == Shape{1, 2, 1});
  }
  SECTION("Pad") {
    OnnxModel model = one(10, "Pad", Shape{2});
    set_attr(node_of(model), "pads", std::vector<std::int64_t>{1, 2});
    set_attr(node_of(model), "value", 9.0F);
    CHECK(values_of(model.run({counting({2})})[0]) == std::vector<float>{9, 0, 1, 9, 9});
  }
  SECTION("TopK") {
    OnnxModel model = one(9, "TopK", Shape{4});
    node_of(model).add_output("where");
    set_attr(node_of(model), "k", std::int64_t{2});
    model.output("where");
    const auto outputs = model.run({floats({4}, {1, 5, 3, 4})});
    CHECK(values_of(outputs[0]) == std::vector<float>{5, 4});
    CHECK(values_of(outputs[1]) == std::vector<float>{1, 3});
  }
  SECTION("Split by sizes and in equal parts") {
    for (const bool sizes : {true, false}) {
      OnnxModel model = one(11, "Split", Shape{4});
      node_of(model).add_output("z");
      model.output("z");
      if (sizes) set_attr(node_of(model), "split", std::vector<std::int64_t>{1, 3});
      const auto outputs = model.run({counting({4})});
      CHECK(outputs[0].shape() == (sizes ? Shape{1} : Shape{2}));
      CHECK(outputs[1].shape() == (sizes ? Shape{3} : Shape{2}));
    }
  }
}

TEST_CASE("Split's parts that nothing reads still count") {
  OnnxModel model = one(13, "Split", Shape{6});
  node_of(model).add_output("z");
  node_of(model).add_output("unused");
  const auto outputs = model.run({counting({6})});
  CHECK(values_of(outputs[0]) == std::vector<float>{0, 1});
}

TEST_CASE("Max, Min, Sum and Mean take any number of inputs") {
  const std::vector<std::tuple<std::string, std::vector<float>, std::vector<float>>> cases{
      {"Max", {3, 20}, {1, 2}},
      {"Min", {1, 2}, {1, 2}},
      {"Sum", {6, 27}, {1, 2}},
      {"Mean", {2, 9}, {1, 2}}};
  for (const auto& [op, three, single] : cases) {
    OnnxModel model(13);
    for (const char* name : {"a", "b", "c"}) model.input(name, DType::f32, {std::int64_t{2}});
    model.output("y").output("z");
    model.node(op, {"a", "b", "c"}, {"y"});
    model.node(op, {"a"}, {"z"});
    const auto outputs =
        model.run({floats({2}, {1, 2}), floats({2}, {2, 20}), floats({2}, {3, 5})});
    INFO(op);
    CHECK(values_of(outputs[0]) == three);
    CHECK(values_of(outputs[1]) == single);
  }
}

TEST_CASE("constants in every form") {
  OnnxModel model(13);
  set_attr(model.node("Constant", {}, {"a"}), "value", floats({1, 2}, {1, 2}));
  set_attr(model.node("Constant", {}, {"b"}), "value_float", 2.5F);
  set_attr(model.node("Constant", {}, {"c"}), "value_floats", std::vector<float>{1, 2, 3});
  set_attr(model.node("Constant", {}, {"d"}), "value_int", std::int64_t{-4});
  set_attr(model.node("Constant", {}, {"e"}), "value_ints", std::vector<std::int64_t>{5, 6});
  set_attr(model.node("ConstantOfShape", {"e"}, {"f"}), "value",
           Tensor::of(Shape{1}, std::vector<std::int32_t>{8}));
  model.node("ConstantOfShape", {"e"}, {"g"});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) model.output(name);
  const auto outputs = model.run({});
  CHECK(outputs[0].spec() == TensorSpec{DType::f32, {1, 2}});
  CHECK(outputs[1].spec() == TensorSpec{DType::f32, {}});
  CHECK(outputs[2].spec() == TensorSpec{DType::f32, {3}});
  CHECK(outputs[3].spec() == TensorSpec{DType::i64, {}});
  CHECK(values_of(outputs[4]) == std::vector<float>{5, 6});
  CHECK(outputs[5].spec() == TensorSpec{DType::i32, {5, 6}});
  CHECK(values_of(outputs[5])[29] == 8);
  CHECK(outputs[6].spec() == TensorSpec{DType::f32, {5, 6}});
}

TEST_CASE("data in typed fields and in raw bytes is the same") {
  const DType dtype =
      GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16,
               DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean);
  onnx::TensorProto typed;
  typed.set_data_type(onnx_dtype(dtype));
  typed.add_dims(2);
  for (const int value : {0, 1}) {
    const auto wide = static_cast<float>(value);
    switch (dtype) {
      case DType::f32:
        typed.add_float_data(wide);
        break;
      case DType::f64:
        typed.add_double_data(wide);
        break;
      case DType::f16:
        typed.add_int32_data(Half(wide).bits);
        break;
      case DType::bf16:
        typed.add_int32_data(BFloat16(wide).bits);
        break;
      case DType::i64:
        typed.add_int64_data(value);
        break;
      case DType::u32:
      case DType::u64:
        typed.add_uint64_data(static_cast<std::uint64_t>(value));
        break;
      default:
        typed.add_int32_data(value);
        break;
    }
  }
  const Tensor tensor = to_tensor(typed, {}, "x");
  CHECK(to_double(tensor) == std::vector<double>{0, 1});
  CHECK(to_double(to_tensor(to_proto(tensor, "x"), {}, "x")) == std::vector<double>{0, 1});
}

TEST_CASE("Dropout passes its input on, and its mask is all ones") {
  for (const std::int64_t opset : {7, 10, 13}) {
    OnnxModel model = one(opset, "Dropout", Shape{3});
    node_of(model).add_output("mask");
    model.output("mask");
    if (opset < 12) set_attr(node_of(model), "ratio", 0.9F);
    const auto outputs = model.run({counting({3})});
    CHECK(values_of(outputs[0]) == std::vector<float>{0, 1, 2});
    CHECK(outputs[1].dtype() == (opset < 10 ? DType::f32 : DType::boolean));
    CHECK(values_of(outputs[1]) == std::vector<float>{1, 1, 1});
  }
  OnnxModel training = one(13, "Dropout", Shape{3}, {"x", "ratio", "training"});
  training.initializer("ratio", Tensor::scalar(0.5F)).initializer("training", Tensor::scalar(true));
  CHECK_THROWS_WITH(training.import(), ContainsSubstring("training_mode 1"));
}

TEST_CASE("BatchNormalization of old opsets") {
  const auto model = [](std::int64_t opset) {
    OnnxModel result = one(opset, "BatchNormalization", Shape{1, 2, 1}, {"x", "s", "b", "m", "v"});
    result.initializer("s", floats({2}, {2, 3})).initializer("b", floats({2}, {1, 0}));
    result.initializer("m", floats({2}, {1, 1})).initializer("v", floats({2}, {4, 1}));
    set_attr(node_of(result), "epsilon", 0.0F);
    set_attr(node_of(result), "momentum", 0.9F);
    return result;
  };
  OnnxModel old = model(7);
  set_attr(node_of(old), "spatial", std::int64_t{1});
  for (const OnnxModel& each : {old, model(9), model(15)}) {
    CHECK(values_of(each.run({floats({1, 2, 1}, {3, 3})})[0]) == std::vector<float>{3, 6});
  }
  OnnxModel training = model(15);
  set_attr(node_of(training), "training_mode", std::int64_t{1});
  CHECK_THROWS_WITH(training.import(), ContainsSubstring("training_mode 1"));
  OnnxModel unread = model(9);  // exported in training mode; nobody reads the further outputs
  node_of(unread).add_output("mean_out");
  CHECK(unread.run({floats({1, 2, 1}, {3, 3})}).size() == 1);
}

TEST_CASE("GroupNormalization before opset 21 has one scale a group") {
  OnnxModel model = one(18, "GroupNormalization", Shape{1, 4, 2}, {"x", "s", "b"});
  model.initializer("s", floats({2}, {1, 10})).initializer("b", floats({2}, {0, 100}));
  set_attr(node_of(model), "num_groups", std::int64_t{2});
  set_attr(node_of(model), "epsilon", 0.0F);
  const auto y = values_of(model.run({floats({1, 4, 2}, {-1, 1, -1, 1, -1, 1, -1, 1})})[0]);
  CHECK(y == std::vector<float>{-1, 1, -1, 1, 90, 110, 90, 110});
}

TEST_CASE("CastLike takes the type of its second input, also of a computed one") {
  OnnxModel model(19);
  model.input("x", DType::f32, {std::int64_t{2}}).input("i", DType::i32, {std::int64_t{1}});
  model.output("y").output("z");
  model.node("Neg", {"i"}, {"n"});
  model.node("Equal", {"x", "x"}, {"same"});
  model.node("CastLike", {"x", "n"}, {"y"});
  model.node("CastLike", {"x", "same"}, {"z"});
  const auto outputs =
      model.run({floats({2}, {1.7F, 0}), Tensor::of(Shape{1}, std::vector<std::int32_t>{1})});
  CHECK(outputs[0].dtype() == DType::i32);
  CHECK(outputs[1].dtype() == DType::boolean);
}

TEST_CASE("an If whose condition is known becomes its branch") {
  const auto model = [](bool condition) {
    OnnxModel result(13);
    result.input("x", DType::f32, {std::int64_t{2}}).output("y");
    result.initializer("condition", Tensor::scalar(condition));
    const auto branch = [](const char* op) {
      onnx::GraphProto graph;
      *graph.add_initializer() = to_proto(floats({1}, {10}), "ten");
      *graph.add_node() = OnnxModel::make_node(op, {"outside", "ten"}, {"inside"});
      graph.add_output()->set_name("inside");
      return graph;
    };
    auto& node = result.node("If", {"condition"}, {"y"});
    set_attr(node, "then_branch", branch("Mul"));
    set_attr(node, "else_branch", branch("Add"));
    result.node("Neg", {"x"}, {"outside"});  // after the node that captures it
    return result;
  };
  CHECK(values_of(model(true).run({floats({2}, {1, 2})})[0]) == std::vector<float>{-10, -20});
  CHECK(values_of(model(false).run({floats({2}, {1, 2})})[0]) == std::vector<float>{9, 8});

  OnnxModel dynamic = model(true);
  dynamic.graph().clear_initializer();
  dynamic.input("condition", DType::boolean, {});
  CHECK_THROWS_WITH(dynamic.import(), ContainsSubstring("control flow that depends on data"));
}

TEST_CASE("an If may depend on fixed dimensions") {
  const auto model = [](const OnnxModel::DimValue& columns) {
    OnnxModel result(13);
    result.input("x", DType::f32, {std::string("n"), std::int64_t{1}}).output("y");
    result.input("z", DType::f32, {columns});
    result.initializer("one", Tensor::of(Shape{1}, std::vector<std::int64_t>{1}));
    result.node("Shape", {"z"}, {"shape"});
    result.node("Equal", {"shape", "one"}, {"is_one"});
    const auto branch = [](const char* op) {
      onnx::GraphProto graph;
      *graph.add_node() = OnnxModel::make_node(op, {"x"}, {std::string(op) + "_x"});
      graph.add_output()->set_name(std::string(op) + "_x");
      return graph;
    };
    auto& node = result.node("If", {"is_one"}, {"y"});
    set_attr(node, "then_branch", branch("Neg"));
    set_attr(node, "else_branch", branch("Identity"));
    return result;
  };
  const Tensor x = floats({1, 1}, {5});
  CHECK(values_of(model(std::int64_t{1}).run({x, floats({1}, {0})})[0])[0] == -5);
  CHECK(values_of(model(std::int64_t{2}).run({x, floats({2}, {0, 0})})[0])[0] == 5);
  CHECK_THROWS_WITH(model(std::string("m")).import(), ContainsSubstring("depends on data"));
}

TEST_CASE("functions of the model are inlined, with their attributes") {
  OnnxModel model(13);
  model.input("x", DType::f32, {std::int64_t{2}}).output("y").output("z");
  auto* local = model.proto.add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  onnx::FunctionProto* function = model.proto.add_functions();
  function->set_name("Leak");
  function->set_domain("local");
  function->add_input("a");
  function->add_input("unused");
  function->add_output("b");
  function->add_attribute("slope");
  function->add_opset_import()->set_version(13);
  *function->add_node() = OnnxModel::make_node("Neg", {"a"}, {"t"});
  auto& leaky = *function->add_node() = OnnxModel::make_node("LeakyRelu", {"t"}, {"b"});
  auto* slope = leaky.add_attribute();
  slope->set_name("alpha");
  slope->set_type(onnx::AttributeProto::FLOAT);
  slope->set_ref_attr_name("slope");

  auto& call = model.node("Leak", {"x"}, {"t"});  // the body has a value of this name as well
  call.set_domain("local");
  set_attr(call, "slope", 0.5F);
  model.node("Leak", {"t"}, {"y"}).set_domain("local");
  model.node("Identity", {"t"}, {"z"});
  const auto outputs = model.run({floats({2}, {4, -6})});
  CHECK(values_of(outputs[1]) == std::vector<float>{-2, 6});
  CHECK(values_of(outputs[0])[0] == 2);
  CHECK(std::abs(values_of(outputs[0])[1] + 0.06F) < 1e-6);  // LeakyRelu's own default
}
