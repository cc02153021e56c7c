// Ops that move elements, against loops and written-down values.
#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

#include "ops/movement_resize.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::Approx;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();

Floats moved(std::string_view op, const std::vector<Tensor>& inputs, const AttrMap& attrs = {}) {
  return values(run_op(op, inputs, attrs)[0]);
}

Tensor reals(const Floats& values) {
  return f32({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

TEST_CASE("transpose") {
  const Tensor x = counting({2, 3, 4});
  const Tensor y = run_op("transpose", {x}, {{"perm", Ints{2, 0, 1}}})[0];
  REQUIRE(y.shape() == Shape{4, 2, 3});
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 6; ++j) CHECK(values(y)[i * 6 + j] == values(x)[j * 4 + i]);
  }
  CHECK(moved("transpose", {counting({2, 3})}) == Floats{0, 3, 1, 4, 2, 5});
  CHECK_THAT(op_error("transpose", {x}, {{"perm", Ints{0, 1}}}),
             ContainsSubstring("perm [0,1] for f32[2,3,4]"));
  CHECK_THAT(op_error("transpose", {x}, {{"perm", Ints{0, 1, 1}}}),
             ContainsSubstring("given twice"));
  CHECK_THAT(op_error("transpose", {x}, {{"perm", Ints{0, 1, 3}}}), ContainsSubstring("axis 3"));
}

TEST_CASE("concat and split undo each other") {
  const Tensor a = counting({2, 2}), b = counting({2, 1}, 10);
  const AttrMap second = {{"axis", std::int64_t{1}}};
  CHECK(moved("concat", {a, b}, second) == Floats{0, 1, 10, 2, 3, 11});
  const auto parts = run_op("split", {counting({2, 3}), i64({2, 1})}, second, 2);
  CHECK(values(parts[0]) == Floats{0, 1, 3, 4});
  CHECK(values(parts[1]) == Floats{2, 5});
  const auto equal = run_op("split", {counting({5})}, {{"num_outputs", std::int64_t{3}}}, 3);
  CHECK(values(equal[2]) == Floats{4});
  CHECK_THAT(op_error("concat", {a, counting({3, 3})}, second),
             ContainsSubstring("differ beyond axis 1"));
  CHECK_THAT(op_error("concat", {a, counting({2})}, second), ContainsSubstring("differ"));
  CHECK_THAT(op_error("concat", {a, i64({1})}, second), ContainsSubstring("input 1 is i64"));
  CHECK_THAT(op_error("concat", {counting({})}, second), ContainsSubstring("axis 1"));
  CHECK_THAT(op_error("split", {a, i64({1, 2})}), ContainsSubstring("parts add up to 3, not 2"));
  CHECK_THAT(op_error("split", {a, i64({3, -1})}), ContainsSubstring("a part of -1"));
  CHECK_THAT(op_error("split", {a, i64({kMost, kMost})}), ContainsSubstring("overflows"));
  CHECK_THAT(op_error("split", {a}), ContainsSubstring("neither split nor num_outputs"));
  CHECK_THAT(op_error("split", {a}, {{"num_outputs", std::int64_t{0}}}),
             ContainsSubstring("num_outputs 0"));
  CHECK_THAT(op_error("split", {a}, {{"num_outputs", kMost}}), ContainsSubstring("num_outputs"));
}

TEST_CASE("slice") {
  const Tensor x = counting({8});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return moved("slice", {x, i64({start}), i64({end}), i64({0}), i64({step})});
  };
  CHECK(slice(1, 7, 2) == Floats{1, 3, 5});
  CHECK(slice(-3, kMost, 1) == Floats{5, 6, 7});
  CHECK(slice(kMost, kLeast, -3) == Floats{7, 4, 1});
  CHECK(slice(5, 1, -2) == Floats{5, 3});
  CHECK(slice(5, 1, 1).empty());
  CHECK(slice(2, 3, kMost) == Floats{2});
  CHECK(slice(2, 0, kLeast) == Floats{2});
  CHECK(slice(kLeast, kMost, kMost) == Floats{0});
  CHECK(slice(-1, -9, -7) == Floats{7, 0});
  CHECK(moved("slice", {counting({3, 3}), i64({1}), i64({3}), i64({-1})}) ==
        Floats{1, 2, 4, 5, 7, 8});
  CHECK_THAT(op_error("slice", {x, i64({0}), i64({1}), i64({0}), i64({0})}),
             ContainsSubstring("a step is 0"));
  CHECK_THAT(op_error("slice", {x, i64({0, 0}), i64({1})}), ContainsSubstring("2 starts, 1 ends"));
  CHECK_THAT(op_error("slice", {x, i64({0, 0}), i64({1, 1})}),
             ContainsSubstring("axis 1 out of range"));
  CHECK_THAT(op_error("slice", {x, i64({0, 0}), i64({1, 1}), i64({0, -1})}),
             ContainsSubstring("given twice"));
}

