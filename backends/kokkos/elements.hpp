#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/kokkos/mode.hpp"
#include "core/dtype.hpp"
#include "core/portable.hpp"

// Elements of a type known at run time, worked with in one of four wide types: float (f32, f16,
// bf16), double (f64), uint64_t (u64) and int64_t (other integers and booleans). Rows are loaded
// and stored in blocks, so that an op is compiled four times rather than thirteen; where the stored
// type is the wide one nothing is copied. Results of narrow integers wrap when they are stored.
#if defined(__F16C__) && !TURNOUT_KOKKOS_DEVICE
#include <immintrin.h>
#endif

namespace turnout::kokkos {

/// Elements of a block; three of them are a part of the first cache.
inline constexpr std::int64_t kBlockElements = 512;

/// Calls f(std::type_identity<W>{}) with the wide type of `dtype`.
template <typename F>
decltype(auto) dispatch_wide(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::u64:
      return f(std::type_identity<std::uint64_t>{});
    default:
      return f(std::type_identity<std::int64_t>{});
  }
}

/// The same for floating types alone.
template <typename F>
decltype(auto) dispatch_compute(DType dtype, F&& f) {
  return dtype == DType::f64 ? f(std::type_identity<double>{}) : f(std::type_identity<float>{});
}

/// Bytes of one element, as size_of() has it.
TURNOUT_HD inline int element_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    default:
      return 1;
  }
}

/// Element `at` of data whose wide type is W.
template <typename W>
TURNOUT_HD W load_element(const void* data, DType dtype, std::int64_t at) {
  if constexpr (std::is_same_v<W, float>) {
    if (dtype == DType::f16) return static_cast<const Half*>(data)[at];
    if (dtype == DType::bf16) return static_cast<const BFloat16*>(data)[at];
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    switch (dtype) {
      case DType::i8:
        return static_cast<const std::int8_t*>(data)[at];
      case DType::i16:
        return static_cast<const std::int16_t*>(data)[at];
      case DType::u16:
        return static_cast<const std::uint16_t*>(data)[at];
      case DType::i32:
        return static_cast<const std::int32_t*>(data)[at];
      case DType::u32:
        return static_cast<const std::uint32_t*>(data)[at];
      case DType::i64:
        break;
      default:  // u8, boolean
        return static_cast<const std::uint8_t*>(data)[at];
    }
  }
  return static_cast<const W*>(data)[at];
}

/// Narrow integers wrap.
template <typename W>
TURNOUT_HD void store_element(void* data, DType dtype, std::int64_t at, W value) {
  if constexpr (std::is_same_v<W, float>) {
    if (dtype == DType::f16) {
      static_cast<Half*>(data)[at] = Half(value);
      return;
    }
    if (dtype == DType::bf16) {
      static_cast<BFloat16*>(data)[at] = BFloat16(value);
      return;
    }
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    switch (element_bytes(dtype)) {
      case 1:
        static_cast<std::uint8_t*>(data)[at] = static_cast<std::uint8_t>(value);
        return;
      case 2:
        static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(value);
        return;
      case 4:
        static_cast<std::uint32_t*>(data)[at] = static_cast<std::uint32_t>(value);
        return;
      default:
        break;
    }
  }
  static_cast<W*>(data)[at] = value;
}

/// Limits of an integer type that is worked with as int64_t.
struct IntegerLimits {
  std::int64_t low, high;
};
inline IntegerLimits integer_limits(DType dtype) {
  return dispatch(dtype, []<typename T>(std::type_identity<T>) -> IntegerLimits {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, std::uint64_t>) {
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    } else {
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
    }
  });
}

// Halves by the processor's own conversions, where it has them: the portable ones branch. Each
// converts what makes up whole vectors and returns how many elements that is.
#if defined(__F16C__) && !TURNOUT_KOKKOS_DEVICE
inline std::int64_t load_halves(const Half* from, std::int64_t n, float* to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  return i;
}
inline std::int64_t store_halves(const float* from, std::int64_t n, Half* to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}
#else
TURNOUT_HD inline std::int64_t load_halves(const Half*, std::int64_t, float*) { return 0; }
TURNOUT_HD inline std::int64_t store_halves(const float*, std::int64_t, Half*) { return 0; }
#endif

template <typename W, typename T>
TURNOUT_HD void load_as(const void* data, std::int64_t offset, std::int64_t stride, std::int64_t n,
                        W* to) {
  const T* from = static_cast<const T*>(data) + offset;
  if (stride == 1) {
    std::int64_t i = 0;
    if constexpr (std::is_same_v<T, Half>) i = load_halves(from, n, to);
    for (; i < n; ++i) to[i] = static_cast<W>(from[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<W>(from[i * stride]);
  }
}

/// The n <= kBlockElements elements at `offset`, `stride` apart: where they are, if dense and of
/// type W, else copied to `buffer`.
template <typename W>
TURNOUT_HD const W* load_block(const void* data, DType dtype, std::int64_t offset,
                               std::int64_t stride, std::int64_t n, W* buffer) {
  if (dtype == dtype_of<W>) {
    if (stride == 1) return static_cast<const W*>(data) + offset;
    load_as<W, W>(data, offset, stride, n, buffer);
    return buffer;
  }
  if constexpr (std::is_same_v<W, float>) {
    if (dtype == DType::f16) load_as<W, Half>(data, offset, stride, n, buffer);
    if (dtype == DType::bf16) load_as<W, BFloat16>(data, offset, stride, n, buffer);
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    switch (dtype) {
      case DType::i8:
        load_as<W, std::int8_t>(data, offset, stride, n, buffer);
        break;
      case DType::i16:
        load_as<W, std::int16_t>(data, offset, stride, n, buffer);
        break;
      case DType::u16:
        load_as<W, std::uint16_t>(data, offset, stride, n, buffer);
        break;
      case DType::i32:
        load_as<W, std::int32_t>(data, offset, stride, n, buffer);
        break;
      case DType::u32:
        load_as<W, std::uint32_t>(data, offset, stride, n, buffer);
        break;
      default:  // u8, boolean
        load_as<W, std::uint8_t>(data, offset, stride, n, buffer);
    }
  }
  return buffer;
}

template <typename W, typename T>
TURNOUT_HD void store_as(void* data, std::int64_t offset, std::int64_t n, const W* from) {
  T* to = static_cast<T*>(data) + offset;
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, Half>) i = store_halves(from, n, to);
  for (; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

/// Where a block of results is put: in place, or in `buffer` for store_block() to convert.
template <typename W>
TURNOUT_HD W* result_block(void* data, DType dtype, std::int64_t offset, W* buffer) {
  return dtype == dtype_of<W> ? static_cast<W*>(data) + offset : buffer;
}

/// Ends what result_block() began: `from` is what it gave.
template <typename W>
TURNOUT_HD void store_block(void* data, DType dtype, std::int64_t offset, std::int64_t n,
                            const W* from) {
  if (dtype == dtype_of<W>) return;
  if constexpr (std::is_same_v<W, float>) {
    if (dtype == DType::f16) store_as<W, Half>(data, offset, n, from);
    if (dtype == DType::bf16) store_as<W, BFloat16>(data, offset, n, from);
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    switch (element_bytes(dtype)) {  // the low bytes, signed or not
      case 1:
        store_as<W, std::uint8_t>(data, offset, n, from);
        break;
      case 2:
        store_as<W, std::uint16_t>(data, offset, n, from);
        break;
      default:
        store_as<W, std::uint32_t>(data, offset, n, from);
    }
  }
}

}  // namespace turnout::kokkos
