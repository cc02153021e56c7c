// Normalizations: of rows, of groups of channels, over any axes, and over neighbouring channels.
#include <array>

#include "backends/kokkos/device/split_loops.hpp"
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/norm_rows.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

/// An operand of any floating type.
struct AnyFloats {
  const void* data = nullptr;
  DType dtype = DType::f32;
  template <typename W>
  TURNOUT_HD W get(std::int64_t i) const {
    return dtype == DType::f64 ? static_cast<W>(load_element<double>(data, dtype, i))
                               : static_cast<W>(load_element<float>(data, dtype, i));
  }
};
AnyFloats floats_of(const Launch& launch, int i, DType dtype) {
  return {launch.input<std::byte>(i), dtype};
}

template <typename W>
struct Moments {
  W mean;
  double variance;
};

/// Mean and variance of element(i) for i in [0, length), by two passes. Without `centered` the mean
/// counts as 0.
template <typename W, typename Group, typename Element>
TURNOUT_HD Moments<W> moments_of(const Group& group, std::int64_t length, bool centered,
                                 const Element& element) {
  const auto count = static_cast<double>(length);
  double sum = 0;
  for (std::int64_t i = group.rank(); centered && i < length; i += group.size()) {
    sum += static_cast<double>(element(i));
  }
  const W mean = centered ? static_cast<W>(group.reduce(AddOp{}, sum) / count) : W(0);
  double squares = 0;
  for (std::int64_t i = group.rank(); i < length; i += group.size()) {
    const W difference = element(i) - mean;
    squares += static_cast<double>(difference * difference);
  }
  return {mean, group.reduce(AddOp{}, squares) / count};
}

// ------------------------------------------------- rows

template <typename W>
struct NormRow {
  const void *x, *scale, *bias;
  void *y, *mean, *factor;  // statistics: null where they aren't wanted
  DType dtype, statistics;
  std::int64_t length, scale_period, bias_period;
  double epsilon;
  bool centered;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t row) const {
    const std::int64_t start = row * length;
    const auto element = [&](std::int64_t i) { return load_element<W>(x, dtype, start + i); };
    const Moments<W> m = moments_of<W>(group, length, centered, element);
    const W f = static_cast<W>(1 / std::sqrt(m.variance + epsilon));
    if (group.rank() == 0) {
      put(mean, row, static_cast<double>(m.mean));
      put(factor, row, static_cast<double>(f));
    }
    for (std::int64_t i = group.rank(); i < length; i += group.size()) {
      W value = (element(i) - m.mean) * f * load_element<W>(scale, dtype, i % scale_period);
      if (bias != nullptr) value += load_element<W>(bias, dtype, i % bias_period);
      store_element<W>(y, dtype, start + i, value);
    }
  }
  TURNOUT_HD void put(void* to, std::int64_t i, double value) const {
    if (to == nullptr) return;
    if (statistics == DType::f64) {
      store_element<double>(to, statistics, i, value);
    } else {
      store_element<float>(to, statistics, i, static_cast<float>(value));
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
  const std::int64_t bias_period = info.has_input(2) ? norm_period(info, 2) : 1;
  const DType dtype = info.input(0).dtype;
  const DType statistics = info.output_count() > 1 ? info.output(1).dtype : DType::f32;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(launch, rows, length, 1,
                     NormRow<W>{launch.input<std::byte>(0), launch.input<std::byte>(1),
                                launch.input<std::byte>(2), launch.output<std::byte>(0),
                                launch.output<std::byte>(1), launch.output<std::byte>(2), dtype,
                                statistics, length, scale_period, bias_period, epsilon, centered});
    };
    return make_kernel(context, run, centered ? "layer_norm" : "rms_norm");
  });
}

// ------------------------------------------------- channels

/// Item: one element.
template <typename W>
struct BatchNorm {
  const void* x;
  void* y;
  DType dtype;
  AnyFloats scale, bias, mean, variance;
  std::int64_t channels, plane;
  double epsilon;
  TURNOUT_HD void operator()(std::int64_t i) const {
    const std::int64_t c = i / plane % channels;
    const W deviation = std::sqrt(variance.get<W>(c) + static_cast<W>(epsilon));
    const W centered = load_element<W>(x, dtype, i) - mean.get<W>(c);
    store_element<W>(y, dtype, i, centered * (scale.get<W>(c) / deviation) + bias.get<W>(c));
  }
};

std::unique_ptr<PreparedKernel> prepare_batch(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t channels = shape.rank() > 1 ? shape[1] : 1;
  const std::int64_t plane = shape.rank() > 1 ? shape.elements(2, shape.rank()) : shape.elements();
  const std::int64_t elements = shape.elements();
  const std::array<DType, 5> dtypes{info.input(0).dtype, info.input(1).dtype, info.input(2).dtype,
                                    info.input(3).dtype, info.input(4).dtype};
  return dispatch_compute(dtypes[0], [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      const auto operand = [&](int i) {
        return floats_of(launch, i, dtypes[static_cast<std::size_t>(i)]);
      };
      parallel_for(
          launch, elements, 0,
          BatchNorm<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtypes[0],
                       operand(1), operand(2), operand(3), operand(4), channels, plane, epsilon});
    };
    return make_kernel(context, run, "batch_norm");
  });
}

