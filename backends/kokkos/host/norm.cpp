// Normalizations of rows, over neighbouring channels, and over any axes.

#include "backends/kokkos/host/moments.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/norm_rows.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

namespace {

/// Where statistics go, if anywhere.
struct AnyFloatOutput {
  void* data = nullptr;
  DType dtype = DType::f32;
  TURNOUT_HD void put(std::int64_t i, double value) const {
    if (data == nullptr) return;
    switch (dtype) {
      case DType::f32:
        static_cast<float*>(data)[i] = static_cast<float>(value);
        return;
      case DType::f64:
        static_cast<double*>(data)[i] = value;
        return;
      case DType::f16:
        static_cast<Half*>(data)[i] = Half(static_cast<float>(value));
        return;
      default:
        static_cast<BFloat16*>(data)[i] = BFloat16(static_cast<float>(value));
    }
  }
};

// ------------------------------------------------- rows

/// Scale or bias of a row: element i of the row takes element i % period. Null data: not given.
template <typename T>
struct Periodic {
  const T* data;
  std::int64_t period;
};

/// Item: one row.
template <typename T>
struct LayerNormRow {
  const T* x;
  T* y;
  Periodic<T> scale, bias;
  AnyFloatOutput mean, factor;
  std::int64_t length;
  double epsilon;
  bool centered;
  TURNOUT_HD void operator()(std::int64_t row) const {
    using W = Wide<T>;
    const T* from = x + row * length;
    T* to = y + row * length;
    const Moments<W> m = moments_of(from, length, epsilon, centered);
    mean.put(row, m.mean);
    factor.put(row, m.factor);
    const auto normal = [&](std::int64_t i) {
      return (static_cast<W>(from[i]) - m.mean) * m.factor;
    };
    const bool whole = scale.period == length && (bias.data == nullptr || bias.period == length);
    if (whole && bias.data == nullptr) {
      for (std::int64_t i = 0; i < length; ++i) {
        to[i] = static_cast<T>(normal(i) * static_cast<W>(scale.data[i]));
      }
    } else if (whole) {
      for (std::int64_t i = 0; i < length; ++i) {
        to[i] = static_cast<T>(normal(i) * static_cast<W>(scale.data[i]) +
                               static_cast<W>(bias.data[i]));
      }
    } else {
      for (std::int64_t i = 0; i < length; ++i) {
        const W shift = bias.data == nullptr ? W(0) : static_cast<W>(bias.data[i % bias.period]);
        to[i] = static_cast<T>(normal(i) * static_cast<W>(scale.data[i % scale.period]) + shift);
      }
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_rows(const PrepareContext& context, bool centered) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = norm_axis(info);
  const std::int64_t length = shape.elements(axis, shape.rank());
  const std::int64_t rows = shape.elements(0, axis);
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t scale_period = norm_period(info, 1);
  const std::int64_t bias_period = info.has_input(2) ? norm_period(info, 2) : 0;
  const DType statistics = info.output_count() > 1 ? info.output(1).dtype : DType::f32;
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, rows, 20 + 0.2 * static_cast<double>(length),
                   LayerNormRow<T>{launch.input<T>(0),
                                   launch.output<T>(0),
                                   {launch.input<T>(1), scale_period},
                                   {launch.input<T>(2), bias_period},
                                   {launch.output<std::byte>(1), statistics},
                                   {launch.output<std::byte>(2), statistics},
                                   length,
                                   epsilon,
                                   centered});
    };
    return make_kernel(context, run, centered ? "layer_norm" : "rms_norm");
  });
}

// ------------------------------------------------- local response

