#pragma once

#include <cmath>
#include <string_view>
#include <type_traits>

#include "core/attrs.hpp"
#include "core/portable.hpp"
#include "ops/convert.hpp"

namespace turnout {

/// Sets of element types, as bits.
enum TypeMask : unsigned {
  kFloatingTypes = 1,
  kSignedTypes = 2,
  kUnsignedTypes = 4,
  kBooleanType = 8,
  kIntegerTypes = kSignedTypes | kUnsignedTypes,
  kSignedNumbers = kFloatingTypes | kSignedTypes,
  kNumericTypes = kFloatingTypes | kIntegerTypes,
  kAllTypes = kNumericTypes | kBooleanType,
};

template <typename T>
inline constexpr TypeMask mask_of = is_floating_type<T>       ? kFloatingTypes
                                    : std::is_same_v<T, bool> ? kBooleanType
                                    : std::is_signed_v<T>     ? kSignedTypes
                                                              : kUnsignedTypes;

/// The set that holds `dtype`.
inline TypeMask type_mask(DType dtype) {
  return dispatch(dtype, []<typename T>(std::type_identity<T>) { return mask_of<T>; });
}

/// True if the functor Op can be given elements of T.
template <typename Op, typename T>
inline constexpr bool takes = (Op::types & mask_of<T>) != 0;

/// True if results are booleans whatever the operands are.
template <typename Op>
inline constexpr bool is_unary_predicate = std::is_same_v<std::invoke_result_t<Op, float>, bool>;
template <typename Op>
inline constexpr bool is_binary_predicate =
    std::is_same_v<std::invoke_result_t<Op, float, float>, bool>;

template <typename... Ts>
struct TypeList {};

/// Calls f(std::type_identity<T>{}) for every type of the list.
template <typename... Ts, typename F>
void for_each_type(TypeList<Ts...>, F&& f) {
  (f(std::type_identity<Ts>{}), ...);
}

namespace detail {
/// Unsigned type of at least 32 bits in which sums and products of T wrap.
template <typename T>
using Wrapping = std::make_unsigned_t<decltype(T() + T())>;
}  // namespace detail

}  // namespace turnout
