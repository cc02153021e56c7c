#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

#include "core/graph.hpp"
#include "ops/all_ops.hpp"
#include "ops/conv.hpp"
#include "ops/matmul.hpp"

using namespace turnout;
using Catch::Matchers::Approx;
using Catch::Matchers::ContainsSubstring;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor f32(const Shape& shape, const Floats& values) { return Tensor::of<float>(shape, values); }

Tensor counting(const Shape& shape, float first = 0) {
  Tensor tensor = Tensor::empty({DType::f32, shape});
  for (float& v : tensor.values<float>()) v = first++;
  return tensor;
}

// Outputs of one node by its reference.
std::vector<Tensor> run(std::string_view op, const std::vector<Tensor>& inputs,
                        const AttrMap& attrs = {}, std::size_t outputs = 1) {
  GraphBuilder builder(all_ops(), "test");
  std::vector<ValueId> ids;
  for (const Tensor& tensor : inputs) {
    ids.push_back(tensor.defined() ? builder.constant(tensor) : ValueId{});
  }
  const std::vector<std::string> names(outputs);
  builder.output(builder.add_node(all_ops().get(op), ids, attrs, "node", names)[0]);
  const Graph graph = builder.build().bind({});
  const NodeInfo info = graph.info(NodeId{0});
  return evaluate(info, info.constants);
}

Floats values(const Tensor& tensor) {
  const auto span = tensor.values<float>();
  return {span.begin(), span.end()};
}

// Bound graph of one node whose inputs have the given specs.
Graph node_graph(std::string_view op, const std::vector<TensorSpec>& inputs, const AttrMap& attrs) {
  GraphBuilder builder(all_ops(), "test");
  std::vector<ValueId> ids;
  for (const TensorSpec& spec : inputs) {
    ids.push_back(builder.input("x", spec.dtype, {spec.shape.begin(), spec.shape.end()}));
  }
  const std::vector<std::string> names(1);
  builder.output(builder.add_node(all_ops().get(op), ids, attrs, "the_node", names)[0]);
  return builder.build().bind({});
}

Shape inferred(std::string_view op, const std::vector<TensorSpec>& inputs,
               const AttrMap& attrs = {}) {
  const Graph graph = node_graph(op, inputs, attrs);
  return graph.value(graph.nodes()[0].outputs[0]).spec.shape;
}

// The message must name op, node and `reason`.
void check_refused(std::string_view op, const std::vector<TensorSpec>& inputs, const AttrMap& attrs,
                   const std::string& reason) {
  INFO(op << " should be refused: " << reason);
  try {
    node_graph(op, inputs, attrs);
    FAIL_CHECK("was taken");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring(std::string(op)));
    CHECK_THAT(error.what(), ContainsSubstring("the_node"));
    CHECK_THAT(error.what(), ContainsSubstring(reason));
  }
}

TensorSpec spec(const Shape& shape, DType dtype = DType::f32) { return {dtype, shape}; }

}  // namespace

TEST_CASE("matmul multiplies, broadcasts and fuses") {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4});
  const Tensor b = f32({2, 2}, {5, 6, 7, 8});
  CHECK(values(run("matmul", {a, b})[0]) == Floats{19, 22, 43, 50});
  CHECK(values(run("matmul", {a, b}, {{"trans_a", std::int64_t{1}}})[0]) == Floats{26, 30, 38, 44});
  CHECK(values(run("matmul", {a, b}, {{"trans_b", std::int64_t{1}}})[0]) == Floats{17, 23, 39, 53});
  const Tensor bias = f32({2}, {-20, 1});
  const Tensor residual = f32({2, 2}, {0, 0, 100, -100});
  CHECK(values(run("matmul", {a, b, bias, residual}, {{"activation", std::string("relu")}})[0]) ==
        Floats{0, 23, 123, 0});
  CHECK(inferred("matmul", {spec({2, 1, 3, 4}), spec({5, 4, 6})}) == Shape{2, 5, 3, 6});
  CHECK(inferred("matmul", {spec({4}), spec({4})}) == Shape{});
  CHECK(inferred("matmul", {spec({4}), spec({7, 4, 6})}) == Shape{7, 6});
  CHECK(inferred("matmul", {spec({7, 3, 4}), spec({4})}) == Shape{7, 3});
}

