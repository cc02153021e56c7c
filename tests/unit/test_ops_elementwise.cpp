// Unary, binary and selecting ops against written-down values.
#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

#include "ops/functors.hpp"
#include "tests/support/op_runner.hpp"

using namespace turnout;
using namespace turnout::test;
using Catch::Matchers::Approx;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr auto kLeast = std::numeric_limits<std::int32_t>::min();

Floats unary(std::string_view op, const Floats& x, const AttrMap& attrs = {}) {
  return values(run_op(op, {f32({static_cast<std::int64_t>(x.size())}, x)}, attrs)[0]);
}

template <typename T>
std::vector<T> binary(std::string_view op, const std::vector<T>& a, const std::vector<T>& b,
                      const AttrMap& attrs = {}) {
  const Shape left{static_cast<std::int64_t>(a.size())};
  const Shape right{static_cast<std::int64_t>(b.size())};
  return values<T>(run_op(op, {tensor<T>(left, a), tensor<T>(right, b)}, attrs)[0]);
}

std::vector<bool> compare(std::string_view op, const Floats& a, const Floats& b) {
  const Shape shape{static_cast<std::int64_t>(a.size())};
  return values<bool>(run_op(op, {f32(shape, a), f32(shape, b)})[0]);
}

// Values computed by numpy and scipy in double.
struct Known {
  std::string_view op;
  AttrMap attrs;
  Floats y;
};
const Floats kX = {-2.5F, -1, -0.25F, 0, 0.5F, 1, 3};
const std::vector<Known> kKnown = {
    {"exp",
     {},
     {0.0820849986F, 0.367879441F, 0.778800783F, 1, 1.64872127F, 2.71828183F, 20.0855369F}},
    {"erf",
     {},
     {-0.999593048F, -0.842700793F, -0.27632639F, 0, 0.520499878F, 0.842700793F, 0.99997791F}},
    {"sin",
     {},
     {-0.598472144F, -0.841470985F, -0.247403959F, 0, 0.479425539F, 0.841470985F, 0.141120008F}},
    {"tanh",
     {},
     {-0.986614298F, -0.761594156F, -0.244918662F, 0, 0.462117157F, 0.761594156F, 0.995054754F}},
    {"asinh",
     {},
     {-1.64723115F, -0.881373587F, -0.247466462F, 0, 0.481211825F, 0.881373587F, 1.81844646F}},
    {"sigmoid",
     {},
     {0.07585818F, 0.268941421F, 0.437823499F, 0.5F, 0.622459331F, 0.731058579F, 0.952574127F}},
    {"gelu",
     {},
     {-0.0155241633F, -0.158655254F, -0.100323419F, 0, 0.345731231F, 0.841344746F, 2.99595031F}},
    {"gelu",
     {{"approximate", std::string("tanh")}},
     {-0.0150842661F, -0.158808009F, -0.100324649F, 0, 0.34571401F, 0.841191991F, 2.99636261F}},
    {"softplus",
     {},
     {0.0788897343F, 0.313261688F, 0.57593942F, 0.693147181F, 0.974076984F, 1.31326169F,
      3.04858735F}},
    {"mish",
     {},
     {-0.196816204F, -0.303401461F, -0.129926964F, 0, 0.375245211F, 0.865098388F, 2.986535F}},
    {"silu",
     {},
     {-0.18964545F, -0.268941421F, -0.109455875F, 0, 0.3112296656F, 0.731058579F, 2.85772238F}},
    {"swish",
     {{"alpha", 2.0}},
     {-0.0167321273F, -0.119202922F, -0.0943851672F, 0, 0.365529289F, 0.880797078F, 2.99258213F}},
    {"hard_swish",
     {},
     {-0.208333333F, -0.333333333F, -0.114583333F, 0, 0.291666667F, 0.666666667F, 3}},
    {"hard_sigmoid", {}, {0, 0.3F, 0.45F, 0.5F, 0.6F, 0.7F, 1}},
    {"elu", {{"alpha", 0.5}}, {-0.458957501F, -0.316060279F, -0.110599608F, 0, 0.5F, 1, 3}},
    {"selu",
     {},
     {-1.61378576F, -1.11133074F, -0.388890199F, 0, 0.525350511F, 1.05070102F, 3.15210307F}},
    {"celu", {{"alpha", 2.0}}, {-1.42699041F, -0.786938681F, -0.235006195F, 0, 0.5F, 1, 3}},
    {"softsign", {}, {-0.714285714F, -0.5F, -0.2F, 0, 0.333333333F, 0.5F, 0.75F}},
    {"leaky_relu", {{"alpha", 0.1}}, {-0.25F, -0.1F, -0.025F, 0, 0.5F, 1, 3}},
    {"thresholded_relu", {{"alpha", 0.5}}, {0, 0, 0, 0, 0, 1, 3}},
    {"shrink", {{"bias", 1.0}, {"lambd", 0.75}}, {-1.5F, 0, 0, 0, 0, 0, 2}},
    {"relu", {}, {0, 0, 0, 0, 0.5F, 1, 3}},
    {"reciprocal", {}, {-0.4F, -1, -4, kInf, 2, 1, 0.333333333F}},
};

}  // namespace

