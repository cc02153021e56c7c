#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/portable.hpp"

namespace turnout {

/// Element types of tensors. Booleans take one byte, 0 or 1.
enum class DType : std::uint8_t {
  undefined,
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
};

/// IEEE binary16, stored; arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  TURNOUT_HD explicit Half(float value) : bits(from_float(value)) {}
  TURNOUT_HD operator float() const { return to_float(bits); }
  TURNOUT_HD static std::uint16_t from_float(float value);
  TURNOUT_HD static float to_float(std::uint16_t bits);
};

/// bfloat16, stored; arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  TURNOUT_HD explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool nan = (word & 0x7fffffffU) > 0x7f800000U;
    bits = nan ? static_cast<std::uint16_t>((word >> 16) | 0x40U)
               : static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
  TURNOUT_HD operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// Bytes of one element; 0 for undefined.
std::size_t size_of(DType dtype);
std::string_view to_string(DType dtype);  ///< "f32", "bool", ...
std::optional<DType> parse_dtype(std::string_view name);
bool is_floating(DType dtype);
bool is_integer(DType dtype);  ///< signed and unsigned integers, without boolean

template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<Half> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::i8; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<std::uint16_t> { static constexpr DType value = DType::u16; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::uint32_t> { static constexpr DType value = DType::u32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<std::uint64_t> { static constexpr DType value = DType::u64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
// clang-format on
template <typename T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

/// Calls `f(std::type_identity<T>{})` with the C++ type of `dtype`; throws for undefined.
template <typename F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::f16:
      return f(std::type_identity<Half>{});
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    case DType::i8:
      return f(std::type_identity<std::int8_t>{});
    case DType::u8:
      return f(std::type_identity<std::uint8_t>{});
    case DType::i16:
      return f(std::type_identity<std::int16_t>{});
    case DType::u16:
      return f(std::type_identity<std::uint16_t>{});
    case DType::i32:
      return f(std::type_identity<std::int32_t>{});
    case DType::u32:
      return f(std::type_identity<std::uint32_t>{});
    case DType::i64:
      return f(std::type_identity<std::int64_t>{});
    case DType::u64:
      return f(std::type_identity<std::uint64_t>{});
    case DType::boolean:
      return f(std::type_identity<bool>{});
    case DType::undefined:
      break;
  }
  fail(ErrorCode::internal, "dispatch on an undefined dtype");
}

TURNOUT_HD inline std::uint16_t Half::from_float(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word >> 16) & 0x8000U;
  const std::uint32_t magnitude = word & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {  // subnormal: let float addition round to even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

TURNOUT_HD inline float Half::to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  }
  if (magnitude < 0x400U) {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
}

}  // namespace turnout
