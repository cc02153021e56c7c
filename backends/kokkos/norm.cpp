// Normalizations. All but lrn are y = (x - mean) * factor * scale + bias, and differ in which
// elements share mean and factor, and which share scale and bias.

#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/row_math.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

namespace {

/// Elements of any floating dtype, one at a time.
struct AnyFloat {
  const void* data = nullptr;
  DType dtype = DType::f32;
  template <typename W>
  TURNOUT_HD W get(std::int64_t i) const {
    switch (dtype) {
      case DType::f32:
        return static_cast<W>(static_cast<const float*>(data)[i]);
      case DType::f64:
        return static_cast<W>(static_cast<const double*>(data)[i]);
      case DType::f16:
        return static_cast<W>(static_cast<float>(static_cast<const Half*>(data)[i]));
      default:
        return static_cast<W>(static_cast<float>(static_cast<const BFloat16*>(data)[i]));
    }
  }
};

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

template <typename W>
struct Moments {
  W mean, factor;
};

/// Mean and 1 / sqrt(variance + epsilon) of a row, by two passes. Without `centered` the mean
/// counts as 0.
template <typename T>
TURNOUT_HD Moments<Wide<T>> moments_of(const T* x, std::int64_t length, double epsilon,
                                       bool centered) {
  using W = Wide<T>;
  const auto count = static_cast<double>(length);
  const double sum =
      centered ? sum_of<W>(length, [&](std::int64_t i) { return static_cast<W>(x[i]); }) : 0;
  const W mean = static_cast<W>(sum / count);
  const double squares = sum_of<W>(length, [&](std::int64_t i) {
    const W difference = static_cast<W>(x[i]) - mean;
    return difference * difference;
  });
  return {mean, static_cast<W>(1 / std::sqrt(squares / count + epsilon))};
}

/// y = x * factor + shift along a row.
template <typename T>
TURNOUT_HD void scale_row(const T* x, T* y, std::int64_t length, Wide<T> mean, Wide<T> factor,
                          Wide<T> shift) {
  for (std::int64_t i = 0; i < length; ++i) {
    y[i] = static_cast<T>((static_cast<Wide<T>>(x[i]) - mean) * factor + shift);
  }
}

// ------------------------------------------------- per channel

/// Item: one channel of one sample.
template <typename T>
struct BatchNormPlane {
  const T* x;
  T* y;
  AnyFloat scale, bias, mean, variance;
  std::int64_t channels, plane;
  double epsilon;
  TURNOUT_HD void operator()(std::int64_t item) const {
    using W = Wide<T>;
    const std::int64_t c = item % channels;
    const double deviation = std::sqrt(variance.get<double>(c) + epsilon);
    scale_row(x + item * plane, y + item * plane, plane, mean.get<W>(c),
              static_cast<W>(scale.get<double>(c) / deviation), bias.get<W>(c));
  }
};

/// Item: one sample of one element a channel.
template <typename T>
struct BatchNormRow {
  const T* x;
  T* y;
  AnyFloat scale, bias, mean, variance;
  std::int64_t channels;
  double epsilon;
  TURNOUT_HD void operator()(std::int64_t row) const {
    using W = Wide<T>;
    for (std::int64_t c = 0; c < channels; ++c) {
      const W factor = scale.get<W>(c) / std::sqrt(variance.get<W>(c) + static_cast<W>(epsilon));
      const W centered = static_cast<W>(x[row * channels + c]) - mean.get<W>(c);
      y[row * channels + c] = static_cast<T>(centered * factor + bias.get<W>(c));
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_batch(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t channels = shape.rank() > 1 ? shape[1] : 1;
  const std::int64_t plane = shape.rank() > 1 ? shape.elements(2, shape.rank()) : shape.elements();
  const std::int64_t planes = plane == 0 ? 0 : shape.elements() / plane;
  const Parallel parallel(context.threads);
  const std::array<DType, 5> dtypes{DType::f32, info.input(1).dtype, info.input(2).dtype,
                                    info.input(3).dtype, info.input(4).dtype};
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const KernelArgs& args) {
      const auto reader = [&](int i) {
        return AnyFloat{args.input<std::byte>(i), dtypes[static_cast<std::size_t>(i)]};
      };
      const T* x = args.input<T>(0);
      T* y = args.output<T>(0);
      if (plane == 1) {
        parallel_for(
            parallel, planes / std::max<std::int64_t>(channels, 1),
            3.0 * static_cast<double>(channels),
            BatchNormRow<T>{x, y, reader(1), reader(2), reader(3), reader(4), channels, epsilon});
        return;
      }
      parallel_for(parallel, planes, 20 + 0.2 * static_cast<double>(plane),
                   BatchNormPlane<T>{x, y, reader(1), reader(2), reader(3), reader(4), channels,
                                     plane, epsilon});
    };
    return make_kernel(context, run, plane == 1 ? "batch_norm:rows" : "batch_norm:planes");
  });
}

/// Item: one group of `group` channels of one sample; 1 for instance normalization.
template <typename T>
struct GroupNorm {
  const T* x;
  T* y;
  AnyFloat scale, bias;
  std::int64_t channels, group, plane;
  double epsilon;
  TURNOUT_HD void operator()(std::int64_t item) const {
    using W = Wide<T>;
    const std::int64_t start = item * group * plane;
    const auto moments = moments_of(x + start, group * plane, epsilon, true);
    const std::int64_t first_channel = item * group % channels;
    for (std::int64_t i = 0; i < group; ++i) {
      const std::int64_t c = first_channel + i;
      scale_row(x + start + i * plane, y + start + i * plane, plane, moments.mean,
                moments.factor * scale.get<W>(c), bias.get<W>(c));
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_grouped(const PrepareContext& context, std::int64_t group) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t channels = shape[1];
  const std::int64_t plane = shape.elements(2, shape.rank());
  const std::int64_t items = shape.elements() == 0 ? 0 : shape[0] * channels / group;
  const Parallel parallel(context.threads);
  const DType scale = info.input(1).dtype;
  const DType bias = info.input(2).dtype;
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const KernelArgs& args) {
      parallel_for(
          parallel, items, 20 + 0.6 * static_cast<double>(group * plane),
          GroupNorm<T>{args.input<T>(0), args.output<T>(0),
                       AnyFloat{args.input<std::byte>(1), scale},
                       AnyFloat{args.input<std::byte>(2), bias}, channels, group, plane, epsilon});
    };
    return make_kernel(context, run, "group_norm");
  });
}

