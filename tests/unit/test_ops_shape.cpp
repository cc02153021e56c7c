// Ops about shapes, and ops that make tensors from numbers.
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::Approx;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Ints ints(const Tensor& tensor) { return values<std::int64_t>(tensor); }

Shape shape_of(std::string_view op, const std::vector<Tensor>& inputs, const AttrMap& attrs = {}) {
  const Tensor result = run_op(op, inputs, attrs)[0];
  if (inputs[0].elements() == result.elements()) CHECK(values(result) == values(inputs[0]));
  return result.shape();
}

AttrMap with(std::string_view name, std::int64_t value) {
  AttrMap attrs;
  attrs.set(name, value);
  return attrs;
}

}  // namespace

TEST_CASE("shape and size") {
  const Tensor x = counting({2, 3, 4});
  CHECK(ints(run_op("shape", {x})[0]) == Ints{2, 3, 4});
  CHECK(ints(run_op("shape", {x}, with("start", -2))[0]) == Ints{3, 4});
  CHECK(ints(run_op("shape", {x}, with("end", -1))[0]) == Ints{2, 3});
  CHECK(ints(run_op("shape", {x}, with("start", kHuge))[0]).empty());
  CHECK(ints(run_op("shape", {x}, with("start", -kHuge))[0]) == Ints{2, 3, 4});
  CHECK(ints(run_op("size", {x})[0]) == Ints{24});
  CHECK(ints(run_op("size", {counting({})})[0]) == Ints{1});
}

TEST_CASE("reshape, flatten, squeeze, unsqueeze keep the elements") {
  const Tensor x = counting({2, 3, 4});
  CHECK(shape_of("reshape", {x, i64({4, -1})}) == Shape{4, 6});
  CHECK(shape_of("reshape", {x, i64({0, 0, 2, 2})}) == Shape{2, 3, 2, 2});
  CHECK(shape_of("reshape", {counting({1}), i64({})}) == Shape{});
  CHECK(shape_of("reshape", {counting({0, 3}), i64({3, 0})}, with("allowzero", 1)) == Shape{3, 0});
  // A dimension that is copied says nothing about -1, even when it is 0.
  CHECK(shape_of("reshape", {counting({0, 3, 4}), i64({0, -1})}) == Shape{0, 12});
}

TEST_CASE("flatten, squeeze, unsqueeze") {
  const Tensor x = counting({2, 3, 4});
  CHECK(shape_of("flatten", {x}) == Shape{2, 12});
  CHECK(shape_of("flatten", {x}, with("axis", 0)) == Shape{1, 24});
  CHECK(shape_of("flatten", {x}, with("axis", -1)) == Shape{6, 4});
  CHECK(shape_of("flatten", {x}, with("axis", 3)) == Shape{24, 1});
  CHECK(shape_of("squeeze", {counting({1, 3, 1})}) == Shape{3});
  CHECK(shape_of("squeeze", {counting({1, 3, 1}), i64({-1})}) == Shape{1, 3});
  CHECK(shape_of("unsqueeze", {counting({3}), i64({0, -1})}) == Shape{1, 3, 1});
  CHECK(shape_of("unsqueeze", {counting({3}), i64({2, 0})}) == Shape{1, 3, 1});
}

TEST_CASE("wrong shapes are errors") {
  const Tensor x = counting({2, 3});
  CHECK_THAT(op_error("reshape", {x, i64({4})}),
             ContainsSubstring("[reshape] node 'node': f32[2,3] can't become [4]"));
  CHECK_THAT(op_error("reshape", {x, i64({-1, -1})}), ContainsSubstring("more than one -1"));
  CHECK_THAT(op_error("reshape", {x, i64({4, -1})}), ContainsSubstring("-1 has no whole size"));
  CHECK_THAT(op_error("reshape", {x, i64({0, 0, 0})}), ContainsSubstring("0 has no dimension"));
  CHECK_THAT(op_error("reshape", {x, i64({-2, -3})}), ContainsSubstring("negative dimension"));
  CHECK_THAT(op_error("reshape", {x, i64({kHuge, kHuge})}), ContainsSubstring("elements"));
  CHECK_THAT(op_error("reshape", {counting({0}), i64({0, -1})}, with("allowzero", 1)),
             ContainsSubstring("-1 has no whole size"));
  CHECK_THAT(op_error("flatten", {x}, with("axis", 3)), ContainsSubstring("axis 3 out of range"));
  CHECK_THAT(op_error("squeeze", {x, i64({0})}),
             ContainsSubstring("dimension 0 of f32[2,3] is not 1"));
  CHECK_THAT(op_error("unsqueeze", {x, i64({0, 0})}), ContainsSubstring("given twice"));
  CHECK_THAT(op_error("unsqueeze", {x, i64({5})}), ContainsSubstring("axis 5"));
  CHECK_THAT(op_error("unsqueeze", {x, i64(Ints(7, 0))}), ContainsSubstring("given twice"));
  CHECK_THAT(op_error("unsqueeze", {x, i64({0, 1, 2, 3, 4, 5, 6})}), ContainsSubstring("rank 9"));
}

