#pragma once

#include <cstring>
#include <new>

#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/support.hpp"

// Elementwise ops by rows. A row object does one op on a block of dense elements of a wide type:
// the only code there is per op. Tiles find the blocks, and convert them where the stored type is
// another one.
//
// On the host, row objects are called through a pointer once a block (AnyRow), so that tiles are
// compiled once per wide type. On devices, where functions can't be pointed to, a thread has one
// element, and calls the row's `at`.
namespace turnout::kokkos {

/// About how long one element takes, in nanoseconds: cheap ops wait for memory, dear ones call the
/// mathematical library.
inline double element_ns_of(int flops) { return flops < 10 ? 0.05 + 0.02 * flops : 0.3 * flops; }

/// A row object of any op, behind one signature.
template <typename... Args>
struct AnyRow {
  alignas(8) std::byte object[32];
  void (*function)(const std::byte* object, Args...);

  template <typename Row>
  static AnyRow of(const Row& row) {
    static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) <= sizeof(object));
    AnyRow any{};
    std::memcpy(any.object, &row, sizeof(Row));
    any.function = [](const std::byte* bytes, Args... args) {
      Row local;
      std::memcpy(&local, bytes, sizeof(Row));
      local(args...);
    };
    return any;
  }
  void operator()(Args... args) const { function(object, args...); }
};

/// y[i] = op(x[i]); y is of W, or bool for predicates.
template <typename W>
using UnaryRow = AnyRow<const W*, void*, std::int64_t>;

/// y[i] = op(a[i], b[i]). A scalar operand is one element for all i.
template <typename A, typename B>
using BinaryRow = AnyRow<const A*, bool, const B*, bool, void*, std::int64_t>;

/// Results of another type than W: booleans, which a row stores itself.
template <typename W>
TURNOUT_HD void* row_target(void* y, DType dtype, bool predicate, std::int64_t at, W* buffer) {
  return predicate ? static_cast<void*>(static_cast<bool*>(y) + at)
                   : static_cast<void*>(result_block(y, dtype, at, buffer));
}

/// Item: kItemElements elements.
template <typename W, typename Row>
struct UnaryTiles {
  const void* x;
  void* y;
  DType dtype;
  bool predicate;
  std::int64_t elements;
  Row row;
  TURNOUT_HD void operator()(std::int64_t item) const {
    W x_buffer[kBlockElements], y_buffer[kBlockElements];
    const std::int64_t first = item * kItemElements;
    const std::int64_t last = first + kItemElements < elements ? first + kItemElements : elements;
    for (std::int64_t at = first; at < last; at += kBlockElements) {
      const std::int64_t n = last - at < kBlockElements ? last - at : kBlockElements;
      const W* from = load_block(x, dtype, at, 1, n, x_buffer);
      void* to = row_target(y, dtype, predicate, at, y_buffer);
      row(from, to, n);
      if (!predicate) store_block(y, dtype, at, n, static_cast<const W*>(to));
    }
  }
};

template <typename A, typename B, typename Row>
struct BinaryTiles {
  const void* a;
  const void* b;
  void* y;
  DType a_dtype, b_dtype;
  bool predicate;
  Loops<2> loops;
  Row row;
  TURNOUT_HD void operator()(std::int64_t item) const {
    A a_buffer[kBlockElements], y_buffer[kBlockElements];
    B b_buffer[kBlockElements];
    const std::int64_t a_stride = loops.row_stride(0), b_stride = loops.row_stride(1);
    for_rows(loops, item, [&](const RowPlace<2>& place) {
      for (std::int64_t begin = 0; begin < place.length; begin += kBlockElements) {
        const std::int64_t rest = place.length - begin;
        const std::int64_t n = rest < kBlockElements ? rest : kBlockElements;
        const A* from_a = load_block(a, a_dtype, place.offsets[0] + begin * a_stride, a_stride,
                                     a_stride == 0 ? 1 : n, a_buffer);
        const B* from_b = load_block(b, b_dtype, place.offsets[1] + begin * b_stride, b_stride,
                                     b_stride == 0 ? 1 : n, b_buffer);
        const std::int64_t at = place.dense + begin;
        void* to = row_target(y, a_dtype, predicate, at, y_buffer);
        row(from_a, a_stride == 0, from_b, b_stride == 0, to, n);
        if (!predicate) store_block(y, a_dtype, at, n, static_cast<const A*>(to));
      }
    });
  }
};