std::unique_ptr<PreparedKernel> prepare_instance(const PrepareContext& context) {
  return prepare_grouped(context, 1);
}

std::unique_ptr<PreparedKernel> prepare_group(const PrepareContext& context) {
  const std::int64_t groups = context.info.attrs->integer("num_groups");
  return prepare_grouped(context, context.info.input(0).shape[1] / groups);
}

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

int axis_of(const NodeInfo& info) {
  return normalize_axis(info.attrs->integer("axis"), info.input(0).shape.rank(), info.op->name);
}

/// Elements of `operand` if, leading ones apart, it is the end of x[axis:]; else 0.
std::int64_t period_of(const NodeInfo& info, int operand) {
  const Shape& x = info.input(0).shape;
  const Shape& shape = info.input(operand).shape;
  int first = 0;
  while (first < shape.rank() && shape[first] == 1) ++first;
  const int rank = shape.rank() - first;
  if (rank > x.rank() - axis_of(info)) return 0;
  for (int i = 1; i <= rank; ++i) {
    if (shape.dim(-i) != x.dim(-i)) return 0;
  }
  return std::max<std::int64_t>(shape.elements(), 1);
}

Acceptance accept_rows(const NodeInfo& info) {
  for (int i = 1; i < info.input_count(); ++i) {
    if (info.has_input(i) && period_of(info, i) == 0) {
      return Acceptance::no(fmt::format("input {} of shape {} is broadcast over the row", i,
                                        to_string(info.input(i).shape)));
    }
  }
  return accept_floating(info);
}

std::unique_ptr<PreparedKernel> prepare_rows(const PrepareContext& context, bool centered) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = axis_of(info);
  const std::int64_t length = shape.elements(axis, shape.rank());
  const std::int64_t rows = shape.elements(0, axis);
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t scale_period = period_of(info, 1);
  const std::int64_t bias_period = info.has_input(2) ? period_of(info, 2) : 0;
  const DType statistics = info.output_count() > 1 ? info.output(1).dtype : DType::f32;
  const Parallel parallel(context.threads);
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const KernelArgs& args) {
      parallel_for(parallel, rows, 20 + 0.6 * static_cast<double>(length),
                   LayerNormRow<T>{args.input<T>(0),
                                   args.output<T>(0),
                                   {args.input<T>(1), scale_period},
                                   {args.input<T>(2), bias_period},
                                   {args.output<std::byte>(1), statistics},
                                   {args.output<std::byte>(2), statistics},
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
  const Parallel parallel(context.threads);
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    constexpr std::int64_t kPixels = LocalResponse<T>::kPixels;
    const std::int64_t strips = (plane + kPixels - 1) / kPixels;
    const auto run = [=](const KernelArgs& args) {
      parallel_for(parallel, samples * strips, 20.0 * static_cast<double>(channels * kPixels),
                   LocalResponse<T>{args.input<T>(0), args.output<T>(0), channels, plane, strips,
                                    size, alpha, beta, bias});
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
  const Parallel parallel(context.threads);
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const KernelArgs& args) {
      parallel_for(parallel, items, 20 + 2.0 * static_cast<double>(reduced.elements()),
                   MeanVariance<T>{args.input<T>(0), args.output<T>(0), kept_loops, reduced_loops});
    };
    return make_kernel(context, run, "mean_variance");
  });
}

}  // namespace

void register_norm_kernels(KernelRegistry& registry) {
  add_kernel(registry, "batch_normalization", accept_floating, prepare_batch);
  add_kernel(registry, "instance_normalization", accept_floating, prepare_instance);
  add_kernel(registry, "group_normalization", accept_floating, prepare_group);
  add_kernel(registry, "layer_normalization", accept_rows,
             [](const PrepareContext& context) { return prepare_rows(context, true); });
  add_kernel(registry, "rms_normalization", accept_rows,
             [](const PrepareContext& context) { return prepare_rows(context, false); });
  add_kernel(registry, "lrn", accept_floating, prepare_lrn);
  add_kernel(registry, "mean_variance_normalization", accept_floating, prepare_mean_variance);
}

}  // namespace turnout::kokkos
