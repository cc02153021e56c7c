// softmax, log_softmax and hardmax along one axis.
//
// The tensor is [outer, length, inner]. With inner 1 a functor call does one row; otherwise it does
// kColumns neighbouring columns at once, so that memory is read in order.

#include "backends/kokkos/host/row_math.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

namespace {

enum class Kind { softmax, log_softmax };

template <typename T>
struct SoftmaxRow {
  const T* x;
  T* y;
  std::int64_t length;
  Kind kind;
  TURNOUT_HD void operator()(std::int64_t row) const {
    using W = Wide<T>;
    const T* from = x + row * length;
    T* to = y + row * length;
    const W top = max_of<W>(length, [&](std::int64_t i) { return static_cast<W>(from[i]); });
    if (kind == Kind::log_softmax) {
      const double sum = sum_of<W>(
          length, [&](std::int64_t i) { return fast_exp(static_cast<W>(from[i]) - top); });
      const W shift = static_cast<W>(std::log(sum));
      for (std::int64_t i = 0; i < length; ++i) {
        to[i] = static_cast<T>((static_cast<W>(from[i]) - top) - shift);
      }
      return;
    }
    if constexpr (std::is_same_v<T, W>) {
      for (std::int64_t i = 0; i < length; ++i) to[i] = fast_exp(from[i] - top);
      const double sum = sum_of<W>(length, [&](std::int64_t i) { return to[i]; });
      const W scale = static_cast<W>(1 / sum);
      for (std::int64_t i = 0; i < length; ++i) to[i] *= scale;
    } else {  // twice the exponentials rather than one more rounding to 16 bits
      const double sum = sum_of<W>(
          length, [&](std::int64_t i) { return fast_exp(static_cast<W>(from[i]) - top); });
      const W scale = static_cast<W>(1 / sum);
      for (std::int64_t i = 0; i < length; ++i) {
        to[i] = static_cast<T>(fast_exp(static_cast<W>(from[i]) - top) * scale);
      }
    }
  }
};

constexpr int kColumns = 64;

template <typename T>
struct SoftmaxColumns {
  const T* x;
  T* y;
  std::int64_t length, inner, strips;
  Kind kind;
  TURNOUT_HD void operator()(std::int64_t item) const {
    using W = Wide<T>;
    const std::int64_t first = item % strips * kColumns;
    const int width = static_cast<int>(inner - first < kColumns ? inner - first : kColumns);
    const T* from = x + item / strips * length * inner + first;
    T* to = y + item / strips * length * inner + first;
    W top[kColumns];
    W sum[kColumns] = {};
    for (int c = 0; c < width; ++c) top[c] = -std::numeric_limits<W>::infinity();
    for (std::int64_t i = 0; i < length; ++i) {
      for (int c = 0; c < width; ++c) {
        const W value = static_cast<W>(from[i * inner + c]);
        top[c] = value > top[c] ? value : top[c];
      }
    }
    for (std::int64_t i = 0; i < length; ++i) {
      for (int c = 0; c < width; ++c) {
        sum[c] += fast_exp(static_cast<W>(from[i * inner + c]) - top[c]);
      }
    }
    const bool log = kind == Kind::log_softmax;
    for (int c = 0; c < width; ++c) sum[c] = log ? std::log(sum[c]) : 1 / sum[c];
    for (std::int64_t i = 0; i < length; ++i) {
      for (int c = 0; c < width; ++c) {
        const W value = static_cast<W>(from[i * inner + c]) - top[c];
        to[i * inner + c] = static_cast<T>(log ? value - sum[c] : fast_exp(value) * sum[c]);
      }
    }
  }
};

/// 1 at the first of the largest elements, else 0.
template <typename T>
struct HardmaxColumn {
  const T* x;
  T* y;
  std::int64_t length, inner;
  TURNOUT_HD void operator()(std::int64_t column) const {
    using W = Wide<T>;
    const std::int64_t start = column / inner * length * inner + column % inner;
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < length; ++i) {  // NaN counts as largest
      const W value = static_cast<W>(x[start + i * inner]);
      const W largest = static_cast<W>(x[start + best * inner]);
      if (value > largest || (value != value && largest == largest)) best = i;
    }
    for (std::int64_t i = 0; i < length; ++i) y[start + i * inner] = static_cast<T>(W(i == best));
  }
};

struct Extents {
  std::int64_t outer, length, inner;
};

Extents extents_of(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  if (shape.rank() == 0) return {1, 1, 1};
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), info.op->name);
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

std::unique_ptr<PreparedKernel> prepare_softmax(const PrepareContext& context, Kind kind) {
  const Extents at = extents_of(context.info);
  return dispatch_floating(context.info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    if (at.inner == 1) {
      const auto run = [=](const Launch& launch) {
        parallel_for(launch, at.outer, 0.35 * static_cast<double>(at.length),
                     SoftmaxRow<T>{launch.input<T>(0), launch.output<T>(0), at.length, kind});
      };
      return make_kernel(context, run, "softmax:rows");
    }
    const std::int64_t strips = (at.inner + kColumns - 1) / kColumns;
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, at.outer * strips, 0.6 * static_cast<double>(at.length * kColumns),
                   SoftmaxColumns<T>{launch.input<T>(0), launch.output<T>(0), at.length, at.inner,
                                     strips, kind});
    };
    return make_kernel(context, run, "softmax:columns");
  });
}

std::unique_ptr<PreparedKernel> prepare_hardmax(const PrepareContext& context) {
  const Extents at = extents_of(context.info);
  return dispatch_floating(context.info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, at.outer * at.inner, 2.0 * static_cast<double>(at.length),
                   HardmaxColumn<T>{launch.input<T>(0), launch.output<T>(0), at.length, at.inner});
    };
    return make_kernel(context, run, "hardmax");
  });
}

}  // namespace

void register_softmax_kernels(KernelRegistry& registry) {
  add_kernel(registry, "softmax", accept_floating,
             [](const PrepareContext& context) { return prepare_softmax(context, Kind::softmax); });
  add_kernel(registry, "log_softmax", accept_floating, [](const PrepareContext& context) {
    return prepare_softmax(context, Kind::log_softmax);
  });
  add_kernel(registry, "hardmax", accept_floating, prepare_hardmax);
}

}  // namespace turnout::kokkos
