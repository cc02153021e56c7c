// Reductions, arg_max, running sums and top_k against written-down values.
#include <cmath>
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

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const AttrMap kDrop = {{"keepdims", std::int64_t{0}}};

Floats rows(std::string_view op) {  // [[0,1,2],[3,4,5]] over its rows
  return values(run_op(op, {counting({2, 3}), i64({1})}, kDrop)[0]);
}

Tensor nothing(DType dtype) { return Tensor::empty({dtype, {0}}); }

float of_nothing(std::string_view op) { return values(run_op(op, {nothing(DType::f32)})[0])[0]; }

}  // namespace

TEST_CASE("each reduction of small rows") {
  CHECK(rows("reduce_sum") == Floats{3, 12});
  CHECK(rows("reduce_mean") == Floats{1, 4});
  CHECK(rows("reduce_max") == Floats{2, 5});
  CHECK(rows("reduce_min") == Floats{0, 3});
  CHECK(rows("reduce_prod") == Floats{0, 60});
  CHECK(rows("reduce_sum_square") == Floats{5, 50});
  CHECK(rows("reduce_l1") == Floats{3, 12});
  CHECK_THAT(rows("reduce_l2"), Approx(Floats{2.23606798F, 7.07106781F}));
  CHECK_THAT(rows("reduce_log_sum"), Approx(Floats{1.09861229F, 2.48490665F}));
  CHECK_THAT(rows("reduce_log_sum_exp"), Approx(Floats{2.40760596F, 5.40760596F}));
  CHECK(values(run_op("reduce_l1", {f32({2}, {-3, 2})})[0]) == Floats{5});
}

TEST_CASE("axes, kept dimensions and no axes") {
  const Tensor x = counting({2, 3, 2});
  CHECK(run_op("reduce_sum", {x, i64({1})})[0].shape() == Shape{2, 1, 2});
  CHECK(values(run_op("reduce_sum", {x, i64({-1, 0})}, kDrop)[0]) == Floats{14, 22, 30});
  CHECK(run_op("reduce_sum", {x})[0].shape() == Shape{1, 1, 1});
  CHECK(values(run_op("reduce_sum", {x}, kDrop)[0]) == Floats{66});
  CHECK(values(run_op("reduce_sum", {x, i64({})}, kDrop)[0]) == Floats{66});
  const AttrMap noop = {{"noop_with_empty_axes", std::int64_t{1}}};
  CHECK(values(run_op("reduce_sum", {x}, noop)[0]) == values(x));
  CHECK(values(run_op("reduce_sum_square", {f32({2}, {-2, 3})}, noop)[0]) == Floats{4, 9});
  CHECK(values(run_op("reduce_sum", {f32({}, {5})})[0]) == Floats{5});
}

TEST_CASE("reductions of nothing") {
  CHECK(of_nothing("reduce_sum") == 0);
  CHECK(of_nothing("reduce_prod") == 1);
  CHECK(of_nothing("reduce_sum_square") == 0);
  CHECK(of_nothing("reduce_l1") == 0);
  CHECK(of_nothing("reduce_l2") == 0);
  CHECK(of_nothing("reduce_log_sum") == -kInf);
  CHECK(of_nothing("reduce_log_sum_exp") == -kInf);
  CHECK(of_nothing("reduce_max") == -kInf);
  CHECK(of_nothing("reduce_min") == kInf);
  CHECK(std::isnan(of_nothing("reduce_mean")));
  CHECK(values<std::int8_t>(run_op("reduce_max", {nothing(DType::i8)})[0])[0] == -128);
  CHECK(values<std::uint8_t>(run_op("reduce_min", {nothing(DType::u8)})[0])[0] == 255);
  CHECK(values<bool>(run_op("reduce_max", {nothing(DType::boolean)})[0])[0] == false);
  CHECK(values<bool>(run_op("reduce_min", {nothing(DType::boolean)})[0])[0] == true);
  CHECK(run_op("reduce_sum", {Tensor::empty({DType::f32, {2, 0}}), i64({0})})[0].elements() == 0);
}

TEST_CASE("sums are wide: many small terms, many bytes, large exponents") {
  const Floats many(100000, 0.1F);
  CHECK(values(run_op("reduce_sum", {f32({100000}, many)})[0])[0] == 10000.0F);
  const std::vector<std::int8_t> bytes(256, 100);
  const Tensor x = tensor<std::int8_t>({256}, bytes);
  CHECK(values<std::int8_t>(run_op("reduce_mean", {x})[0])[0] == 100);
  CHECK(values<std::int8_t>(run_op("reduce_sum", {x})[0])[0] == 0);  // 25600 modulo 256
  CHECK_THAT(values(run_op("reduce_log_sum_exp", {f32({2}, {1000, 1000})})[0]),
             Approx(Floats{1000.69315F}));
  CHECK(values(run_op("reduce_log_sum_exp", {f32({2}, {kInf, 1})})[0])[0] == kInf);
  CHECK(values(run_op("reduce_log_sum_exp", {f32({2}, {-kInf, -kInf})})[0])[0] == -kInf);
}

