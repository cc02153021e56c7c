#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch_test_macros.hpp>

#include "core/dtype.hpp"
#include "core/tensor.hpp"
#include "ops/convert.hpp"

using namespace turnout;

namespace {

// Value of a 16-bit float, from its definition.
double value_of(std::uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_mask = (1 << (15 - mantissa_bits)) - 1;
  const int exponent = (bits >> mantissa_bits) & exponent_mask;
  const double mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  const double scale = std::ldexp(1.0, -mantissa_bits);
  if (exponent == exponent_mask) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa * scale, 1 - bias);
  return sign * std::ldexp(1 + mantissa * scale, exponent - bias);
}

// Checks one conversion from double by what rounding to even means: no representable neighbour is
// nearer, and of two equally near ones it is the even.
template <typename T>
bool is_nearest(double x, T rounded, int mantissa_bits, int bias) {
  const auto bits = static_cast<std::uint16_t>(rounded.bits & 0x7fff);
  const auto at = [&](int b) {
    return value_of(static_cast<std::uint16_t>(b), mantissa_bits, bias);
  };
  const double infinity = std::ldexp(2.0, bias);  // what the step after the largest value would be
  const auto finite = [&](int b) { return std::isinf(at(b)) ? infinity : at(b); };
  if ((rounded.bits & 0x8000) != (std::signbit(x) ? 0x8000 : 0)) return false;
  x = std::abs(x);
  const double distance = std::abs(finite(bits) - x);
  if (bits > 0) {
    const double below = std::abs(finite(bits - 1) - x);
    if (below < distance || (below == distance && bits % 2 != 0)) return false;
  }
  if (std::isinf(at(bits))) return true;
  const double above = std::abs(finite(bits + 1) - x);
  return distance < above || (distance == above && bits % 2 == 0);
}

template <typename T>
void check_all(int mantissa_bits, int bias) {
  int wrong = 0;
  for (int i = 0; i < 0x10000; ++i) {
    T stored;
    stored.bits = static_cast<std::uint16_t>(i);
    const double want = value_of(stored.bits, mantissa_bits, bias);
    const float got = stored;
    const bool both_nan = std::isnan(want) && std::isnan(got);
    wrong += !both_nan && static_cast<double>(got) != want ? 1 : 0;
    wrong += !both_nan && std::signbit(got) != std::signbit(want) ? 1 : 0;
    // And back: every value is its own nearest one. NaN stays NaN.
    const T back(got);
    wrong += both_nan ? !std::isnan(static_cast<float>(back)) : back.bits != stored.bits;
  }
  CHECK(wrong == 0);
}

// Around every value: the middle of the gap above it, and the floats next to that.
template <typename T>
void check_rounding(int mantissa_bits, int bias) {
  int wrong = 0;
  const int top = ((1 << (15 - mantissa_bits)) - 1) << mantissa_bits;
  for (int i = 0; i < top; ++i) {
    const double here = value_of(static_cast<std::uint16_t>(i), mantissa_bits, bias);
    const double next = i + 1 == top
                            ? std::ldexp(2.0, bias)
                            : value_of(static_cast<std::uint16_t>(i + 1), mantissa_bits, bias);
    const auto middle = static_cast<float>(here / 2 + next / 2);
    for (float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      if (std::isinf(x)) continue;
      wrong += is_nearest(x, T(x), mantissa_bits, bias) ? 0 : 1;
      wrong += is_nearest(-x, T(-x), mantissa_bits, bias) ? 0 : 1;
    }
    // Doubles just beside the middle, which a float can't tell from it.
    const double exact = here / 2 + next / 2;
    for (double x : {exact, std::nextafter(exact, 0.0), std::nextafter(exact, INFINITY)}) {
      wrong += is_nearest(x, convert<T>(x), mantissa_bits, bias) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every f16 and bf16 is read and written as IEEE 754 says") {
  check_all<Half>(10, 15);
  check_all<BFloat16>(7, 127);
}

TEST_CASE("floats and doubles round to the nearest f16 and bf16, ties to even") {
  check_rounding<Half>(10, 15);
  check_rounding<BFloat16>(7, 127);
}

TEST_CASE("overflow, tiny values and NaN of 16-bit floats") {
  CHECK(Half(65519.0F).bits == 0x7bff);
  CHECK(Half(65520.0F).bits == 0x7c00);
  CHECK(Half(1e30F).bits == 0x7c00);
  CHECK(Half(-1e30F).bits == 0xfc00);
  CHECK(Half(0x1p-25F).bits == 0);
  CHECK(Half(0x1.000002p-25F).bits == 1);
  CHECK(Half(-0.0F).bits == 0x8000);
  CHECK(std::isnan(static_cast<float>(Half(NAN))));
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(std::isnan(static_cast<float>(BFloat16(NAN))));
  // A NaN whose payload lies in the lost bits must not become infinity.
  CHECK(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001U)))));
  CHECK(std::isnan(static_cast<float>(Half(std::bit_cast<float>(0x7f800001U)))));
}