TEST_CASE("pad") {
  const Tensor x = f32({3}, {1, 2, 3});
  const auto pad = [&](std::string mode, const Ints& pads) {
    return moved("pad", {x, i64(pads)}, {{"mode", std::move(mode)}});
  };
  CHECK(pad("constant", {1, 2}) == Floats{0, 1, 2, 3, 0, 0});
  CHECK(pad("edge", {1, 2}) == Floats{1, 1, 2, 3, 3, 3});
  CHECK(pad("reflect", {2, 2}) == Floats{3, 2, 1, 2, 3, 2, 1});
  CHECK(pad("reflect", {5, 0}) == Floats{2, 1, 2, 3, 2, 1, 2, 3});
  CHECK(pad("wrap", {2, 4}) == Floats{2, 3, 1, 2, 3, 1, 2, 3, 1});
  CHECK(pad("constant", {-1, 1}) == Floats{2, 3, 0});
  CHECK(moved("pad", {x, i64({1, 0}), f32({}, {9})}) == Floats{9, 1, 2, 3});
  CHECK(run_op("pad", {counting({2, 2}), i64({1, 1}), Tensor(), i64({-1})})[0].shape() ==
        Shape{2, 4});
  CHECK_THAT(op_error("pad", {x, i64({1})}), ContainsSubstring("1 pads for 1 axes"));
  CHECK_THAT(op_error("pad", {x, i64({-2, -2})}), ContainsSubstring("pads leave -1 of axis 0"));
  CHECK_THAT(op_error("pad", {x, i64({kLeast, kMost})}), ContainsSubstring("a pad of"));
  CHECK_THAT(op_error("pad", {x, i64({std::int64_t{1} << 60, std::int64_t{1} << 60})}),
             ContainsSubstring("elements"));
  CHECK_THAT(op_error("pad", {counting({0}), i64({1, 1})}, {{"mode", std::string("edge")}}),
             ContainsSubstring("nothing to repeat"));
  CHECK_THAT(op_error("pad", {x, i64({1, 1})}, {{"mode", std::string("odd")}}),
             ContainsSubstring("mode 'odd'"));
  CHECK_THAT(op_error("pad", {x, i64({1, 1}), i64({1})}), ContainsSubstring("expected f32"));
}