TEST_CASE("matmul of integers is exact and wraps") {
  const auto big = std::int64_t{1} << 40;
  const Tensor a = Tensor::of<std::int64_t>({1, 2}, Ints{big, -3});
  const Tensor b = Tensor::of<std::int64_t>({2, 1}, Ints{(1 << 22) + 1, 5});
  CHECK(run("matmul", {a, b})[0].values<std::int64_t>()[0] == big * ((1 << 22) + 1) - 15);
  const Tensor c = Tensor::of<std::int64_t>({1, 1}, Ints{std::int64_t{1} << 62});
  const Tensor four = Tensor::of<std::int64_t>({1, 1}, Ints{4});
  CHECK(run("matmul", {c, four})[0].values<std::int64_t>()[0] == 0);
}

TEST_CASE("matmul folds shared batches into rows") {
  const Graph graph = node_graph("matmul", {spec({2, 3, 5, 4}), spec({4, 6})}, {});
  const Cost cost = cost_of(graph.info(NodeId{0}));
  CHECK(cost.gemm.batch == 1);
  CHECK(cost.gemm.m == 30);
  CHECK(cost.flops == 2.0 * 30 * 6 * 4);
  CHECK(cost.bytes_read == 4.0 * (120 + 24));
}

TEST_CASE("gemm becomes matmul with the same result") {
  GraphBuilder builder(all_ops(), "test");
  const ValueId a = builder.constant(f32({2, 2}, {1, 2, 3, 4}));
  const ValueId b = builder.constant(f32({2, 2}, {5, 6, 7, 8}));
  const ValueId c = builder.constant(f32({2}, {1, 2}));
  const AttrMap attrs = {{"alpha", 2.0}, {"beta", 1.0}, {"trans_b", std::int64_t{1}}};
  const std::vector<std::string> names(1);
  builder.output(builder.add_node(all_ops().get("gemm"), {a, b, c}, attrs, "g", names)[0]);
  const Graph graph = builder.build().bind({});
  GraphBuilder parts(all_ops(), "parts");
  std::vector<ValueId> ids;
  for (ValueId id : graph.nodes()[0].inputs) ids.push_back(parts.constant(graph.value(id).known));
  const auto result = graph.nodes()[0].op->decompose(graph.info(NodeId{0}), ids, parts);
  REQUIRE(result.size() == 1);
  parts.output(result[0]);
  const Graph bound = parts.build().bind({});
  CHECK(values(bound.value(result[0]).known) == Floats{35, 48, 79, 108});
}

TEST_CASE("matmul and gemm refuse operands that don't fit") {
  check_refused("matmul", {spec({2, 3}), spec({4, 5})}, {}, "inner dimensions");
  check_refused("matmul", {spec({}), spec({4, 5})}, {}, "scalar");
  check_refused("matmul", {spec({2, 3, 4}), spec({3, 4, 5})}, {}, "can't be broadcast");
  check_refused("matmul", {spec({2, 3}), spec({3, 5}), spec({4})}, {}, "bias");
  check_refused("matmul", {spec({2, 3}), spec({3, 5}), spec({5}), spec({2, 4})}, {}, "input 3");
  check_refused("matmul", {spec({3}), spec({3, 5}), spec({5})}, {}, "1-D");
  check_refused("matmul", {spec({2, 3}), spec({3, 5}, DType::f16)}, {}, "input 1");
  check_refused("matmul", {spec({2, 3}, DType::u8), spec({3, 5}, DType::u8)}, {}, "u8");
  check_refused("matmul", {spec({2, 3}), spec({3, 5})}, {{"activation", std::string("zap")}},
                "zap");
  const std::int64_t huge = std::int64_t{1} << 40;
  check_refused("matmul", {spec({huge, 1}), spec({1, huge})}, {}, "elements");
  check_refused("gemm", {spec({2, 3, 4}), spec({4, 5})}, {}, "matrix");
}

TEST_CASE("conv slides its window as ONNX says") {
  // The example of ONNX's documentation: 5x5 counting up, 3x3 of ones, pads 1.
  const Tensor x = counting({1, 1, 5, 5});
  const Tensor ones = f32({1, 1, 3, 3}, Floats(9, 1));
  CHECK(values(run("conv", {x, ones}, {{"pads", Ints{1, 1, 1, 1}}})[0]) ==
        Floats{12,  21, 27, 33,  24,  33,  54,  63, 72,  51,  63,  99, 108,
               117, 81, 93, 144, 153, 162, 111, 72, 111, 117, 123, 84});
  CHECK(values(run("conv", {x, ones})[0]) == Floats{54, 63, 72, 99, 108, 117, 144, 153, 162});
  const AttrMap same = {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 2}}};
  CHECK(values(run("conv", {x, ones}, same)[0]) == Floats{12, 27, 24, 63, 108, 81, 72, 117, 84});
  const AttrMap dilated = {{"dilations", Ints{2, 2}}};
  CHECK(values(run("conv", {x, ones}, dilated)[0]) == Floats{108});
}

