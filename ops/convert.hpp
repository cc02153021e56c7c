#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.hpp"
#include "core/portable.hpp"

// Conversions between element types, defined for every value: what `cast` does, on host and device.
namespace turnout {

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool is_floating_type = std::is_floating_point_v<T> || is_half<T>;

/// Rounds towards the neighbour with an odd last bit: rounding that again to a 16-bit type gives
/// what rounding the double at once would.
TURNOUT_HD inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) bits -= 1;
  return std::bit_cast<float>(bits | 1U);
}

/// Floating to integer truncates; what doesn't fit becomes the nearest limit, NaN becomes 0.
template <typename To, typename From>
TURNOUT_HD inline To truncate(From value) {
  using Limits = std::numeric_limits<To>;
  // 2^digits is exact in every floating type, max() isn't.
  const From above = static_cast<From>(Limits::max() / 2 + 1) * From(2);
  if (value != value) return To(0);
  if (value >= above) return Limits::max();
  if (value <= static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(value);
}

/// `value` as a To. Integers wrap; to boolean is `!= 0`; see truncate().
template <typename To, typename From>
TURNOUT_HD inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (is_half<To> && std::is_same_v<From, float>) {
    return To(value);
  } else if constexpr (is_half<To>) {
    return To(round_to_odd(static_cast<double>(value)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

namespace detail {
template <typename T>
struct Compute {
  using type = std::conditional_t<is_half<T>, float, T>;
};
template <typename T>
struct Wide {
  using type = std::conditional_t<is_floating_type<T>, double, T>;
};
}  // namespace detail

/// Type in which kernels compute on elements of T: float for the 16-bit types, else T.
template <typename T>
using ComputeType = typename detail::Compute<T>::type;
/// Type in which references compute: double for every floating T, else T.
template <typename T>
using WideType = typename detail::Wide<T>::type;

}  // namespace turnout
