// Files that are wrong by accident or on purpose: one Error each, never a crash.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "runtime/io/file.hpp"
#include "runtime/io/tensor_pb.hpp"
#include "tests/support/onnx_model.hpp"

using namespace turnout;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path =
      fs::temp_directory_path() / fmt::format("turnout_onnx_{}", std::random_device()());
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
};

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string error_of(const OnnxModel& model) {
  try {
    model.import();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Two layers with weights, a shape computed in the graph, and an If.
OnnxModel small_model() {
  OnnxModel model(13);
  model.input("x", DType::f32, {"N", std::int64_t{4}}).output("y");
  model.initializer("w", Tensor::zeros({DType::f32, {4, 3}}));
  model.initializer("flag", Tensor::scalar(true));
  model.node("MatMul", {"x", "w"}, {"h"}).set_name("first");
  model.node("Relu", {"h"}, {"r"});
  set_attr(model.node("Softmax", {"r"}, {"s"}), "axis", std::int64_t{1});
  model.node("Shape", {"s"}, {"shape"});
  model.node("Reshape", {"s", "shape"}, {"t"});
  onnx::GraphProto branch;
  *branch.add_node() = OnnxModel::make_node("Identity", {"t"}, {"b"});
  branch.add_output()->set_name("b");
  auto& condition = model.node("If", {"flag"}, {"y"});
  set_attr(condition, "then_branch", branch);
  set_attr(condition, "else_branch", branch);
  return model;
}

// Imports and, where that works, runs; only Errors may come out.
bool import_and_run(const std::string& bytes) {
  try {
    const Graph graph = import_onnx(bytes, std::filesystem::path());
    std::vector<Tensor> inputs;
    for (ValueId id : graph.inputs()) {
      std::vector<std::int64_t> dims;
      for (const Dim& dim : graph.value(id).dims) dims.push_back(dim.fixed() ? dim.size : 2);
      if (Shape(dims).elements() > 1 << 16) return true;
      inputs.push_back(Tensor::zeros({graph.value(id).spec.dtype, Shape(dims)}));
    }
    interpret(graph, inputs);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void set_external(OnnxModel& model,
                  const std::vector<std::pair<std::string, std::string>>& fields) {
  onnx::TensorProto* weights = model.graph().mutable_initializer(0);
  weights->clear_raw_data();
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : fields) {
    auto* entry = weights->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

std::string error_in(const Folder& folder, const OnnxModel& model) {
  write(folder.path / "model.onnx", model.bytes());
  try {
    import_onnx(folder.path / "model.onnx");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the model that the other tests spoil works") {
  CHECK(import_and_run(small_model().bytes()));
}

TEST_CASE("a file cut short is an error") {
  const std::string whole = small_model().bytes();
  for (int part = 0; part < 50; ++part) {
    const std::string cut = whole.substr(0, whole.size() * static_cast<std::size_t>(part) / 50);
    CHECK_THROWS_AS(import_onnx(cut, std::filesystem::path()), Error);
  }
}

TEST_CASE("real models cut short are errors too") {
  const char* folder = std::getenv("TURNOUT_MODELS");
  const fs::path file = fs::path(folder == nullptr ? "build/models" : folder) / "digits-mlp.onnx";
  if (!fs::exists(file)) SKIP("there is no " << file.string());
  const std::string whole = read_file(file, 1 << 28);
  for (int part = 0; part < 50; ++part) {
    const std::string cut = whole.substr(0, whole.size() * static_cast<std::size_t>(part) / 50);
    CHECK_THROWS_AS(import_onnx(cut, std::filesystem::path()), Error);
  }
}

TEST_CASE("flipped bits never crash") {
  const std::string whole = small_model().bytes();
  const unsigned seed = 20240;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  int imported = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string altered = whole;
    for (int flips = 0; flips < 1 + i % 5; ++flips) {
      altered[random() % altered.size()] ^= static_cast<char>(1 << random() % 8);
    }
    imported += import_and_run(altered) ? 1 : 0;
  }
  CHECK(imported < 4000);
}

TEST_CASE("bytes replaced, repeated and removed never crash") {
  const std::string whole = small_model().bytes();
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string altered = whole;
    const std::size_t at = random() % whole.size();
    const std::size_t length = std::min<std::size_t>(random() % 16, whole.size() - at);
    if (i % 3 == 0) altered.erase(at, length);
    if (i % 3 == 1) altered.insert(at, altered.substr(at, length));
    if (i % 3 == 2) altered.replace(at, length, std::string(length, '\xff'));
    import_and_run(altered);
  }
}

TEST_CASE("something else than a model is an error") {
  CHECK_THROWS_WITH(import_onnx(std::string(1000, '\xff'), std::filesystem::path()),
                    ContainsSubstring("not well-formed"));
  CHECK_THROWS_WITH(import_onnx(std::string(), std::filesystem::path()),
                    ContainsSubstring("no graph"));
  CHECK_THROWS_WITH(import_onnx(fs::path("/nowhere/model.onnx")),
                    ContainsSubstring("there is no file '/nowhere/model.onnx'"));
  CHECK_THROWS_WITH(import_onnx(fs::temp_directory_path()), ContainsSubstring("is not a file"));
}

TEST_CASE("a cycle is an error that names its nodes") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{2}}).output("c");
  model.node("Relu", {"x"}, {"before"});
  model.node("Add", {"before", "c"}, {"a"}).set_name("first");
  model.node("Relu", {"a"}, {"b"}).set_name("second");
  model.node("Relu", {"b"}, {"c"}).set_name("third");
  model.node("Relu", {"c"}, {"after"});
  const std::string message = error_of(model);
  CHECK_THAT(message, ContainsSubstring("form a cycle"));
  for (const char* name : {"'first'", "'second'", "'third'"}) {
    CHECK_THAT(message, ContainsSubstring(name));
  }
  CHECK(message.find("'before'") == std::string::npos);
  CHECK(message.find("'after'") == std::string::npos);

  OnnxModel self;
  self.output("y").node("Relu", {"y"}, {"y"});
  CHECK_THAT(error_of(self), ContainsSubstring("nodes 'y' form a cycle"));
}

TEST_CASE("names that are missing or used twice are errors") {
  OnnxModel undefined;
  undefined.output("y").node("Relu", {"nothing"}, {"y"});
  CHECK_THAT(error_of(undefined), ContainsSubstring("node 'y': input 'nothing' is not defined"));

  OnnxModel twice;
  twice.input("x", DType::f32, {std::int64_t{2}}).output("y");
  twice.node("Relu", {"x"}, {"y"}).set_name("a");
  twice.node("Abs", {"x"}, {"y"}).set_name("b");
  CHECK_THAT(error_of(twice), ContainsSubstring("'y' is defined by node 'a' and by node 'b'"));

  OnnxModel input_again;
  input_again.input("x", DType::f32, {std::int64_t{2}}).output("x").node("Relu", {"x"}, {"x"});
  CHECK_THROWS_AS(input_again.import(), Error);

  OnnxModel two_inputs;
  two_inputs.input("x", DType::f32, {}).input("x", DType::f32, {}).output("x");
  CHECK_THAT(error_of(two_inputs), ContainsSubstring("input 'x' is defined twice"));

  OnnxModel no_output;
  no_output.input("x", DType::f32, {}).output("y");
  CHECK_THAT(error_of(no_output), ContainsSubstring("output 'y' is never computed"));

  OnnxModel unreadable;
  unreadable.input("x", DType::f32, {}).output("y").node("Relu", {"x"}, {"\xff\xfe"});
  CHECK_THAT(error_of(unreadable), ContainsSubstring("not readable text"));
}

TEST_CASE("unknown ops, domains, opsets and missing ops are errors that name them") {
  OnnxModel unknown;
  unknown.input("x", DType::f32, {}).output("y").node("Foo", {"x"}, {"y"}).set_name("n");
  CHECK_THAT(error_of(unknown),
             ContainsSubstring("node 'n': op 'Foo' (domain '', opset 13) is not supported"));

  OnnxModel other = unknown;
  other.graph().mutable_node(0)->set_domain("com.example");
  CHECK_THAT(error_of(other), ContainsSubstring("domain 'com.example', which isn't imported"));
  auto* import = other.proto.add_opset_import();
  import->set_domain("com.example");
  import->set_version(3);
  CHECK_THAT(error_of(other), ContainsSubstring("op 'Foo' (domain 'com.example', opset 3)"));

  OnnxModel loop;
  loop.input("x", DType::f32, {}).output("y").node("Loop", {"", "", "x"}, {"y"});
  CHECK_THAT(error_of(loop), ContainsSubstring("op 'Loop' (domain '', opset 13) is not supported: "
                                               "control flow that depends on data"));

  OnnxModel unnamed;
  unnamed.input("x", DType::f32, {}).output("y").node("", {"x"}, {"y"});
  CHECK_THAT(error_of(unnamed), ContainsSubstring("node 'y' has no op"));

  for (const std::int64_t opset : {std::int64_t{6}, kNewestOpset + 1, std::int64_t{-3}}) {
    CHECK_THAT(error_of(OnnxModel(opset)),
               ContainsSubstring(fmt::format("opset {} is not", opset)));
  }
  OnnxModel none;
  none.proto.clear_opset_import();
  CHECK_THAT(error_of(none), ContainsSubstring("imports no opset"));
}

TEST_CASE("attributes that mean nothing here are errors, never ignored") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{2}}).output("y");
  set_attr(model.node("Relu", {"x"}, {"y"}), "speed", std::int64_t{9});
  CHECK_THAT(error_of(model), ContainsSubstring("attribute 'speed'"));

  OnnxModel wrong;
  wrong.input("x", DType::f32, {std::int64_t{2}}).output("y");
  set_attr(wrong.node("Softmax", {"x"}, {"y"}), "axis", "one");
  CHECK_THAT(error_of(wrong), ContainsSubstring("attribute 'axis' has the wrong type"));
}