TEST_CASE("functions of one operand have the values of numpy") {
  for (const Known& known : kKnown) {
    INFO(known.op);
    CHECK_THAT(unary(known.op, kX, known.attrs), Approx(known.y).epsilon(2e-7).margin(1e-9));
  }
}

TEST_CASE("functors agree in float and in double, far out too") {
  for_each_type(UnaryOps{}, [&]<typename Op>(std::type_identity<Op>) {
    if constexpr (takes<Op, float>) {
      const OpDef& def = all_ops().get(Op::name);
      AttrMap attrs;
      for (const AttrDef& attr : def.attrs) attrs.set(attr.name, attr.default_value);
      const Op op = Op::make(attrs);
      const Tolerance tolerance = tolerance_of(def, DType::f32);
      for (float x : {-1e30F, -100.0F, -20.0F, -3.3F, -0.7F, -1e-3F, -1e-20F, 0.0F, 1e-20F, 1e-3F,
                      0.9F,   1.1F,    5.0F,   19.0F, 80.0F, 1e4F,   1e30F,   kInf, -kInf,  kNan}) {
        if (std::abs(x) > 1e3F && (def.name == "sin" || def.name == "cos" || def.name == "tan")) {
          continue;  // the argument itself is rounded to more than a period
        }
        const auto got = static_cast<double>(op(x));
        const auto want = static_cast<double>(convert<float>(op(static_cast<double>(x))));
        const bool same =
            got == want || (std::isnan(got) && std::isnan(want)) ||
            std::abs(got - want) <= tolerance.absolute + tolerance.relative * std::abs(want);
        INFO(def.name << "(" << x << ") = " << got << ", in double " << want);
        CHECK(same);
      }
    }
  });
}

TEST_CASE("rounding, signs and special values") {
  CHECK(unary("round", {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 2.6F}) ==
        Floats{-2, -2, -0.0F, 0, 2, 2, 3});
  CHECK(unary("floor", {-1.5F, 1.5F, -0.0F}) == Floats{-2, 1, -0.0F});
  CHECK(unary("ceil", {-1.5F, 1.5F}) == Floats{-1, 2});
  CHECK(unary("sign", {-3, 0, 5, -kInf}) == Floats{-1, 0, 1, -1});
  CHECK(std::isnan(unary("sign", {kNan})[0]));
  CHECK(std::isnan(unary("relu", {kNan})[0]));
  CHECK(std::isnan(unary("sqrt", {-1})[0]));
  CHECK(unary("log", {0, 1}) == Floats{-kInf, 0});
  CHECK(unary("sigmoid", {-1000, 1000}) == Floats{0, 1});
  CHECK(unary("softplus", {-1000, 1000}) == Floats{0, 1000});
  CHECK(values<std::int32_t>(run_op("abs", {tensor<std::int32_t>({3}, {-5, 7, kLeast})})[0]) ==
        std::vector<std::int32_t>{5, 7, kLeast});
  CHECK(values<std::int32_t>(run_op("neg", {tensor<std::int32_t>({2}, {-5, kLeast})})[0]) ==
        std::vector<std::int32_t>{5, kLeast});
  CHECK(values<std::uint8_t>(run_op("bitwise_not", {tensor<std::uint8_t>({2}, {0, 0x0f})})[0]) ==
        std::vector<std::uint8_t>{255, 0xf0});
}