TEST_CASE("conv places the odd pad by auto_pad") {
  const Tensor x = f32({1, 1, 3}, {1, 2, 3});
  const Tensor pick = f32({1, 1, 2}, {1, 10});
  CHECK(values(run("conv", {x, pick}, {{"auto_pad", std::string("SAME_UPPER")}})[0]) ==
        Floats{21, 32, 3});
  CHECK(values(run("conv", {x, pick}, {{"auto_pad", std::string("SAME_LOWER")}})[0]) ==
        Floats{10, 21, 32});
  CHECK(values(run("conv", {x, pick}, {{"auto_pad", std::string("VALID")}})[0]) == Floats{21, 32});
}

TEST_CASE("conv keeps groups apart") {
  const Tensor x = f32({1, 2, 2}, {1, 2, 3, 4});
  const Tensor w = f32({4, 1, 1}, {1, 10, 100, 1000});
  CHECK(values(run("conv", {x, w}, {{"group", std::int64_t{2}}})[0]) ==
        Floats{1, 2, 10, 20, 300, 400, 3000, 4000});
  const Tensor bias = f32({4}, {1, 2, 3, 4});
  CHECK(values(run("conv", {x, w, bias}, {{"group", std::int64_t{2}}})[0]) ==
        Floats{2, 3, 12, 22, 303, 403, 3004, 4004});
}

TEST_CASE("conv tells its implicit product") {
  const AttrMap attrs = {{"group", std::int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}};
  const Graph graph = node_graph("conv", {spec({3, 8, 5, 5}), spec({6, 4, 3, 3})}, attrs);
  const Cost cost = cost_of(graph.info(NodeId{0}));
  CHECK(cost.gemm.batch == 2);
  CHECK(cost.gemm.m == 3);
  CHECK(cost.gemm.n == 75);
  CHECK(cost.gemm.k == 36);
  CHECK(cost.flops == 2.0 * 2 * 3 * 75 * 36);
  const Tolerance wide = tolerance_of(graph.info(NodeId{0}), DType::f32);
  CHECK(wide.relative > tolerance_of(all_ops().get("conv"), DType::f32).relative);
}

TEST_CASE("convolutions refuse hostile attributes") {
  const std::vector<TensorSpec> fine = {spec({1, 4, 8, 8}), spec({6, 4, 3, 3})};
  for (const std::string op : {"conv", "conv_transpose"}) {
    const std::vector<TensorSpec> in = {spec({1, 4, 8, 8}), spec({4, 4, 3, 3})};
    check_refused(op, in, {{"strides", Ints{0, 1}}}, "strides");
    check_refused(op, in, {{"strides", Ints{1}}}, "strides");
    check_refused(op, in, {{"dilations", Ints{1, -1}}}, "dilations");
    check_refused(op, in, {{"pads", Ints{0, -1, 0, 0}}}, "pads");
    check_refused(op, in, {{"pads", Ints{0, 0}}}, "pads");
    check_refused(op, in, {{"group", std::int64_t{0}}}, "group");
    check_refused(op, in, {{"group", std::int64_t{3}}}, "group");
    check_refused(op, in, {{"auto_pad", std::string("same")}}, "auto_pad");
    check_refused(op, in, {{"kernel_shape", Ints{3, 2}}}, "kernel_shape");
    const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
    check_refused(op, in, {{"pads", Ints{huge, huge, huge, huge}}}, "pads");
    check_refused(op, in, {{"dilations", Ints{huge, huge}}}, "dilations");
  }
  check_refused("conv", {spec({1, 4, 2, 8}), spec({6, 4, 3, 3})}, {}, "larger than the padded");
  check_refused("conv", fine, {{"dilations", Ints{4, 4}}}, "larger than the padded");
  check_refused("conv", {spec({1, 4, 8, 8}), spec({6, 3, 3, 3})}, {}, "don't fit");
  check_refused("conv", {spec({1, 4, 8, 8}), spec({6, 4, 3})}, {}, "rank");
  check_refused("conv", {spec({1, 4}), spec({6, 4})}, {}, "rank");
  check_refused("conv", {fine[0], fine[1], spec({5})}, {}, "input 2");
  check_refused("conv", {fine[0], fine[1], spec({6}), spec({1, 6, 5, 6})}, {}, "input 3");
  check_refused("conv", {spec({1, 4, 8, 8}), spec({6, 4, 0, 3})}, {}, "kernel size");
  check_refused("conv", {spec({1, 4, 8}, DType::i32), spec({6, 4, 3}, DType::i32)}, {}, "i32");
  check_refused("conv", {spec({1, 4, 8}), spec({6, 4, 3}, DType::f64)}, {}, "f64");
  check_refused("conv_transpose", {spec({1, 4, 2, 2}), spec({4, 4, 1, 1})},
                {{"pads", Ints{2, 2, 2, 2}}}, "leave nothing");
}