/// Item: kPixels places of one sample, over all channels.
template <typename T>
struct LocalResponse {
  static constexpr std::int64_t kPixels = 256;
  const T* x;
  T* y;
  std::int64_t channels, plane, strips, size;
  double alpha, beta, bias;  // alpha: divided by size
  TURNOUT_HD void operator()(std::int64_t item) const {
    using W = Wide<T>;
    const std::int64_t first = item % strips * kPixels;
    const std::int64_t width = plane - first < kPixels ? plane - first : kPixels;
    const std::int64_t start = item / strips * channels * plane + first;
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t low = c - (size - 1) / 2 < 0 ? 0 : c - (size - 1) / 2;
      const std::int64_t room = channels - 1 - c;
      const std::int64_t high = c + (size / 2 < room ? size / 2 : room);
      W squares[kPixels] = {};
      for (std::int64_t other = low; other <= high; ++other) {
        const T* from = x + start + other * plane;
        for (std::int64_t i = 0; i < width; ++i) {
          squares[i] += static_cast<W>(from[i]) * static_cast<W>(from[i]);
        }
      }
      for (std::int64_t i = 0; i < width; ++i) {
        const W base = static_cast<W>(bias) + static_cast<W>(alpha) * squares[i];
        const std::int64_t at = start + c * plane + i;
        y[at] = static_cast<T>(static_cast<W>(x[at]) / std::pow(base, static_cast<W>(beta)));
      }
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_lrn(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const std::int64_t size = info.attrs->integer("size");
  const double alpha = info.attrs->real("alpha") / static_cast<double>(size);
  const double beta = info.attrs->real("beta"), bias = info.attrs->real("bias");
  const std::int64_t channels = shape[1], plane = shape.elements(2, shape.rank());
  const std::int64_t samples = shape[0];
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    constexpr std::int64_t kPixels = LocalResponse<T>::kPixels;
    const std::int64_t strips = (plane + kPixels - 1) / kPixels;
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, samples * strips, 20.0 * static_cast<double>(channels * kPixels),
                   LocalResponse<T>{launch.input<T>(0), launch.output<T>(0), channels, plane,
                                    strips, size, alpha, beta, bias});
    };
    return make_kernel(context, run, "lrn");
  });
}

// ------------------------------------------------- any axes

/// Item: the elements that share a place along the axes kept.
template <typename T>
struct MeanVariance {
  const T* x;
  T* y;
  Loops<1> kept, reduced;
  TURNOUT_HD void operator()(std::int64_t item) const {
    using W = Wide<T>;
    std::int64_t start = 0, rest = item;
    for (int axis = kept.rank - 1; axis >= 0; --axis) {
      start += rest % kept.dims[axis] * kept.strides[0][axis];
      rest /= kept.dims[axis];
    }
    const auto count = static_cast<double>(reduced.rows * reduced.length());
    double sum = 0;
    each_row(start, [&](const T* row, T*, std::int64_t stride, std::int64_t length) {
      sum += sum_of<W>(length, [&](std::int64_t i) { return static_cast<W>(row[i * stride]); });
    });
    const W mean = static_cast<W>(sum / count);
    double squares = 0;
    each_row(start, [&](const T* row, T*, std::int64_t stride, std::int64_t length) {
      squares += sum_of<W>(length, [&](std::int64_t i) {
        const W difference = static_cast<W>(row[i * stride]) - mean;
        return difference * difference;
      });
    });
    const W factor = static_cast<W>(1 / (std::sqrt(squares / count) + 1e-9));
    each_row(start, [&](const T* row, T* out, std::int64_t stride, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        out[i * stride] = static_cast<T>((static_cast<W>(row[i * stride]) - mean) * factor);
      }
    });
  }
  template <typename Row>
  TURNOUT_HD void each_row(std::int64_t start, const Row& row) const {
    const std::int64_t stride = reduced.row_stride(0);
    for (std::int64_t item = 0; item < reduced.items; ++item) {
      for_rows(reduced, item, [&](const RowPlace<1>& place) {
        const std::int64_t offset = start + place.offsets[0];
        row(x + offset, y + offset, stride, place.length);
      });
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_mean_variance(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  Shape kept = shape, reduced = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) reduced.set(axis, 1);
  for (std::int64_t chosen : info.attrs->integers("axes")) {
    const int axis = normalize_axis(chosen, shape.rank(), info.op->name);
    reduced.set(axis, shape[axis]);
    kept.set(axis, 1);
  }
  const Loops<1> kept_loops = make_loops<1>(kept, {shape.strides()});
  const Loops<1> reduced_loops = make_loops<1>(reduced, {shape.strides()});
  const std::int64_t items = shape.elements() == 0 ? 0 : kept.elements();
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(
          launch, items, 20 + 2.0 * static_cast<double>(reduced.elements()),
          MeanVariance<T>{launch.input<T>(0), launch.output<T>(0), kept_loops, reduced_loops});
    };
    return make_kernel(context, run, "mean_variance");
  });
}

}  // namespace

void register_norm_kernels(KernelRegistry& registry) {
  register_channel_norm_kernels(registry);
  add_kernel(registry, "layer_normalization", accept_norm_rows,
             [](const PrepareContext& context) { return prepare_rows(context, true); });
  add_kernel(registry, "rms_normalization", accept_norm_rows,
             [](const PrepareContext& context) { return prepare_rows(context, false); });
  add_kernel(registry, "lrn", accept_floating, prepare_lrn);
  add_kernel(registry, "mean_variance_normalization", accept_floating, prepare_mean_variance);
}

}  // namespace turnout::kokkos
