// Ops that read and write at indices.
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

namespace {

constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();

Floats result(std::string_view op, const std::vector<Tensor>& inputs, const AttrMap& attrs = {}) {
  return values(run_op(op, inputs, attrs)[0]);
}

Tensor indices(const Shape& shape, const Ints& values) {
  return tensor<std::int64_t>(shape, values);
}

AttrMap reduction(std::string name) { return {{"reduction", std::move(name)}}; }

}  // namespace

TEST_CASE("gather") {
  const Tensor x = counting({3, 2});
  CHECK(result("gather", {x, i64({2, 0, -2})}) == Floats{4, 5, 0, 1, 2, 3});
  CHECK(result("gather", {x, i64({1})}, {{"axis", std::int64_t{1}}}) == Floats{1, 3, 5});
  CHECK(run_op("gather", {x, indices({2, 1}, {0, 1})})[0].shape() == Shape{2, 1, 2});
  CHECK(run_op("gather", {x, indices({}, {1})})[0].shape() == Shape{2});
  CHECK(result("gather", {x, tensor<std::int32_t>({1}, {-1})}) == Floats{4, 5});
}

TEST_CASE("gather_elements and gather_nd") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  const AttrMap second = {{"axis", std::int64_t{1}}};
  CHECK(result("gather_elements", {x, indices({2, 2}, {0, 0, 1, 0})}, second) ==
        Floats{1, 1, 4, 3});
  CHECK(result("gather_elements", {x, indices({1, 2}, {-1, 0})}) == Floats{3, 2});
  CHECK(result("gather_nd", {x, indices({2, 2}, {0, 0, 1, -1})}) == Floats{1, 4});
  CHECK(result("gather_nd", {x, indices({2, 1}, {1, 0})}) == Floats{3, 4, 1, 2});
  CHECK(result("gather_nd", {counting({2, 2, 2}), indices({2, 1}, {1, 0})},
               {{"batch_dims", std::int64_t{1}}}) == Floats{2, 3, 4, 5});
  CHECK(result("gather_nd", {x, Tensor::empty({DType::i64, {2, 0}})}) ==
        Floats{1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE("scatter_elements and scatter_nd") {
  const Tensor zeros = f32({3}, {1, 1, 1});
  const Tensor twice = i64({1, 1});
  const Tensor updates = f32({2}, {5, 3});
  CHECK(result("scatter_elements", {zeros, twice, updates}) == Floats{1, 3, 1});
  CHECK(result("scatter_elements", {zeros, twice, updates}, reduction("add")) == Floats{1, 9, 1});
  CHECK(result("scatter_elements", {zeros, twice, updates}, reduction("mul")) == Floats{1, 15, 1});
  CHECK(result("scatter_elements", {zeros, twice, updates}, reduction("max")) == Floats{1, 5, 1});
  CHECK(result("scatter_elements", {zeros, twice, updates}, reduction("min")) == Floats{1, 1, 1});
  CHECK(result("scatter_elements", {counting({2, 2}), indices({2, 1}, {1, 0}), f32({2, 1}, {8, 9})},
               {{"axis", std::int64_t{1}}}) == Floats{0, 8, 9, 3});
  CHECK(result("scatter_nd", {counting({4}), indices({2, 1}, {3, -4}), f32({2}, {8, 9})}) ==
        Floats{9, 1, 2, 8});
  CHECK(result("scatter_nd", {counting({2, 2}), indices({1, 1}, {1}), f32({1, 2}, {8, 9})},
               reduction("add")) == Floats{0, 1, 10, 12});
}

TEST_CASE("indices out of range are errors of the run") {
  const Tensor x = counting({3, 2});
  const Tensor one = f32({1, 2}, {0, 0});
  CHECK_THAT(
      op_error("gather", {x, i64({3})}),
      ContainsSubstring("[gather] node 'node': index 3 is out of range for a dimension of 3"));
  CHECK_THAT(op_error("gather", {x, i64({-4})}), ContainsSubstring("index -4"));
  CHECK_THAT(op_error("gather", {x, i64({kLeast})}), ContainsSubstring("out of range"));
  CHECK_THAT(op_error("gather_elements", {x, indices({1, 2}, {0, 9})}),
             ContainsSubstring("index 9"));
  CHECK_THAT(op_error("gather_nd", {x, indices({1, 2}, {0, 2})}), ContainsSubstring("index 2"));
  CHECK_THAT(op_error("scatter_elements", {x, indices({1, 2}, {0, 5}), one}),
             ContainsSubstring("index 5"));
  CHECK_THAT(op_error("scatter_nd", {x, indices({1, 1}, {-7}), one}),
             ContainsSubstring("index -7"));
  CHECK_THAT(op_error("gather", {counting({0, 2}), i64({0})}), ContainsSubstring("dimension of 0"));
}

TEST_CASE("shapes and attributes that don't fit are errors") {
  const Tensor x = counting({3, 2});
  CHECK_THAT(op_error("gather", {x, i64({0})}, {{"axis", std::int64_t{2}}}),
             ContainsSubstring("axis 2"));
  CHECK_THAT(op_error("gather", {counting({}), i64({0})}), ContainsSubstring("axis 0"));
  CHECK_THAT(op_error("gather", {x, f32({1}, {0})}), ContainsSubstring("expected i32 or i64"));
  CHECK_THAT(op_error("gather_elements", {x, i64({0})}), ContainsSubstring("don't fit"));
  CHECK_THAT(op_error("gather_elements", {x, indices({1, 3}, {0, 0, 0})}),
             ContainsSubstring("don't fit"));
  CHECK_THAT(op_error("gather_nd", {x, indices({1, 3}, {0, 0, 0})}),
             ContainsSubstring("index tuples of 3"));
  CHECK_THAT(op_error("gather_nd", {x, i64({0})}, {{"batch_dims", std::int64_t{1}}}),
             ContainsSubstring("batch_dims 1"));
  CHECK_THAT(op_error("gather_nd", {x, i64({0})}, {{"batch_dims", std::int64_t{-1}}}),
             ContainsSubstring("batch_dims -1"));
  CHECK_THAT(op_error("scatter_elements", {x, indices({1, 2}, {0, 0}), counting({2, 2})}),
             ContainsSubstring("the shape of the indices"));
  CHECK_THAT(op_error("scatter_nd", {x, indices({1, 1}, {0}), counting({3})}),
             ContainsSubstring("one slice"));
  CHECK_THAT(op_error("scatter_nd", {x, indices({1, 1}, {0}), counting({1, 2})}, reduction("avg")),
             ContainsSubstring("reduction 'avg'"));
}