TEST_CASE("dimensions that don't go with the data take no memory") {
  const auto with_dims = [](const std::vector<std::int64_t>& dims) {
    OnnxModel model = small_model();
    onnx::TensorProto* weights = model.graph().mutable_initializer(0);
    weights->clear_dims();
    for (std::int64_t dim : dims) weights->add_dims(dim);
    return model;
  };
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK_THAT(error_of(with_dims({huge})), ContainsSubstring("initializer 'w': 48 bytes of data"));
  CHECK_THAT(error_of(with_dims({huge, huge})), ContainsSubstring("shape with more than"));
  CHECK_THAT(error_of(with_dims({-1})), ContainsSubstring("negative dimension"));
  CHECK_THAT(error_of(with_dims(std::vector<std::int64_t>(9, 1))), ContainsSubstring("rank 9"));

  OnnxModel typed = with_dims({huge});
  onnx::TensorProto* weights = typed.graph().mutable_initializer(0);
  weights->clear_raw_data();
  weights->add_float_data(1);
  CHECK_THAT(error_of(typed), ContainsSubstring("1 elements of data"));
  weights->clear_float_data();
  CHECK_THAT(error_of(typed), ContainsSubstring("0 elements of data"));

  OnnxModel text = small_model();
  text.graph().mutable_initializer(0)->set_data_type(onnx::TensorProto::STRING);
  CHECK_THAT(error_of(text), ContainsSubstring("elements of type STRING are not supported"));
  text.graph().mutable_initializer(0)->set_data_type(12345);
  CHECK_THAT(error_of(text), ContainsSubstring("number 12345"));
}