TEST_CASE("tile, trilu, reverse_sequence") {
  CHECK(moved("tile", {counting({1, 2}), i64({2, 2})}) == Floats{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK_THAT(op_error("tile", {counting({2}), i64({-1})}),
             ContainsSubstring("a repeat is negative"));
  CHECK_THAT(op_error("tile", {counting({2}), i64({kMost})}), ContainsSubstring("overflows"));
  CHECK_THAT(op_error("tile", {counting({2}), i64({1, 1})}), ContainsSubstring("2 repeats"));
  CHECK(moved("trilu", {counting({2, 3})}) == Floats{0, 1, 2, 0, 4, 5});
  CHECK(moved("trilu", {counting({2, 3}, 1), i64({1})}) == Floats{0, 2, 3, 0, 0, 6});
  CHECK(moved("trilu", {counting({2, 3}, 1), i64({-1})}, {{"upper", std::int64_t{0}}}) ==
        Floats{0, 0, 0, 4, 0, 0});
  CHECK_THAT(op_error("trilu", {counting({3})}), ContainsSubstring("no matrices"));
  CHECK(moved("reverse_sequence", {counting({3, 2}), i64({2, 3})}) == Floats{2, 5, 0, 3, 4, 1});
  CHECK_THAT(op_error("reverse_sequence", {counting({3, 2}), i64({2, 4})}),
             ContainsSubstring("length 4"));
  CHECK_THAT(op_error("reverse_sequence", {counting({3, 2}), i64({2, 2})},
                      {{"time_axis", std::int64_t{1}}}),
             ContainsSubstring("batch_axis 1 and time_axis 1"));
}

TEST_CASE("depth_to_space and space_to_depth") {
  // The example of the ONNX operator, two blocks wide.
  const Tensor x = counting({1, 8, 1, 1});
  const AttrMap block = {{"blocksize", std::int64_t{2}}};
  AttrMap crd = block;
  crd.set("mode", std::string("CRD"));
  CHECK(moved("depth_to_space", {x}, block) == Floats{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(moved("depth_to_space", {x}, crd) == Floats{0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor back = run_op(
      "space_to_depth", {run_op("depth_to_space", {counting({2, 12, 2, 3})}, block)[0]}, block)[0];
  CHECK(values(back) == values(counting({2, 12, 2, 3})));
  CHECK_THAT(op_error("depth_to_space", {x}, {{"blocksize", std::int64_t{3}}}),
             ContainsSubstring("can't be divided"));
  CHECK_THAT(op_error("depth_to_space", {x}, {{"blocksize", std::int64_t{0}}}),
             ContainsSubstring("blocksize 0"));
  CHECK_THAT(op_error("depth_to_space", {x}, {{"blocksize", kMost}}),
             ContainsSubstring("overflows"));
  CHECK_THAT(op_error("space_to_depth", {x}, block), ContainsSubstring("blocks of 2"));
  CHECK_THAT(op_error("space_to_depth", {counting({4})}, block),
             ContainsSubstring("is not [N,C,H,W]"));
}

TEST_CASE("resize") {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const auto resize = [&](const Floats& scales, AttrMap attrs) {
    return moved("resize", {x, Tensor(), reals(scales)}, attrs);
  };
  CHECK(resize({2}, {}) == Floats{1, 1, 2, 2, 3, 3, 4, 4});
  CHECK(resize({0.5F}, {{"coordinate_transformation_mode", std::string("asymmetric")}}) ==
        Floats{1, 3});
  CHECK_THAT(resize({2}, {{"mode", std::string("linear")}}),
             Approx(Floats{1, 1.25F, 1.75F, 2.25F, 2.75F, 3.25F, 3.75F, 4}));
  CHECK_THAT(resize({1.75F}, {{"mode", std::string("linear")},
                              {"coordinate_transformation_mode", std::string("align_corners")}}),
             Approx(Floats{1, 1.5F, 2, 2.5F, 3, 3.5F, 4}));
  // With coefficient -1/2 a cubic through a straight line stays on it, away from the ends.
  const Floats cubic = resize({2}, {{"mode", std::string("cubic")}, {"cubic_coeff_a", -0.5}});
  CHECK_THAT((Floats{cubic[3], cubic[4]}), Approx(Floats{2.25F, 2.75F}));
  // Antialiasing by half: weights 1/8 3/8 3/8 1/8, the end elements repeated.
  CHECK_THAT(resize({0.5F}, {{"mode", std::string("linear")}, {"antialias", std::int64_t{1}}}),
             Approx(Floats{1.625F, 3.375F}));
  CHECK(run_op("resize", {counting({2, 4, 6}), Tensor(), Tensor(), i64({2, 9})},
               {{"axes", Ints{1, 2}}, {"keep_aspect_ratio_policy", std::string("not_larger")}})[0]
            .shape() == Shape{2, 2, 3});
}

TEST_CASE("wrong resizes are errors") {
  const Tensor x = counting({4});
  const auto error = [&](const Tensor& scales, const Tensor& sizes, const AttrMap& attrs = {}) {
    return op_error("resize", {x, Tensor(), scales, sizes}, attrs);
  };
  CHECK_THAT(error(Tensor(), Tensor()), ContainsSubstring("one of scales and sizes"));
  CHECK_THAT(error(reals({2}), i64({2})), ContainsSubstring("one of scales and sizes"));
  CHECK_THAT(error(reals({2, 2}), Tensor()), ContainsSubstring("expected 1 numbers"));
  CHECK_THAT(error(reals({0}), Tensor()), ContainsSubstring("a scale of 0"));
  CHECK_THAT(error(reals({std::nanf("")}), Tensor()), ContainsSubstring("a scale of nan"));
  CHECK_THAT(error(reals({1e30F}), Tensor()), ContainsSubstring("an output dimension"));
  CHECK_THAT(error(Tensor(), i64({-1})), ContainsSubstring("a size of -1"));
  CHECK_THAT(error(reals({2}), Tensor(), {{"mode", std::string("odd")}}),
             ContainsSubstring("mode 'odd'"));
  CHECK_THAT(error(reals({2}), Tensor(), {{"antialias", std::int64_t{1}}}),
             ContainsSubstring("antialias"));
  CHECK_THAT(error(reals({2}), Tensor(), {{"axes", Ints{7}}}), ContainsSubstring("axis 7"));
  CHECK_THAT(error(reals({2}), Tensor(),
                   {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}),
             ContainsSubstring("needs a roi"));
  CHECK_THAT(op_error("resize", {counting({0}), Tensor(), Tensor(), i64({2})}),
             ContainsSubstring("nothing to resize"));
}

TEST_CASE("weights of every interpolation add up to 1, taps lie inside") {
  for (const std::string mode : {"linear", "cubic"}) {
    for (const std::int64_t antialias : {0, 1}) {
      for (const std::int64_t size : {1, 2, 3, 7, 40}) {
        const AttrMap attrs = {{"mode", mode}, {"antialias", antialias}};
        const Graph graph =
            one_node("resize", {counting({9}), Tensor(), Tensor(), i64({size})}, attrs).bind({});
        for (const ResizeAxis& axis : resize_axes(graph.info(NodeId{0}))) {
          INFO(mode << " antialias " << antialias << " to " << size);
          REQUIRE(axis.index.size() == static_cast<std::size_t>(axis.out * axis.taps));
          for (std::int64_t o = 0; o < axis.out; ++o) {
            double sum = 0;
            for (std::int64_t t = o * axis.taps; t < (o + 1) * axis.taps; ++t) {
              sum += axis.weight[static_cast<std::size_t>(t)];
              CHECK((axis.index[static_cast<std::size_t>(t)] >= 0 &&
                     axis.index[static_cast<std::size_t>(t)] < 9));
            }
            CHECK(std::abs(sum - 1) < 1e-12);
          }
        }
      }
    }
  }
}