TEST_CASE("predicates give booleans") {
  const Tensor x = f32({4}, {1, kNan, kInf, -kInf});
  const auto of = [&](std::string_view op, const AttrMap& attrs = {}) {
    return values<bool>(run_op(op, {x}, attrs)[0]);
  };
  CHECK(of("is_nan") == std::vector<bool>{false, true, false, false});
  CHECK(of("is_inf") == std::vector<bool>{false, false, true, true});
  CHECK(of("is_inf", {{"detect_negative", std::int64_t{0}}}) ==
        std::vector<bool>{false, false, true, false});
  CHECK(of("is_inf", {{"detect_positive", std::int64_t{0}}}) ==
        std::vector<bool>{false, false, false, true});
  CHECK(compare("less", {1, 2, kNan}, {2, 2, 1}) == std::vector<bool>{true, false, false});
  CHECK(compare("less_or_equal", {1, 2, kNan}, {2, 2, 1}) == std::vector<bool>{true, true, false});
  CHECK(compare("greater", {3, 2, kNan}, {2, 2, kNan}) == std::vector<bool>{true, false, false});
  CHECK(compare("greater_or_equal", {3, 2, 1}, {2, 2, kNan}) ==
        std::vector<bool>{true, true, false});
  CHECK(compare("equal", {0, 2, kNan}, {-0.0F, 3, kNan}) == std::vector<bool>{true, false, false});
}

TEST_CASE("arithmetic of integers wraps and never traps") {
  CHECK(binary<std::int8_t>("add", {127}, {1}) == std::vector<std::int8_t>{-128});
  CHECK(binary<std::uint16_t>("mul", {65535}, {65535}) == std::vector<std::uint16_t>{1});
  CHECK(binary<std::int32_t>("sub", {kLeast}, {1}) == std::vector<std::int32_t>{2147483647});
  CHECK(binary<std::int32_t>("div", {7, -7, 7, kLeast, 5}, {2, 2, -2, -1, 0}) ==
        std::vector<std::int32_t>{3, -3, -3, kLeast, 0});
  CHECK(binary<std::int32_t>("mod", {7, -7, 7, kLeast, 5}, {3, 3, -3, -1, 0}) ==
        std::vector<std::int32_t>{1, 2, -2, 0, 0});
  CHECK(binary<std::int32_t>("mod", {7, -7, 7}, {3, 3, -3}, {{"fmod", std::int64_t{1}}}) ==
        std::vector<std::int32_t>{1, -1, 1});
  CHECK(binary<float>("mod", {5.5F, -5.5F}, {2, 2}, {{"fmod", std::int64_t{1}}}) ==
        Floats{1.5F, -1.5F});
  CHECK(binary<std::uint8_t>("bit_shift", {3, 255}, {1, 9}, {{"direction", std::string("LEFT")}}) ==
        std::vector<std::uint8_t>{6, 0});
  CHECK(
      binary<std::uint8_t>("bit_shift", {3, 255}, {1, 7}, {{"direction", std::string("RIGHT")}}) ==
      std::vector<std::uint8_t>{1, 1});
}

TEST_CASE("powers of mixed types") {
  CHECK(binary<float>("pow", {2, -2, 2, 0}, {3, 3, -1, 0}) == Floats{8, -8, 0.5F, 1});
  CHECK(binary<std::int64_t>("pow", {3, -2, 2, 1}, {4, 3, -1, -5}) ==
        std::vector<std::int64_t>{81, -8, 0, 1});
  const Tensor base = tensor<std::int32_t>({3}, {1, 2, 3});
  CHECK(values<std::int32_t>(run_op("pow", {base, f32({3}, {4, 0.5F, 2})})[0]) ==
        std::vector<std::int32_t>{1, 1, 9});
  CHECK(values(run_op("pow", {f32({2}, {1.5F, 2}), i64({2, -1})})[0]) == Floats{2.25F, 0.5F});
}

TEST_CASE("max and min keep NaN, logic and bits") {
  const Floats top = binary<float>("max", {1, kNan, 3}, {2, 1, kNan});
  CHECK(top[0] == 2);
  CHECK((std::isnan(top[1]) && std::isnan(top[2])));
  const Floats low = binary<float>("min", {1, kNan, 3}, {2, 1, kNan});
  CHECK(low[0] == 1);
  CHECK((std::isnan(low[1]) && std::isnan(low[2])));
  CHECK(binary<std::int32_t>("bitwise_xor", {6}, {3}) == std::vector<std::int32_t>{5});
  CHECK(binary<std::int32_t>("bitwise_and", {6}, {3}) == std::vector<std::int32_t>{2});
  CHECK(binary<std::int32_t>("bitwise_or", {6}, {3}) == std::vector<std::int32_t>{7});
  CHECK(binary<float>("prelu", {-2, 3}, {0.5F, 9}) == Floats{-1, 3});
}

TEST_CASE("operands are broadcast") {
  const Tensor a = counting({2, 1, 3});
  const Tensor b = f32({2, 1}, {10, 20});
  CHECK(values(run_op("add", {a, b})[0]) == Floats{10, 11, 12, 20, 21, 22, 13, 14, 15, 23, 24, 25});
  CHECK(values(run_op("sub", {f32({}, {1}), b})[0]) == Floats{-9, -19});
  CHECK(run_op("mul", {counting({2, 0}), f32({}, {1})})[0].shape() == Shape{2, 0});
}

