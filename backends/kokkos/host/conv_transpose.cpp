// Transposed convolution, each output gathering what reaches it: tap t of input o lands on output
// o * stride - pad + t * dilation, so output i is reached where (i + pad - t * dilation) divides.
#include "backends/kokkos/host/row_math.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/conv.hpp"

namespace turnout::kokkos {
namespace {

/// Item: one output channel of one image.
template <typename T>
struct ConvTransposePlane {
  using A = Wide<T>;
  const ConvDims* dims;
  const T *x, *w, *bias;
  T* y;

  void operator()(std::int64_t plane) const {
    const std::int64_t size = dims->window.in_size();
    const std::int64_t channel = plane % dims->out_channels;
    const A start = bias == nullptr ? A(0) : static_cast<A>(bias[channel]);
    const std::int64_t group = channel / dims->group_out();
    const T* from =
        x + (plane / dims->out_channels * dims->in_channels + group * dims->group_in()) *
                dims->window.out_size();
    const T* weights =
        w + (group * dims->group_in() * dims->group_out() + channel % dims->group_out()) *
                dims->window.kernel_size();
    for (std::int64_t i = 0; i < size; ++i) {
      y[plane * size + i] = T(start + gather(from, weights, i));
    }
  }

 private:
  A gather(const T* from, const T* weights, std::int64_t position) const {
    const Window& window = dims->window;
    std::int64_t at[Window::kMaxRank];
    for (int i = window.rank - 1; i >= 0; --i) {
      at[i] = position % window.axis(i).in + window.axis(i).pad_begin;
      position /= window.axis(i).in;
    }
    const std::int64_t taps = window.kernel_size();
    const std::int64_t inputs = window.out_size();
    A sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t rest = tap, offset = 0, step = 1;
      bool reached = true;
      for (int i = window.rank - 1; i >= 0 && reached; --i) {
        const Window::Axis& axis = window.axis(i);
        const std::int64_t distance = at[i] - rest % axis.kernel * axis.dilation;
        reached = distance >= 0 && distance % axis.stride == 0 && distance / axis.stride < axis.out;
        offset += distance / axis.stride * step;
        step *= axis.out;
        rest /= axis.kernel;
      }
      for (std::int64_t c = 0; reached && c < dims->group_in(); ++c) {
        sum += static_cast<A>(from[c * inputs + offset]) *
               static_cast<A>(weights[c * dims->group_out() * taps + tap]);
      }
    }
    return sum;
  }
};

std::unique_ptr<PreparedKernel> prepare_conv_transpose(const PrepareContext& context) {
  const ConvDims dims = conv_transpose_dims(context.info);
  return dispatch_floating(context.info.input(0).dtype, [&]<typename T>(std::type_identity<T>) {
    const std::int64_t planes = dims.batch * dims.out_channels;
    const double plane_ns = static_cast<double>(dims.window.in_size()) *
                            static_cast<double>(dims.window.kernel_size()) *
                            static_cast<double>(dims.group_in() + 4);
    return make_kernel(
        context,
        [dims, planes, plane_ns](const Launch& launch) {
          parallel_for(launch, planes, plane_ns,
                       ConvTransposePlane<T>{&dims, launch.input<T>(0), launch.input<T>(1),
                                             launch.input<T>(2), launch.output<T>(0)});
        },
        "gather");
  });
}

}  // namespace

void register_conv_transpose_kernels(KernelRegistry& registry) {
  add_kernel(registry, "conv_transpose", accept_floating, prepare_conv_transpose);
}

}  // namespace turnout::kokkos
