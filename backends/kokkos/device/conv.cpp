// Convolutions over up to three dimensions: as a product of the weights [out channels, k] with the
// columns of all images [k, positions], made up while it runs; or, with few output channels a
// group, where a tile would be mostly empty, directly.
#include "ops/conv.hpp"

#include <vector>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/device/gemm.hpp"
#include "backends/kokkos/device/window.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

/// What step k of the product reads: a tap of an input channel.
struct ConvStep {
  std::int32_t channel;
  std::int32_t offsets[SmallWindow::kRank];  // from the window's first position
};

std::vector<ConvStep> conv_steps(const SmallWindow& window, std::int64_t channels) {
  std::vector<ConvStep> steps;
  const auto& axes = window.axes;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < axes[0].kernel; ++i) {
      for (std::int64_t j = 0; j < axes[1].kernel; ++j) {
        for (std::int64_t k = 0; k < axes[2].kernel; ++k) {
          steps.push_back({static_cast<std::int32_t>(c),
                           {static_cast<std::int32_t>(i * axes[0].dilation),
                            static_cast<std::int32_t>(j * axes[1].dilation),
                            static_cast<std::int32_t>(k * axes[2].dilation)}});
        }
      }
    }
  }
  return steps;
}

/// The Product of a convolution. Batches are groups; columns the positions of all images.
template <typename A>
struct ConvProduct {
  const void* x;
  const void* w;
  const ConvStep* steps;
  DType dtype;
  std::int64_t m, n, k;
  std::int64_t group_in, in_channels, out_channels;
  std::int64_t in[3], out[3], stride[3], pad[3];
  std::int64_t in_plane, positions;  // elements of a channel of x and of y

  struct Column {
    std::int64_t start;      // of the group's first channel
    std::int64_t corner[3];  // first position of the window
  };
  TURNOUT_HD bool left_by_step() const { return true; }
  TURNOUT_HD bool right_by_step() const { return false; }
  TURNOUT_HD A left(std::int64_t group, std::int64_t row, std::int64_t step) const {
    return load_term<A>(w, dtype, (group * m + row) * k + step);
  }
  TURNOUT_HD Column column(std::int64_t group, std::int64_t col) const {
    const std::int64_t image = col / positions;
    std::int64_t at = col - image * positions;
    Column result;
    result.start = (image * in_channels + group * group_in) * in_plane;
    for (int i = 2; i >= 0; --i) {
      const std::int64_t rest = i == 0 ? 0 : at / out[i];
      result.corner[i] = (at - rest * out[i]) * stride[i] - pad[i];
      at = rest;
    }
    return result;
  }
  TURNOUT_HD A right(const Column& column, std::int64_t step) const {
    const ConvStep s = steps[step];
    std::int64_t at = 0;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t position = column.corner[i] + s.offsets[i];
      if (position < 0 || position >= in[i]) return A(0);
      at = at * in[i] + position;
    }
    return load_term<A>(x, dtype, column.start + s.channel * in_plane + at);
  }
  TURNOUT_HD std::int64_t y_at(std::int64_t group, std::int64_t row, std::int64_t col) const {
    const std::int64_t image = col / positions;
    const std::int64_t channel = image * out_channels + group * m + row;
    return channel * positions + (col - image * positions);
  }
  TURNOUT_HD std::int64_t bias_at(std::int64_t group, std::int64_t row, std::int64_t) const {
    return group * m + row;
  }
};

