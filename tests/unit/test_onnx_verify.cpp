// The runner of ONNX test folders has to notice what is wrong.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "runtime/io/file.hpp"
#include "runtime/io/tensor_pb.hpp"
#include "runtime/onnx/verify.hpp"
#include "tests/support/onnx_model.hpp"

using namespace turnout;
using Catch::Matchers::ContainsSubstring;
using Status = VerifyResult::Status;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path =
      fs::temp_directory_path() / fmt::format("turnout_verify_{}", std::random_device()());
  explicit Folder(const OnnxModel& model) {
    fs::create_directories(path / "test_data_set_0");
    const std::string bytes = model.bytes();
    const std::string_view parts[] = {bytes};
    write_file(path / "model.onnx", parts);
  }
  ~Folder() { fs::remove_all(path); }
  void put(const std::string& name, const Tensor& tensor) const {
    save_tensor_pb(path / "test_data_set_0" / name, tensor, name);
  }
  VerifyResult verify() const { return verify_onnx(path, interpret); }
};

Tensor floats(const std::vector<float>& values) {
  return Tensor::of(Shape{static_cast<std::int64_t>(values.size())}, values);
}
Tensor integers(const std::vector<std::int64_t>& values) {
  return Tensor::of(Shape{static_cast<std::int64_t>(values.size())}, values);
}

OnnxModel negation() {
  OnnxModel model;
  model.input("x", DType::f32, {std::string("n")}).output("y").node("Neg", {"x"}, {"y"});
  return model;
}

}  // namespace

TEST_CASE("a folder passes, fails or is unsupported") {
  Folder folder(negation());
  CHECK(folder.verify().status == Status::failed);  // no files yet
  folder.put("input_0.pb", floats({1, 2}));
  CHECK_THAT(folder.verify().reason, ContainsSubstring("1 outputs, 0 expected"));
  folder.put("output_0.pb", floats({-1, -2}));
  CHECK(folder.verify().status == Status::passed);
  folder.put("output_0.pb", floats({-1, -2.1F}));
  CHECK(folder.verify().status == Status::failed);
  CHECK_THAT(folder.verify().reason, ContainsSubstring("output 'y': 1 of 2 elements differ"));
  folder.put("output_0.pb", integers({-1, -2}));
  CHECK_THAT(folder.verify().reason, ContainsSubstring("f32[2], expected i64[2]"));
  folder.put("output_0.pb", floats({-1, -2, -3}));
  CHECK(folder.verify().status == Status::failed);

  OnnxModel unknown = negation();
  unknown.graph().mutable_node(0)->set_op_type("Foo");
  Folder other(unknown);
  other.put("input_0.pb", floats({1}));
  CHECK(other.verify().status == Status::unsupported);
  CHECK_THAT(other.verify().reason, ContainsSubstring("op 'Foo'"));

  CHECK(verify_onnx("/nowhere", interpret).status == Status::failed);
}

TEST_CASE("every data set of a folder counts") {
  Folder folder(negation());
  folder.put("input_0.pb", floats({1}));
  folder.put("output_0.pb", floats({-1}));
  fs::create_directory(folder.path / "test_data_set_1");
  save_tensor_pb(folder.path / "test_data_set_1" / "input_0.pb", floats({1}), "x");
  save_tensor_pb(folder.path / "test_data_set_1" / "output_0.pb", floats({1}), "y");
  CHECK(folder.verify().status == Status::failed);
}

TEST_CASE("what counts as different") {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const auto differ = [](const Tensor& a, const Tensor& b) {
    return !difference(a, b, 1e-3, 1e-7).empty();
  };
  CHECK_FALSE(differ(floats({1000, nan, infinity}), floats({1000.9F, nan, infinity})));
  CHECK(differ(floats({1000}), floats({1001.1F})));
  CHECK(differ(floats({nan}), floats({1})));
  CHECK(differ(floats({1}), floats({nan})));
  CHECK(differ(floats({infinity}), floats({-infinity})));
  CHECK(differ(floats({1e30F}), floats({infinity})));
  CHECK(differ(floats({infinity}), floats({1e30F})));
  CHECK(differ(floats({1e-6F}), floats({0})));
  const std::int64_t large = (std::int64_t{1} << 60) + 1;  // as doubles they would be the same
  CHECK(differ(integers({large}), integers({large - 1})));
  CHECK_FALSE(differ(integers({large}), integers({large})));
}

TEST_CASE("inputs that decide shapes and branches are given to the importer") {
  OnnxModel model;
  model.input("x", DType::f32, {std::int64_t{4}}).input("shape", DType::i64, {std::int64_t{2}});
  model.input("flag", DType::boolean, {}).output("y");
  model.node("Neg", {"shape"}, {"less"});
  model.node("Neg", {"less"}, {"same"});
  model.node("Reshape", {"x", "same"}, {"r"});
  onnx::GraphProto keep, negate;
  *keep.add_node() = OnnxModel::make_node("Identity", {"r"}, {"k"});
  keep.add_output()->set_name("k");
  *negate.add_node() = OnnxModel::make_node("Neg", {"r"}, {"m"});
  negate.add_output()->set_name("m");
  auto& node = model.node("If", {"flag"}, {"y"});
  set_attr(node, "then_branch", keep);
  set_attr(node, "else_branch", negate);
  Folder folder(model);
  folder.put("input_0.pb", floats({1, 2, 3, 4}));
  folder.put("input_1.pb", integers({2, 2}));
  folder.put("input_2.pb", Tensor::scalar(false));
  folder.put("output_0.pb", floats({-1, -2, -3, -4}).reshaped({2, 2}));
  const VerifyResult result = folder.verify();
  INFO(result.reason);
  CHECK(result.status == Status::passed);
}

TEST_CASE("inputs of another shape or type than declared are refused by name") {
  OnnxModel model;
  model.input("x", DType::f32, {std::string("n"), std::int64_t{3}}).output("y");
  model.input("z", DType::f32, {std::string("n")}).node("Neg", {"x"}, {"y"});
  const Graph graph = model.import();
  const auto given = [](const Shape& x, const Shape& z, DType dtype = DType::f32) {
    return std::vector<Tensor>{Tensor::zeros({dtype, x}), Tensor::zeros({DType::f32, z})};
  };
  CHECK(bindings_from(graph, given({2, 3}, {2})).at("n") == 2);
  CHECK_THROWS_WITH(bindings_from(graph, given({2, 4}, {2})),
                    ContainsSubstring("input 'x': f32[2,4] given, size 3 needed at axis 1"));
  CHECK_THROWS_WITH(bindings_from(graph, given({2, 3}, {5})),
                    ContainsSubstring("input 'z': f32[5] given, size 2 needed at axis 0"));
  CHECK_THROWS_WITH(bindings_from(graph, given({2}, {2})),
                    ContainsSubstring("2 dimensions needed"));
  CHECK_THROWS_WITH(bindings_from(graph, given({2, 3}, {2}, DType::f64)),
                    ContainsSubstring("f32 needed"));
  CHECK_THROWS_WITH(bindings_from(graph, {}), ContainsSubstring("0 tensors for 2 inputs"));
}