TEST_CASE("conv_transpose follows ONNX's examples") {
  const Tensor x = counting({1, 1, 3, 3});
  const Tensor ones = f32({1, 2, 3, 3}, Floats(18, 1));
  const Floats once = {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                       27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8};
  Floats twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  CHECK(values(run("conv_transpose", {x, ones})[0]) == twice);
  CHECK(inferred("conv_transpose", {spec({1, 1, 3, 3}), spec({1, 2, 3, 3})},
                 {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}}) == Shape{1, 2, 10, 8});
  CHECK(inferred("conv_transpose", {spec({1, 1, 3, 3}), spec({1, 2, 3, 3})},
                 {{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 1}}}) == Shape{1, 2, 10, 8});
  CHECK(inferred("conv_transpose", {spec({1, 1, 3, 3}), spec({1, 2, 3, 3})},
                 {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}}) ==
        Shape{1, 2, 6, 6});
  CHECK(inferred("conv_transpose", {spec({1, 1, 3, 3}), spec({1, 2, 3, 3})},
                 {{"strides", Ints{3, 2}}, {"pads", Ints{1, 2, 1, 2}}}) == Shape{1, 2, 7, 3});
}

TEST_CASE("conv_transpose splits pads of a wanted output") {
  const Tensor x = f32({1, 1, 2}, {1, 2});
  const Tensor w = f32({1, 1, 2}, {1, 10});
  // Full result of stride 2: 1 10 2 20; one of the four goes.
  AttrMap attrs = {{"strides", Ints{2}}, {"output_shape", Ints{3}}};
  CHECK(values(run("conv_transpose", {x, w}, attrs)[0]) == Floats{10, 2, 20});
  attrs.set("auto_pad", std::string("SAME_UPPER"));
  CHECK(values(run("conv_transpose", {x, w}, attrs)[0]) == Floats{1, 10, 2});
}