TEST_CASE("external data is found beside the model, at its offset") {
  const Folder folder;
  OnnxModel model = small_model();
  std::vector<float> weights(12, 0.5F);
  const Tensor tensor = Tensor::of(Shape{4, 3}, weights);
  fs::create_directory(folder.path / "sub");
  write(folder.path / "sub" / "data.bin",
        "12345678" + std::string(static_cast<const char*>(tensor.address()), tensor.bytes()));
  set_external(model, {{"location", "sub/data.bin"}, {"offset", "8"}, {"length", "48"}});
  REQUIRE(error_in(folder, model) == "");
  const Graph graph = import_onnx(folder.path / "model.onnx");
  CHECK(graph.value(*graph.find_value("w")).known.values<float>()[11] == 0.5F);
  CHECK_THAT(error_of(model), ContainsSubstring("the model has no folder"));  // from memory
}

TEST_CASE("external data that is missing, too short or elsewhere is an error") {
  const Folder folder, outside;
  write(folder.path / "data.bin", std::string(48, '\0'));
  fs::create_directory(folder.path / "sub");
  write(outside.path / "secret.bin", std::string(48, '\0'));
  fs::create_symlink(outside.path / "secret.bin", folder.path / "link.bin");
  fs::create_directory_symlink(outside.path, folder.path / "linked");
  const std::string up = "../" + outside.path.filename().string() + "/secret.bin";
  const std::vector<std::tuple<std::string, std::string, std::string, std::string>> cases{
      {"none.bin", "0", "48", "external data 'none.bin' is missing"},
      {"data.bin", "1", "48", "are not in it"},
      {"data.bin", "18446744073709551615", "48", "are not in it"},
      {"data.bin", "-1", "48", "is not an offset"},
      {"data.bin", "0", "47", "47 bytes of external data"},
      {"data.bin", "0", "99999999999999999999", "is not an offset"},
      {"", "0", "48", "no usable name"},
      {".", "0", "48", "outside of the model's folder"},
      {"sub", "0", "48", "is not a file"},
      {(outside.path / "secret.bin").string(), "0", "48", "absolute path"},
      {up, "0", "48", "outside of the model's folder"},
      {"sub/../../x", "0", "48", "outside of the model's folder"},
      {"link.bin", "0", "48", "outside of the model's folder"},
      {"linked/secret.bin", "0", "48", "outside of the model's folder"},
  };
  for (const auto& [location, offset, length, message] : cases) {
    OnnxModel model = small_model();
    set_external(model, {{"location", location}, {"offset", offset}, {"length", length}});
    INFO(location << " at " << offset);
    CHECK_THAT(error_in(folder, model), ContainsSubstring(message));
  }
}

