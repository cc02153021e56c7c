// Transposed convolution, each output gathering what reaches it: tap t of input o lands on output
// o * stride - pad + t * dilation, so output i is reached where (i + pad - t * dilation) divides.
#include "backends/kokkos/device/window.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/conv.hpp"

namespace turnout::kokkos {
namespace {

/// Item: one output. The window runs over the output: its `in` is y, its `out` x.
template <typename A>
struct ConvTranspose {
  const void *x, *w, *bias;
  void* y;
  DType dtype;
  SmallWindow window;
  std::int64_t in_channels, out_channels, group_in, group_out;

  TURNOUT_HD void operator()(std::int64_t item) const {
    std::int64_t rest = item, at[SmallWindow::kRank];
    for (int i = SmallWindow::kRank - 1; i >= 0; --i) {
      at[i] = rest % window.axes[i].in;
      rest /= window.axes[i].in;
    }
    const std::int64_t channel = rest % out_channels, image = rest / out_channels;
    const std::int64_t group = channel / group_out;
    const std::int64_t from = image * in_channels + group * group_in;
    const std::int64_t weights = group * group_in * group_out + channel % group_out;
    const SmallWindow::Axis *d = &window.axes[0], *h = &window.axes[1], *v = &window.axes[2];
    A sum = 0;
    for (std::int64_t i = 0; i < d->kernel; ++i) {
      const std::int64_t z = source(*d, at[0], i);
      if (z < 0) continue;
      for (std::int64_t j = 0; j < h->kernel; ++j) {
        const std::int64_t row = source(*h, at[1], j);
        if (row < 0) continue;
        for (std::int64_t k = 0; k < v->kernel; ++k) {
          const std::int64_t column = source(*v, at[2], k);
          if (column < 0) continue;
          const std::int64_t inside = (z * h->out + row) * v->out + column;
          const std::int64_t tap = (i * h->kernel + j) * v->kernel + k;
          sum += over_channels(from, weights, inside, tap);
        }
      }
    }
    if (bias != nullptr) sum += load_element<A>(bias, dtype, channel);
    store_element<A>(y, dtype, item, sum);
  }

 private:
  /// The input whose tap t lands on output i, or -1.
  TURNOUT_HD static std::int64_t source(const SmallWindow::Axis& axis, std::int64_t i,
                                        std::int64_t t) {
    const std::int64_t distance = i + axis.pad_begin - t * axis.dilation;
    if (distance < 0 || distance % axis.stride != 0) return -1;
    return distance / axis.stride < axis.out ? distance / axis.stride : -1;
  }
  TURNOUT_HD A over_channels(std::int64_t from, std::int64_t weights, std::int64_t inside,
                             std::int64_t tap) const {
    const SmallWindow::Axis *d = &window.axes[0], *h = &window.axes[1], *v = &window.axes[2];
    const std::int64_t plane = d->out * h->out * v->out;
    const std::int64_t taps = d->kernel * h->kernel * v->kernel;
    A sum = 0;
    for (std::int64_t c = 0; c < group_in; ++c) {
      sum += load_element<A>(x, dtype, (from + c) * plane + inside) *
             load_element<A>(w, dtype, (weights + c * group_out) * taps + tap);
    }
    return sum;
  }
};

std::unique_ptr<PreparedKernel> prepare_conv_transpose(const PrepareContext& context) {
  const ConvDims dims = conv_transpose_dims(context.info);
  const SmallWindow window = small_window(dims.window);
  const std::int64_t elements = context.info.output(0).elements();
  const DType dtype = context.info.input(0).dtype;
  return dispatch_compute(dtype, [&]<typename A>(std::type_identity<A>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(
          launch, elements, 0,
          ConvTranspose<A>{launch.input<std::byte>(0), launch.input<std::byte>(1),
                           launch.input<std::byte>(2), launch.output<std::byte>(0), dtype, window,
                           dims.in_channels, dims.out_channels, dims.group_in(), dims.group_out()});
    };
    return make_kernel(context, run, "gather");
  });
}

Acceptance accept_conv_transpose(const NodeInfo& info) {
  const Acceptance window = accept_window(info);
  return window.ok ? accept_floating(info) : window;
}

}  // namespace

void register_conv_transpose_kernels(KernelRegistry& registry) {
  add_kernel(registry, "conv_transpose", accept_conv_transpose, prepare_conv_transpose);
}

}  // namespace turnout::kokkos