TEST_CASE("max_pool gives values and indices") {
  const Tensor x = counting({1, 1, 4, 4}, 1);
  AttrMap attrs = {
      {"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", std::int64_t{1}}};
  auto out = run("max_pool", {x}, attrs, 2);
  CHECK(values(out[0]) == Floats{11, 12, 15, 16});
  CHECK(to_int64(out[1]) == Ints{10, 11, 14, 15});
  const Tensor y = counting({1, 1, 5, 5}, 1);
  attrs = {
      {"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"storage_order", std::int64_t{1}}};
  out = run("max_pool", {y}, attrs, 2);
  CHECK(values(out[0]) == Floats{7, 9, 17, 19});
  CHECK(to_int64(out[1]) == Ints{6, 16, 8, 18});
  attrs = {{"kernel_shape", Ints{3, 3}},
           {"strides", Ints{2, 2}},
           {"auto_pad", std::string("SAME_UPPER")}};
  CHECK(values(run("max_pool", {y}, attrs)[0]) == Floats{7, 9, 10, 17, 19, 20, 22, 24, 25});
}

TEST_CASE("max_pool ignores padding and spreads NaN") {
  const AttrMap attrs = {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}};
  CHECK(values(run("max_pool", {f32({1, 1, 4}, {-5, -4, -3, -2})}, attrs)[0]) ==
        Floats{-4, -3, -2, -2});
  CHECK(values(run("max_pool", {f32({1, 1, 3}, {-kInf, -kInf, -kInf})}, attrs)[0]) ==
        Floats{-kInf, -kInf, -kInf});
  const auto out = run("max_pool", {f32({1, 1, 5}, {kNan, 2, 9, 1, 0})}, attrs, 2);
  const Floats got = values(out[0]);
  CHECK(std::isnan(got[0]));
  CHECK(std::isnan(got[1]));
  CHECK((got[2] == 9 && got[3] == 9 && got[4] == 1));
  CHECK(to_int64(out[1]) == Ints{0, 0, 2, 2, 3});
}

TEST_CASE("a last window that would start in the padding is left out") {
  // 1 input, pads 1 and 1, kernel 2, stride 3: windows at -1 and, rounded up, at 2 (padding).
  CHECK(inferred("max_pool", {spec({1, 1, 1})},
                 {{"kernel_shape", Ints{2}},
                  {"strides", Ints{3}},
                  {"pads", Ints{1, 1}},
                  {"ceil_mode", std::int64_t{1}}}) == Shape{1, 1, 1});
  CHECK(inferred("average_pool", {spec({1, 1, 4, 4})},
                 {{"kernel_shape", Ints{3, 3}},
                  {"strides", Ints{2, 2}},
                  {"ceil_mode", std::int64_t{1}}}) == Shape{1, 1, 2, 2});
}

TEST_CASE("average_pool counts padding only when asked") {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4});
  AttrMap attrs = {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}};
  CHECK_THAT(values(run("average_pool", {x}, attrs)[0]), Approx(Floats{1.5F, 2, 3, 3.5F}));
  attrs.set("count_include_pad", std::int64_t{1});
  CHECK_THAT(values(run("average_pool", {x}, attrs)[0]), Approx(Floats{1, 2, 3, 7 / 3.0F}));
  // Windows 1 2 3 and 4, one pad, and one place behind it that doesn't count.
  attrs = {{"kernel_shape", Ints{3}},
           {"pads", Ints{0, 1}},
           {"strides", Ints{3}},
           {"ceil_mode", std::int64_t{1}},
           {"count_include_pad", std::int64_t{1}}};
  CHECK_THAT(values(run("average_pool", {x}, attrs)[0]), Approx(Floats{2, 2}));
}

TEST_CASE("norm and global pools") {
  const Tensor x = f32({1, 2, 2}, {3, -4, 5, 12});
  CHECK_THAT(values(run("lp_pool", {x}, {{"kernel_shape", Ints{2}}})[0]), Approx(Floats{5, 13}));
  CHECK_THAT(values(run("global_lp_pool", {x}, {{"p", std::int64_t{1}}})[0]),
             Approx(Floats{7, 17}));
  CHECK(values(run("global_average_pool", {x})[0]) == Floats{-0.5F, 8.5F});
  CHECK(values(run("global_max_pool", {x})[0]) == Floats{3, 12});
  CHECK(std::isnan(values(run("global_max_pool", {f32({1, 1, 3}, {1, kNan, 2})})[0])[0]));
  CHECK(run("global_average_pool", {f32({2, 1, 1, 2}, {1, 2, 3, 4})})[0].shape() ==
        Shape{2, 1, 1, 1});
}

TEST_CASE("pools refuse hostile attributes") {
  for (const std::string op : {"max_pool", "average_pool", "lp_pool"}) {
    const std::vector<TensorSpec> in = {spec({1, 2, 6, 6})};
    const Ints k = {3, 3};
    check_refused(op, in, {{"kernel_shape", Ints{0, 3}}}, "kernel size");
    check_refused(op, in, {{"kernel_shape", Ints{3}}}, "kernel");
    check_refused(op, in, {{"kernel_shape", Ints{7, 3}}}, "larger than the padded");
    check_refused(op, in, {{"kernel_shape", k}, {"strides", Ints{0, 0}}}, "strides");
    check_refused(op, in, {{"kernel_shape", k}, {"pads", Ints{3, 0, 0, 0}}}, "smaller than");
    check_refused(op, {spec({4, 4})}, {{"kernel_shape", Ints{}}}, "no spatial");
    check_refused(op, {spec({1, 2, 6, 6}, DType::i64)}, {{"kernel_shape", k}}, "i64");
  }
  check_refused("lp_pool", {spec({1, 2, 6})}, {{"kernel_shape", Ints{2}}, {"p", std::int64_t{0}}},
                "p has");
  check_refused("global_average_pool", {spec({3})}, {}, "no channels");
}