TEST_CASE("where, clip and cast") {
  const std::array<bool, 2> bits = {true, false};
  const Tensor condition = Tensor::of<bool>({2, 1}, bits);
  CHECK(values(run_op("where", {condition, f32({2}, {1, 2}), f32({}, {9})})[0]) ==
        Floats{1, 2, 9, 9});
  const Tensor x = f32({4}, {-5, 0.5F, 5, kNan});
  const Floats clipped = values(run_op("clip", {x, f32({}, {-1}), f32({}, {1})})[0]);
  CHECK((clipped[0] == -1 && clipped[1] == 0.5F && clipped[2] == 1 && std::isnan(clipped[3])));
  CHECK(values(run_op("clip", {x, Tensor(), f32({}, {1})})[0])[0] == -5);
  CHECK(values(run_op("clip", {f32({1}, {0}), f32({}, {5}), f32({}, {-5})})[0])[0] == -5);
  const auto cast = [](const Tensor& from, std::string to) {
    return run_op("cast", {from}, {{"to", std::move(to)}})[0];
  };
  CHECK(values<std::int32_t>(cast(f32({3}, {1.9F, -1.9F, 3e9F}), "i32")) ==
        std::vector<std::int32_t>{1, -1, 2147483647});
  CHECK(values<bool>(cast(f32({3}, {0, -0.0F, 0.1F}), "bool")) ==
        std::vector<bool>{false, false, true});
  CHECK(values<std::uint8_t>(cast(i64({-1, 257}), "u8")) == std::vector<std::uint8_t>{255, 1});
  CHECK(values<Half>(cast(f32({1}, {1.0F / 3}), "f16"))[0].bits == 0x3555);
}

TEST_CASE("one_hot") {
  const Tensor on_off = f32({2}, {-1, 5});
  CHECK(values(run_op("one_hot", {i64({1, -1, 9}), i64({3}), on_off})[0]) ==
        Floats{-1, 5, -1, -1, -1, 5, -1, -1, -1});
  CHECK(values(run_op("one_hot", {i64({1, 0}), i64({2}), on_off},
                      {{"axis", std::int64_t{0}}})[0]) == Floats{-1, 5, 5, -1});
}

TEST_CASE("wrong operands and attributes are errors that name the node") {
  const Tensor x = f32({2}, {1, 2});
  CHECK_THAT(op_error("add", {x, i64({1, 2})}),
             ContainsSubstring("[add] node 'node': operands f32[2] and i64[2] differ in type"));
  CHECK_THAT(op_error("add", {x, f32({3}, {1, 2, 3})}),
             ContainsSubstring("[add] node 'node': shapes [2] and [3] can't be broadcast"));
  CHECK_THAT(op_error("not", {x}), ContainsSubstring("input 0 is f32, expected bool"));
  CHECK_THAT(op_error("exp", {i64({1})}),
             ContainsSubstring("input 0 is i64, expected a floating type"));
  CHECK_THAT(op_error("gelu", {x}, {{"approximate", std::string("most")}}),
             ContainsSubstring("approximate 'most'"));
  CHECK_THAT(op_error("mod", {x, x}), ContainsSubstring("needs fmod=1"));
  CHECK_THAT(op_error("prelu", {x, counting({3, 2})}), ContainsSubstring("slope f32[3,2]"));
  CHECK_THAT(op_error("cast", {x}, {{"to", std::string("float")}}),
             ContainsSubstring("there is no type 'float'"));
  CHECK_THAT(op_error("clip", {x, x}), ContainsSubstring("is not a scalar"));
  CHECK_THAT(op_error("where", {x, x, x}), ContainsSubstring("expected bool"));
  CHECK_THAT(op_error("one_hot", {i64({1}), i64({-3}), x}),
             ContainsSubstring("depth -3 is negative"));
  CHECK_THAT(op_error("one_hot", {i64({1}), f32({}, {1e30F}), x}), ContainsSubstring("elements"));
  CHECK_THAT(op_error("one_hot", {i64({1}), i64({3}), x}, {{"axis", std::int64_t{4}}}),
             ContainsSubstring("axis 4"));
  const Tensor bits = tensor<std::uint8_t>({1}, {1});
  CHECK_THAT(op_error("bit_shift", {bits, bits}, {{"direction", std::string("UP")}}),
             ContainsSubstring("direction 'UP'"));
}
