#pragma once

#include <cstdint>

#include "ops/functor_types.hpp"

// Functors of two operands, which are broadcast to each other. See functors.hpp. Integer results
// wrap; dividing an integer by 0 gives 0.
namespace turnout {

template <TypeMask Types, bool Exact, int Flops = 1>
struct BinaryFunctor {
  static constexpr TypeMask types = Types;
  static constexpr bool exact = Exact;
  static constexpr int flops = Flops;
  static std::vector<AttrDef> attrs() { return {}; }
};

// A functor without attributes that is one expression of a and b; `W` is the type in which
// integers wrap.
#define TURNOUT_BINARY(Struct, op_name, op_doc, mask, is_exact, result, expression) \
  struct Struct : BinaryFunctor<mask, is_exact> {                                   \
    static constexpr std::string_view name = op_name;                               \
    static constexpr std::string_view doc = op_doc;                                 \
    static Struct make(const AttrMap&) { return {}; }                               \
    template <typename T>                                                           \
    TURNOUT_HD result operator()(T a, T b) const {                                  \
      return expression;                                                            \
    }                                                                               \
  };

namespace detail {
/// The type to compute sums and products of T in: T itself, or an unsigned one that wraps.
template <typename T>
struct Arithmetic {
  using type = T;
};
template <typename T>
requires std::is_integral_v<T>
struct Arithmetic<T> {
  using type = Wrapping<T>;
};
template <typename T>
using ArithmeticType = typename Arithmetic<T>::type;

template <typename T>
TURNOUT_HD inline T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));
    }
  }
  return static_cast<T>(a / b);
}
}  // namespace detail

TURNOUT_BINARY(Add, "add", "a + b.", kNumericTypes, false, T,
               static_cast<T>(detail::ArithmeticType<T>(a) + detail::ArithmeticType<T>(b)))
TURNOUT_BINARY(Sub, "sub", "a - b.", kNumericTypes, false, T,
               static_cast<T>(detail::ArithmeticType<T>(a) - detail::ArithmeticType<T>(b)))
TURNOUT_BINARY(Mul, "mul", "a * b.", kNumericTypes, false, T,
               static_cast<T>(detail::ArithmeticType<T>(a) * detail::ArithmeticType<T>(b)))
TURNOUT_BINARY(Div, "div", "a / b; integers truncate towards 0.", kNumericTypes, false, T,
               detail::divide(a, b))
TURNOUT_BINARY(Max, "max", "The larger of a and b; NaN if one is.", kNumericTypes, true, T,
               (a != a || a > b) ? a : b)
TURNOUT_BINARY(Min, "min", "The smaller of a and b; NaN if one is.", kNumericTypes, true, T,
               (a != a || a < b) ? a : b)
TURNOUT_BINARY(Equal, "equal", "True where a = b.", kAllTypes, true, bool, a == b)
TURNOUT_BINARY(Less, "less", "True where a < b.", kNumericTypes, true, bool, a < b)
TURNOUT_BINARY(Greater, "greater", "True where a > b.", kNumericTypes, true, bool, a > b)
TURNOUT_BINARY(LessOrEqual, "less_or_equal", "True where a <= b.", kNumericTypes, true, bool,
               a <= b)
TURNOUT_BINARY(GreaterOrEqual, "greater_or_equal", "True where a >= b.", kNumericTypes, true, bool,
               a >= b)
TURNOUT_BINARY(And, "and", "Logical and.", kBooleanType, true, T, a&& b)
TURNOUT_BINARY(Or, "or", "Logical or.", kBooleanType, true, T, a || b)
TURNOUT_BINARY(Xor, "xor", "Logical exclusive or.", kBooleanType, true, T, a != b)
TURNOUT_BINARY(BitwiseAnd, "bitwise_and", "Bits set in both.", kIntegerTypes, true, T,
               static_cast<T>(a& b))
TURNOUT_BINARY(BitwiseOr, "bitwise_or", "Bits set in either.", kIntegerTypes, true, T,
               static_cast<T>(a | b))
TURNOUT_BINARY(BitwiseXor, "bitwise_xor", "Bits set in one of both.", kIntegerTypes, true, T,
               static_cast<T>(a ^ b))
TURNOUT_BINARY(PRelu, "prelu", "a, or b * a where a < 0. b is broadcast to a.", kNumericTypes,
               false, T,
               a < T(0)
                   ? static_cast<T>(detail::ArithmeticType<T>(a) * detail::ArithmeticType<T>(b))
                   : a)
#undef TURNOUT_BINARY

struct Mod : BinaryFunctor<kNumericTypes, true> {
  static constexpr std::string_view name = "mod";
  static constexpr std::string_view doc =
      "Remainder of a / b: the sign is b's, or with fmod a's. Floating types need fmod.";
  bool fmod = false;
  static std::vector<AttrDef> attrs() { return {attr("fmod", std::int64_t{0}, "1: as C's fmod.")}; }
  static Mod make(const AttrMap& attrs) {
    Mod op;
    op.fmod = attrs.integer("fmod") != 0;
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      const auto rest = static_cast<T>(a % b);
      return !fmod && rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
    }
  }
};

/// The exponent may be of another type; the result has the base's.
struct Pow : BinaryFunctor<kNumericTypes, false, 20> {
  static constexpr std::string_view name = "pow";
  static constexpr std::string_view doc = "a to the power of b, in the type of a.";
  static Pow make(const AttrMap&) { return {}; }
  template <typename A, typename B>
  TURNOUT_HD A operator()(A a, B b) const {
    if constexpr (std::is_same_v<A, float> && std::is_same_v<B, float>) {
      return std::pow(a, b);
    } else if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
      if (b >= B(0)) return integer_power(a, static_cast<std::uint64_t>(b));
      return convert<A>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    } else {
      return convert<A>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
  }

 private:
  template <typename T>
  TURNOUT_HD static T integer_power(T base, std::uint64_t exponent) {
    using Word = detail::ArithmeticType<T>;
    Word result = 1;
    for (auto factor = static_cast<Word>(base); exponent != 0; exponent >>= 1) {
      if ((exponent & 1U) != 0) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
};

struct BitShift : BinaryFunctor<kUnsignedTypes, true> {
  static constexpr std::string_view name = "bit_shift";
  static constexpr std::string_view doc = "a shifted by b bits.";
  bool left = false;
  static std::vector<AttrDef> attrs() {
    return {required_attr("direction", AttrType::text, "LEFT or RIGHT.")};
  }
  static BitShift make(const AttrMap& attrs) {
    BitShift op;
    op.left = attrs.text("direction") == "LEFT";
    return op;
  }
  template <typename T>
  TURNOUT_HD T operator()(T a, T b) const {
    if (static_cast<std::uint64_t>(b) >= sizeof(T) * 8) return T(0);
    const auto word = static_cast<std::uint64_t>(a);
    return static_cast<T>(left ? word << b : word >> b);
  }
};

using BinaryOps =
    TypeList<Add, Sub, Mul, Div, Pow, Mod, Max, Min, Equal, Less, Greater, LessOrEqual,
             GreaterOrEqual, And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, BitShift, PRelu>;

}  // namespace turnout