TEST_CASE("NaN reaches the result") {
  const Tensor x = f32({3}, {1, kNan, 2});
  for (std::string_view op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                              "reduce_prod", "reduce_l1", "reduce_l2", "reduce_log_sum_exp"}) {
    INFO(op);
    CHECK(std::isnan(values(run_op(op, {x})[0])[0]));
  }
}

TEST_CASE("arg_max and arg_min") {
  const auto arg = [](std::string_view op, const Tensor& x, const AttrMap& attrs = {}) {
    return values<std::int64_t>(run_op(op, {x}, attrs)[0]);
  };
  const Tensor x = f32({2, 3}, {1, 5, 5, 0, 7, 0});
  const AttrMap last = {{"axis", std::int64_t{1}}, {"select_last_index", std::int64_t{1}}};
  CHECK(arg("arg_max", x) == Ints{0, 1, 0});
  CHECK(arg("arg_max", x, {{"axis", std::int64_t{-1}}}) == Ints{1, 1});
  CHECK(arg("arg_max", x, last) == Ints{2, 1});
  CHECK(arg("arg_min", x, {{"axis", std::int64_t{1}}}) == Ints{0, 0});
  CHECK(arg("arg_min", x, last) == Ints{0, 2});
  CHECK(run_op("arg_max", {x}, kDrop)[0].shape() == Shape{3});
  CHECK(arg("arg_max", f32({4}, {1, kNan, 9, kNan})) == Ints{1});
  CHECK(arg("arg_min", f32({4}, {1, kNan, 9, kNan})) == Ints{1});
  CHECK_THAT(op_error("arg_max", {nothing(DType::f32)}), ContainsSubstring("has no elements"));
  CHECK_THAT(op_error("arg_max", {f32({}, {1})}), ContainsSubstring("axis 0 out of range"));
}

TEST_CASE("running sums and products") {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const AttrMap exclusive = {{"exclusive", std::int64_t{1}}};
  const AttrMap reverse = {{"reverse", std::int64_t{1}}};
  const AttrMap both = {{"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{1}}};
  CHECK(values(run_op("cum_sum", {x, i64({0})})[0]) == Floats{1, 3, 6, 10});
  CHECK(values(run_op("cum_sum", {x, i64({0})}, exclusive)[0]) == Floats{0, 1, 3, 6});
  CHECK(values(run_op("cum_sum", {x, i64({0})}, reverse)[0]) == Floats{10, 9, 7, 4});
  CHECK(values(run_op("cum_sum", {x, i64({0})}, both)[0]) == Floats{9, 7, 4, 0});
  CHECK(values(run_op("cum_prod", {x, i64({-1})})[0]) == Floats{1, 2, 6, 24});
  CHECK(values(run_op("cum_prod", {x, i64({0})}, both)[0]) == Floats{24, 12, 4, 1});
  CHECK(values(run_op("cum_sum", {counting({2, 2}), i64({0})})[0]) == Floats{0, 1, 2, 4});
  CHECK_THAT(op_error("cum_sum", {x, i64({1})}), ContainsSubstring("axis 1 out of range"));
  CHECK_THAT(op_error("cum_sum", {x, i64({0, 0})}), ContainsSubstring("expected one integer"));
  CHECK_THAT(op_error("cum_sum", {x, f32({}, {0})}), ContainsSubstring("expected i32 or i64"));
}

TEST_CASE("top_k") {
  const Tensor x = f32({2, 4}, {3, 1, 3, kNan, 5, 6, 7, 8});
  const auto largest = run_op("top_k", {x, i64({3})}, {}, 2);
  CHECK(values<std::int64_t>(largest[1]) == Ints{3, 0, 2, 3, 2, 1});
  CHECK(values(largest[0])[1] == 3);
  const AttrMap smallest = {{"largest", std::int64_t{0}}};
  const auto low = run_op("top_k", {x, i64({2})}, smallest, 2);
  CHECK(values<std::int64_t>(low[1]) == Ints{1, 0, 0, 1});
  const auto column = run_op("top_k", {counting({3, 2}), i64({1})}, {{"axis", std::int64_t{0}}}, 2);
  CHECK(values(column[0]) == Floats{4, 5});
  CHECK_THAT(op_error("top_k", {x, i64({5})}), ContainsSubstring("k is 5"));
  CHECK_THAT(op_error("top_k", {x, i64({-1})}), ContainsSubstring("k is -1"));
}

TEST_CASE("wrong axes of reductions") {
  const Tensor x = counting({2, 3});
  CHECK_THAT(op_error("reduce_sum", {x, i64({2})}),
             ContainsSubstring("[reduce_sum] node 'node': axis 2 out of range for rank 2"));
  CHECK_THAT(op_error("reduce_sum", {x, i64({0, -2})}), ContainsSubstring("given twice"));
  CHECK_THAT(op_error("reduce_sum", {x, counting({1})}), ContainsSubstring("an integer type"));
  CHECK_THAT(op_error("reduce_sum", {x, tensor<std::int64_t>({1, 1}, {0})}),
             ContainsSubstring("expected a list"));
  CHECK_THAT(op_error("reduce_sum", {Tensor::zeros({DType::boolean, {2}})}),
             ContainsSubstring("expected a number type"));
}