TEST_CASE("normalizations by hand") {
  const Tensor one = f32({1}, {1}), zero = f32({1}, {0});
  const Tensor x = f32({1, 1, 2}, {1, 3});  // mean 2, variance 1
  const AttrMap exact = {{"epsilon", 0.0}};
  const Tensor two = f32({1}, {2}), five = f32({1}, {5});
  CHECK(values(run("instance_normalization", {x, two, five}, exact)[0]) == Floats{3, 7});
  CHECK(values(run("batch_normalization", {x, two, five, one, f32({1}, {4})}, exact)[0]) ==
        Floats{5, 7});
  AttrMap groups = exact;
  groups.set("num_groups", std::int64_t{1});
  const Tensor pair = f32({1, 2, 1}, {1, 3});
  CHECK(values(run("group_normalization", {pair, f32({2}, {1, 10}), f32({2}, {0, 1})},
                   groups)[0]) == Floats{-1, 11});
  const auto layer = run("layer_normalization", {x, f32({2}, {1, 2})}, exact, 3);
  CHECK(values(layer[0]) == Floats{-1, 2});
  CHECK(values(layer[1]) == Floats{2});
  CHECK(values(layer[2]) == Floats{1});
  CHECK(layer[1].shape() == Shape{1, 1, 1});
  CHECK_THAT(values(run("rms_normalization", {f32({2}, {1, 7}), one}, exact)[0]),
             Approx(Floats{0.2F, 1.4F}));
  CHECK_THAT(values(run("mean_variance_normalization", {x}, {{"axes", Ints{2}}})[0]),
             Approx(Floats{-1, 1}));
  // size 2: a channel and the next one.
  const AttrMap lrn = {{"size", std::int64_t{2}}, {"alpha", 2.0}, {"beta", 1.0}, {"bias", 0.0}};
  CHECK_THAT(values(run("lrn", {f32({1, 3, 1}, {1, 2, 4})}, lrn)[0]),
             Approx(Floats{0.2F, 0.1F, 0.25F}));
}

TEST_CASE("normalizations refuse what doesn't fit") {
  const TensorSpec x = spec({2, 6, 4}), c = spec({6});
  check_refused("batch_normalization", {x, c, c, c, spec({5})}, {}, "input 4");
  check_refused("batch_normalization", {x, c, c, c, c}, {{"training_mode", std::int64_t{1}}},
                "training_mode");
  check_refused("instance_normalization", {x, spec({4}), c}, {}, "input 1");
  check_refused("instance_normalization", {spec({2, 6}), c, c}, {}, "rank");
  check_refused("group_normalization", {x, c, c}, {{"num_groups", std::int64_t{4}}}, "num_groups");
  check_refused("group_normalization", {x, c, c}, {{"num_groups", std::int64_t{0}}}, "num_groups");
  check_refused("layer_normalization", {x, spec({3})}, {}, "broadcast");
  check_refused("layer_normalization", {x, spec({4})}, {{"axis", std::int64_t{3}}}, "axis");
  check_refused("layer_normalization", {x, spec({4})}, {{"stash_type", std::int64_t{7}}}, "stash");
  check_refused("rms_normalization", {x, spec({4})}, {{"axis", std::int64_t{-4}}}, "axis");
  check_refused("lrn", {x}, {{"size", std::int64_t{0}}}, "size");
  check_refused("mean_variance_normalization", {x}, {}, "axis 3");
}

TEST_CASE("softmax, log_softmax and hardmax") {
  const Tensor x = f32({2, 2}, {0, std::log(3.0F), 1000, 1000});
  CHECK_THAT(values(run("softmax", {x})[0]), Approx(Floats{0.25F, 0.75F, 0.5F, 0.5F}));
  CHECK_THAT(values(run("log_softmax", {x})[0]),
             Approx(Floats{std::log(0.25F), std::log(0.75F), std::log(0.5F), std::log(0.5F)}));
  CHECK(values(run("hardmax", {x})[0]) == Floats{0, 1, 1, 0});
  CHECK(values(run("hardmax", {x}, {{"axis", std::int64_t{0}}})[0]) == Floats{0, 0, 1, 1});
  check_refused("softmax", {spec({2, 4})}, {{"axis", std::int64_t{2}}}, "axis 2 out of range");
  check_refused("softmax", {spec({2, 4}, DType::i32)}, {}, "i32");
}