TEST_CASE("dtypes have names, sizes and C++ types") {
  for (int i = 1; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    INFO(to_string(dtype));
    CHECK(parse_dtype(to_string(dtype)) == dtype);
    dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
      CHECK(sizeof(T) == size_of(dtype));
      CHECK(dtype_of<T> == dtype);
      CHECK(is_floating(dtype) == is_floating_type<T>);
    });
  }
  CHECK_FALSE(parse_dtype("undefined"));
  CHECK_FALSE(parse_dtype("float"));
  CHECK_THROWS_AS(dispatch(DType::undefined, [](auto) {}), Error);
  CHECK(is_integer(DType::u8));
  CHECK_FALSE(is_integer(DType::boolean));
}

TEST_CASE("conversions are defined for every value") {
  CHECK(convert<std::int8_t>(300.0F) == 127);
  CHECK(convert<std::int8_t>(-300.0F) == -128);
  CHECK(convert<std::int8_t>(-1.9F) == -1);
  CHECK(convert<std::int32_t>(2147483648.0F) == 2147483647);
  CHECK(convert<std::int32_t>(2147483520.0F) == 2147483520);
  CHECK(convert<std::int64_t>(1e19) == std::numeric_limits<std::int64_t>::max());
  CHECK(convert<std::int64_t>(-1e19) == std::numeric_limits<std::int64_t>::min());
  CHECK(convert<std::uint64_t>(1.8446744073709552e19) == std::numeric_limits<std::uint64_t>::max());
  CHECK(convert<std::uint8_t>(-1.0) == 0);
  CHECK(convert<std::int32_t>(NAN) == 0);
  CHECK(convert<bool>(NAN));
  CHECK(convert<bool>(-0.0F) == false);
  CHECK(convert<std::uint8_t>(std::int64_t{-1}) == 255);
  CHECK(convert<float>(Half(0.5F)) == 0.5F);
  CHECK(convert<std::int16_t>(BFloat16(-3.0F)) == -3);
}

TEST_CASE("tensors check type, size and place of what they are asked for") {
  const Tensor tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(tensor.bytes() == 24);
  CHECK(tensor.reshaped({3, 2}).data<float>() == tensor.data<float>());
  CHECK_THROWS_AS(tensor.reshaped({7}), Error);
  CHECK_THROWS_AS(tensor.data<double>(), Error);
  CHECK_THROWS_AS(Tensor().data<float>(), Error);
  CHECK_THROWS_AS(Tensor::of<float>({3}, std::vector<float>{1, 2}), Error);
  CHECK_THROWS_AS(Tensor({DType::f32, {4}}, allocate_host(12)), Error);
  CHECK_THROWS_AS(Tensor({DType::f32, {1}}, allocate_host(8), 5), Error);
  CHECK_THROWS_AS(to_int64(tensor), Error);
  CHECK(to_int64(Tensor::of<std::uint8_t>({2}, {1, 255})) == std::vector<std::int64_t>{1, 255});
  CHECK(to_double(Tensor::scalar(Half(1.5F))) == std::vector<double>{1.5});
  CHECK(Tensor::scalar(true).values<bool>()[0]);
}
