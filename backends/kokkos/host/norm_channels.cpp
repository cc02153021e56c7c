// Normalizations whose scale and bias belong to channels: y = (x - mean) * factor * scale + bias.
// They differ in which elements share mean and factor.

#include <algorithm>
#include <array>

#include "backends/kokkos/host/moments.hpp"
#include "backends/kokkos/kernels.hpp"
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

/// y = x * factor + shift along a row.
template <typename T>
TURNOUT_HD void scale_row(const T* x, T* y, std::int64_t length, Wide<T> mean, Wide<T> factor,
                          Wide<T> shift) {
  for (std::int64_t i = 0; i < length; ++i) {
    y[i] = static_cast<T>((static_cast<Wide<T>>(x[i]) - mean) * factor + shift);
  }
}

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
  const std::array<DType, 5> dtypes{DType::f32, info.input(1).dtype, info.input(2).dtype,
                                    info.input(3).dtype, info.input(4).dtype};
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const Launch& launch) {
      const auto reader = [&](int i) {
        return AnyFloat{launch.input<std::byte>(i), dtypes[static_cast<std::size_t>(i)]};
      };
      const T* x = launch.input<T>(0);
      T* y = launch.output<T>(0);
      if (plane == 1) {
        parallel_for(
            launch, planes / std::max<std::int64_t>(channels, 1),
            3.0 * static_cast<double>(channels),
            BatchNormRow<T>{x, y, reader(1), reader(2), reader(3), reader(4), channels, epsilon});
        return;
      }
      parallel_for(launch, planes, 15 + 0.07 * static_cast<double>(plane),
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
  const DType scale = info.input(1).dtype;
  const DType bias = info.input(2).dtype;
  return dispatch_floating(info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, items, 20 + 0.2 * static_cast<double>(group * plane),
                   GroupNorm<T>{launch.input<T>(0), launch.output<T>(0),
                                AnyFloat{launch.input<std::byte>(1), scale},
                                AnyFloat{launch.input<std::byte>(2), bias}, channels, group, plane,
                                epsilon});
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

}  // namespace

void register_channel_norm_kernels(KernelRegistry& registry) {
  add_kernel(registry, "batch_normalization", accept_floating, prepare_batch);
  add_kernel(registry, "instance_normalization", accept_floating, prepare_instance);
  add_kernel(registry, "group_normalization", accept_floating, prepare_group);
}

}  // namespace turnout::kokkos