TEST_CASE("expand and constant_of_shape") {
  CHECK(values(run_op("expand", {f32({2, 1}, {1, 2}), i64({2, 1, 3})})[0]) ==
        Floats{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK(run_op("expand", {counting({3}), i64({1})})[0].shape() == Shape{3});
  CHECK_THAT(op_error("expand", {counting({3}), i64({2})}),
             ContainsSubstring("can't be broadcast"));
  CHECK_THAT(op_error("expand", {counting({1}), i64({kHuge, 4})}), ContainsSubstring("elements"));
  CHECK(values(run_op("constant_of_shape", {i64({2, 2})}, {{"value", 1.5}})[0]) ==
        Floats{1.5F, 1.5F, 1.5F, 1.5F});
  CHECK(ints(run_op("constant_of_shape", {i64({2})},
                    {{"value", -7.0}, {"dtype", std::string("i64")}})[0]) == Ints{-7, -7});
  CHECK_THAT(op_error("constant_of_shape", {i64({-1})}), ContainsSubstring("negative dimension"));
  CHECK_THAT(op_error("constant_of_shape", {i64({1})}, {{"dtype", std::string("?")}}),
             ContainsSubstring("there is no type"));
}

TEST_CASE("range") {
  const auto range = [](std::int64_t start, std::int64_t limit, std::int64_t delta) {
    const auto scalar = [](std::int64_t v) { return Tensor::scalar(v); };
    return std::vector<Tensor>{scalar(start), scalar(limit), scalar(delta)};
  };
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(ints(run_op("range", range(3, 9, 3))[0]) == Ints{3, 6});
  CHECK(ints(run_op("range", range(10, 4, -2))[0]) == Ints{10, 8, 6});
  CHECK(ints(run_op("range", range(4, 4, 1))[0]).empty());
  CHECK(ints(run_op("range", range(kLeast, kMost, kMost))[0]) == Ints{kLeast, -1, kMost - 1});
  CHECK(ints(run_op("range", range(kMost, kLeast, kLeast))[0]) == Ints{kMost, -1});
  CHECK_THAT(op_error("range", range(0, 1, 0)), ContainsSubstring("delta is 0"));
  CHECK_THAT(op_error("range", range(kLeast, kMost, 1)), ContainsSubstring("elements"));
  const auto real = [](float a, float b, float c) {
    return std::vector<Tensor>{Tensor::scalar(a), Tensor::scalar(b), Tensor::scalar(c)};
  };
  CHECK_THAT(values(run_op("range", real(1, 2, 0.3F))[0]), Approx(Floats{1, 1.3F, 1.6F, 1.9F}));
  CHECK(run_op("range", real(1, 0, 0.3F))[0].elements() == 0);
  CHECK_FALSE(op_error("range", real(0, 1, 0)).empty());
  CHECK_FALSE(op_error("range", real(0, 1, std::numeric_limits<float>::quiet_NaN())).empty());
  CHECK_FALSE(op_error("range", real(0, 1e30F, 1e-9F)).empty());
}

TEST_CASE("eye_like") {
  CHECK(values(run_op("eye_like", {counting({2, 3})})[0]) == Floats{1, 0, 0, 0, 1, 0});
  CHECK(values(run_op("eye_like", {counting({2, 3})}, with("k", 1))[0]) ==
        Floats{0, 1, 0, 0, 0, 1});
  CHECK(values(run_op("eye_like", {counting({2, 2})}, with("k", -kHuge))[0]) == Floats{0, 0, 0, 0});
  CHECK(run_op("eye_like", {counting({2, 2})}, {{"dtype", std::string("u8")}})[0].dtype() ==
        DType::u8);
  CHECK_THAT(op_error("eye_like", {counting({2})}), ContainsSubstring("is not a matrix"));
}