template <typename A>
std::unique_ptr<PreparedKernel> prepare_product(const PrepareContext& context, const ConvDims& dims,
                                                const SmallWindow& window) {
  const ProductEnd<A> end = product_end<A>(context.info);
  const std::int64_t elements = context.info.output(0).elements();
  const Constant steps = constant_of(context, conv_steps(window, dims.group_in()));
  ConvProduct<A> prepared{};
  prepared.steps = steps.data<ConvStep>();
  prepared.dtype = end.dtype;
  prepared.in_plane = window.in_size();
  prepared.positions = window.out_size();
  prepared.m = dims.group_out();
  prepared.n = dims.batch * prepared.positions;
  prepared.k = dims.group_in() * window.kernel_size();
  prepared.group_in = dims.group_in();
  prepared.in_channels = dims.in_channels;
  prepared.out_channels = dims.out_channels;
  for (int i = 0; i < SmallWindow::kRank; ++i) {
    prepared.in[i] = window.axes[i].in;
    prepared.out[i] = window.axes[i].out;
    prepared.stride[i] = window.axes[i].stride;
    prepared.pad[i] = window.axes[i].pad_begin;
  }
  const GemmGrid grid = make_grid(dims.groups, prepared.m, prepared.n, prepared.k);
  const auto run = [=, kept = steps](const Launch& launch) {
    ConvProduct<A> product = prepared;
    product.x = launch.input<std::byte>(0);
    product.w = launch.input<std::byte>(1);
    run_gemm(launch, grid, elements, product, with_operands(end, launch));
  };
  return make_kernel(context, run, grid.splits > 1 ? "gemm:implicit:split" : "gemm:implicit",
                     gemm_workspace_bytes<A>(grid, elements));
}

/// Item: one output.
template <typename A>
struct ConvDirect {
  const void* x;
  const void* w;
  ProductEnd<A> end;
  SmallWindow window;
  std::int64_t out_channels, group_in, group_out;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const SmallWindow::Axis *d = &window.axes[0], *h = &window.axes[1], *v = &window.axes[2];
    std::int64_t rest = item;
    const std::int64_t ow = rest % v->out;
    rest /= v->out;
    const std::int64_t oh = rest % h->out;
    rest /= h->out;
    const std::int64_t od = rest % d->out;
    rest /= d->out;
    const std::int64_t channel = rest % out_channels, image = rest / out_channels;
    const std::int64_t in_channel =
        (image * (out_channels / group_out) + channel / group_out) * group_in;
    A sum = 0;
    for (std::int64_t c = 0; c < group_in; ++c) {
      for (std::int64_t i = d->first_tap(od); i < d->last_tap(od, d->in); ++i) {
        for (std::int64_t j = h->first_tap(oh); j < h->last_tap(oh, h->in); ++j) {
          const std::int64_t row =
              ((in_channel + c) * d->in + d->position(od, i)) * h->in + h->position(oh, j);
          const std::int64_t taps =
              (((channel * group_in + c) * d->kernel + i) * h->kernel + j) * v->kernel;
          for (std::int64_t k = v->first_tap(ow); k < v->last_tap(ow, v->in); ++k) {
            sum += load_term<A>(x, end.dtype, row * v->in + v->position(ow, k)) *
                   load_term<A>(w, end.dtype, taps + k);
          }
        }
      }
    }
    end.put(item, channel, sum);
  }
};

template <typename A>
std::unique_ptr<PreparedKernel> prepare_direct(const PrepareContext& context, const ConvDims& dims,
                                               const SmallWindow& window) {
  const ProductEnd<A> end = product_end<A>(context.info);
  const std::int64_t elements = context.info.output(0).elements();
  const auto run = [=](const Launch& launch) {
    parallel_for(launch, elements, 0,
                 ConvDirect<A>{launch.input<std::byte>(0), launch.input<std::byte>(1),
                               with_operands(end, launch), window, dims.out_channels,
                               dims.group_in(), dims.group_out()});
  };
  return make_kernel(context, run, "direct");
}

std::unique_ptr<PreparedKernel> prepare_conv(const PrepareContext& context) {
  constexpr std::int64_t kFewChannels = 16, kMostSteps = 1 << 24;
  const ConvDims dims = conv_dims(context.info);
  const SmallWindow window = small_window(dims.window);
  const bool direct =
      dims.group_out() < kFewChannels ||
      dims.group_in() > kMostSteps / std::max<std::int64_t>(window.kernel_size(), 1);
  return dispatch_compute(context.info.input(0).dtype, [&]<typename A>(std::type_identity<A>) {
    return direct ? prepare_direct<A>(context, dims, window)
                  : prepare_product<A>(context, dims, window);
  });
}

Acceptance accept_conv(const NodeInfo& info) {
  const Acceptance window = accept_window(info);
  return window.ok ? accept_floating(info) : window;
}

}  // namespace

void register_conv_kernels(KernelRegistry& registry) {
  add_kernel(registry, "conv", accept_conv, prepare_conv);
}

}  // namespace turnout::kokkos