/// Line: one group of `group_size` channels of one sample; 1 for instance normalization.
template <typename W>
struct GroupNorm {
  const void* x;
  void* y;
  DType dtype;
  AnyFloats scale, bias;
  std::int64_t channels, group_size, plane;
  double epsilon;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t length = group_size * plane, start = line * length;
    const auto element = [&](std::int64_t i) { return load_element<W>(x, dtype, start + i); };
    const Moments<W> m = moments_of<W>(group, length, true, element);
    const W factor = static_cast<W>(1 / std::sqrt(m.variance + epsilon));
    const std::int64_t first = line * group_size % channels;
    for (std::int64_t i = group.rank(); i < length; i += group.size()) {
      const std::int64_t c = first + i / plane;
      const W normal = (element(i) - m.mean) * (factor * scale.get<W>(c));
      store_element<W>(y, dtype, start + i, normal + bias.get<W>(c));
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_grouped(const PrepareContext& context,
                                                std::int64_t group_size) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const double epsilon = info.attrs->real("epsilon");
  const std::int64_t channels = shape[1], plane = shape.elements(2, shape.rank());
  const std::int64_t lines = shape.elements() == 0 ? 0 : shape[0] * channels / group_size;
  const DType dtype = info.input(0).dtype;
  const DType scale = info.input(1).dtype, bias = info.input(2).dtype;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(launch, lines, group_size * plane, 1,
                     GroupNorm<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype,
                                  floats_of(launch, 1, scale), floats_of(launch, 2, bias), channels,
                                  group_size, plane, epsilon});
    };
    return make_kernel(context, run, "group_norm");
  });
}

std::unique_ptr<PreparedKernel> prepare_group(const PrepareContext& context) {
  const std::int64_t groups = context.info.attrs->integer("num_groups");
  return prepare_grouped(context, context.info.input(0).shape[1] / groups);
}

// ------------------------------------------------- local response

/// Item: one element.
template <typename W>
struct LocalResponse {
  const void* x;
  void* y;
  DType dtype;
  std::int64_t channels, plane, size;
  double alpha, beta, bias;  // alpha: divided by size
  TURNOUT_HD void operator()(std::int64_t i) const {
    const std::int64_t c = i / plane % channels;
    const std::int64_t below = (size - 1) / 2 < c ? (size - 1) / 2 : c;
    const std::int64_t room = channels - 1 - c;
    const std::int64_t above = size / 2 < room ? size / 2 : room;
    W squares = 0;
    for (std::int64_t other = -below; other <= above; ++other) {
      const W value = load_element<W>(x, dtype, i + other * plane);
      squares += value * value;
    }
    const W base = static_cast<W>(bias) + static_cast<W>(alpha) * squares;
    store_element<W>(y, dtype, i,
                     load_element<W>(x, dtype, i) / std::pow(base, static_cast<W>(beta)));
  }
};

std::unique_ptr<PreparedKernel> prepare_lrn(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const std::int64_t size = info.attrs->integer("size");
  const double alpha = info.attrs->real("alpha") / static_cast<double>(size);
  const double beta = info.attrs->real("beta"), bias = info.attrs->real("bias");
  const std::int64_t channels = shape[1], plane = shape.elements(2, shape.rank());
  const std::int64_t elements = shape.elements();
  const DType dtype = info.input(0).dtype;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, elements, 0,
                   LocalResponse<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype,
                                    channels, plane, size, alpha, beta, bias});
    };
    return make_kernel(context, run, "lrn");
  });
}

// ------------------------------------------------- any axes

/// Line: the elements that share a place along the axes kept.
template <typename W>
struct MeanVariance {
  const void* x;
  void* y;
  DType dtype;
  SplitLoops loops;
  std::int64_t length;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t start = loops.kept_offset(line);
    const auto at = [&](std::int64_t i) { return start + loops.reduced_offset(i); };
    const auto element = [&](std::int64_t i) { return load_element<W>(x, dtype, at(i)); };
    const Moments<W> m = moments_of<W>(group, length, true, element);
    const W factor = static_cast<W>(1 / (std::sqrt(m.variance) + 1e-9));
    for (std::int64_t i = group.rank(); i < length; i += group.size()) {
      store_element<W>(y, dtype, at(i), (element(i) - m.mean) * factor);
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_mean_variance(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  std::vector<int> axes;
  for (std::int64_t axis : info.attrs->integers("axes")) {
    axes.push_back(normalize_axis(axis, shape.rank(), info.op->name));
  }
  const SplitLoops loops = make_split_loops(shape, axes);
  const std::int64_t length = loops.reduced_elements();
  const std::int64_t lines = shape.elements() == 0 ? 0 : loops.kept_elements();
  const DType dtype = info.input(0).dtype;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(launch, lines, length, loops.reduced_stride(),
                     MeanVariance<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype,
                                     loops, length});
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

void register_channel_norm_kernels(KernelRegistry& registry) {
  add_kernel(registry, "batch_normalization", accept_floating, prepare_batch);
  add_kernel(registry, "instance_normalization", accept_floating,
             [](const PrepareContext& context) { return prepare_grouped(context, 1); });
  add_kernel(registry, "group_normalization", accept_floating, prepare_group);
}

}  // namespace turnout::kokkos