TEST_CASE("functions that call themselves end in an error") {
  OnnxModel model;
  model.input("x", DType::f32, {}).output("y").node("F", {"x"}, {"y"}).set_domain("local");
  const auto add_function = [&](const std::string& name, const std::string& calls, int times) {
    onnx::FunctionProto* function = model.proto.add_functions();
    function->set_name(name);
    function->set_domain("local");
    function->add_input("a");
    function->add_output(fmt::format("v{}", times));
    function->add_opset_import()->set_version(13);
    for (int i = 0; i < times; ++i) {
      auto& node = *function->add_node() = OnnxModel::make_node(
          calls, {i == 0 ? "a" : fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)});
      if (calls != "Relu") node.set_domain("local");
    }
  };
  add_function("F", "F", 1);
  CHECK_THAT(error_of(model), ContainsSubstring("too deep"));

  model.proto.clear_functions();  // 32 to the 6th nodes from a few hundred bytes
  add_function("F", "F1", 32);
  for (int i = 1; i < 5; ++i) add_function(fmt::format("F{}", i), fmt::format("F{}", i + 1), 32);
  add_function("F5", "Relu", 32);
  CHECK_THAT(error_of(model), ContainsSubstring("nodes"));
}

TEST_CASE("graphs nested too deep are an error") {
  onnx::GraphProto inner;
  inner.add_output()->set_name("x");
  for (int i = 0; i < 200; ++i) {
    onnx::GraphProto outer;
    auto& node = *outer.add_node() = OnnxModel::make_node("If", {"flag"}, {"x"});
    set_attr(node, "then_branch", inner);
    outer.add_output()->set_name("x");
    inner = outer;
    if (i == 12) {
      OnnxModel model;
      model.graph() = inner;
      CHECK_THROWS_AS(model.import(), Error);
    }
  }
  OnnxModel model;
  model.graph() = inner;
  CHECK_THAT(error_of(model), ContainsSubstring("not well-formed"));
}

TEST_CASE("input types without tensors are refused by name") {
  OnnxModel model;
  model.input("x", DType::f32, {}).output("x");
  auto* type = model.graph().mutable_input(0)->mutable_type();
  type->mutable_sequence_type()->mutable_elem_type();
  CHECK_THAT(error_of(model), ContainsSubstring("input 'x' is not a tensor"));
  type->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  CHECK_THAT(error_of(model), ContainsSubstring("number of dimensions"));
  type->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(-5);
  CHECK_THAT(error_of(model), ContainsSubstring("dimension -5"));
}