/// One operand is dense, the other repeats every `period` <= kBlockElements elements: rows too
/// short to be worth a loop each, such as three channels. Item: about kItemElements elements.
template <typename A, typename B, typename Row>
struct PeriodicTiles {
  const void* a;
  const void* b;
  void* y;
  DType a_dtype, b_dtype;
  bool predicate;
  bool a_repeats;
  std::int64_t elements, period;
  Row row;
  /// Elements of a block: whole periods.
  TURNOUT_HD static std::int64_t block(std::int64_t period) {
    return kBlockElements / period * period;
  }
  TURNOUT_HD static std::int64_t item_elements(std::int64_t period) { return 8 * block(period); }
  TURNOUT_HD void operator()(std::int64_t item) const {
    A a_buffer[kBlockElements], y_buffer[kBlockElements];
    B b_buffer[kBlockElements];
    const std::int64_t size = item_elements(period), step = block(period);
    const std::int64_t first = item * size;
    const std::int64_t last = first + size < elements ? first + size : elements;
    const A* from_a = a_repeats ? repeated(a, a_dtype, a_buffer) : nullptr;
    const B* from_b = a_repeats ? nullptr : repeated(b, b_dtype, b_buffer);
    for (std::int64_t at = first; at < last; at += step) {
      const std::int64_t n = last - at < step ? last - at : step;
      if (a_repeats) {
        from_b = load_block(b, b_dtype, at, 1, n, b_buffer);
      } else {
        from_a = load_block(a, a_dtype, at, 1, n, a_buffer);
      }
      void* to = row_target(y, a_dtype, predicate, at, y_buffer);
      row(from_a, false, from_b, false, to, n);
      if (!predicate) store_block(y, a_dtype, at, n, static_cast<const A*>(to));
    }
  }
  template <typename W>
  TURNOUT_HD const W* repeated(const void* data, DType dtype, W* buffer) const {
    const W* one = load_block(data, dtype, 0, 1, period, buffer);
    const std::int64_t size = block(period);
    for (std::int64_t i = 0; i < size; ++i) buffer[i] = i < period ? one[i] : buffer[i - period];
    return buffer;
  }
};

// On devices. Item: one element.
template <typename W, typename Row>
struct UnaryElement {
  const void* x;
  void* y;
  DType dtype;
  Row row;
  TURNOUT_HD void operator()(std::int64_t i) const {
    const auto result = row.at(load_element<W>(x, dtype, i));
    if constexpr (std::is_same_v<decltype(result), const bool>) {
      static_cast<bool*>(y)[i] = result;
    } else {
      store_element<W>(y, dtype, i, result);
    }
  }
};

template <typename A, typename B, typename Row>
struct BinaryElement {
  const void* a;
  const void* b;
  void* y;
  DType a_dtype, b_dtype;
  Loops<2> loops;
  Row row;
  TURNOUT_HD void operator()(std::int64_t i) const {
    const RowPlace<2> place = place_of(loops, i);
    const auto result = row.at(load_element<A>(a, a_dtype, place.offsets[0]),
                               load_element<B>(b, b_dtype, place.offsets[1]));
    if constexpr (std::is_same_v<decltype(result), const bool>) {
      static_cast<bool*>(y)[i] = result;
    } else {
      store_element<A>(y, a_dtype, i, result);
    }
  }
};

/// The loop of a binary row: `f(a, b)` for elements, with scalars kept in registers.
template <typename Y, typename A, typename B, typename F>
TURNOUT_HD void binary_loop(const A* a, bool a_scalar, const B* b, bool b_scalar, Y* y,
                            std::int64_t n, const F& f) {
  if (b_scalar) {
    const B value = *b;
    if (a_scalar) {
      const Y result = f(*a, value);
      for (std::int64_t i = 0; i < n; ++i) y[i] = result;
      return;
    }
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], value);
  } else if (a_scalar) {
    const A value = *a;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(value, b[i]);
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
}

}  // namespace turnout::kokkos
