#include "ops/conv.hpp"

#include "backends/kokkos/host/depthwise.hpp"
#include "backends/kokkos/host/gemm_split.hpp"
#include "backends/kokkos/host/im2col.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/rules.hpp"

namespace turnout::kokkos {
namespace {

constexpr double kFlopsPerNs = 100;  // about what one core does; decides if threads are woken

template <typename A, typename T>
Finish<A, T> conv_finish(const NodeInfo& info, const ConvDims& dims) {
  const FusedActivation act = fused_activation(info);
  Finish<A, T> finish;
  finish.activation = {act.kind, static_cast<A>(act.alpha), static_cast<A>(act.beta)};
  finish.y_row = dims.window.out_size();
  finish.bias_row = 1;
  return finish;
}

/// Convolution as one product per image and group: weights [out channels, k] times columns of the
/// input [k, positions].
template <typename A, typename T>
class ConvKernel final : public PreparedKernel {
 public:
  explicit ConvKernel(const PrepareContext& context)
      : dims_(conv_dims(context.info)), parallel_(context.threads) {
    const NodeInfo& info = context.info;
    k_ = dims_.group_in() * dims_.window.kernel_size();
    pointwise_ = dims_.window.pointwise();
    finish_ = conv_finish<A, T>(info, dims_);
    const std::int64_t positions = dims_.window.out_size();
    if (const Tensor* w = info.constant(1)) pack(*w);
    const bool pack_weights = packed_ == nullptr && !std::is_same_v<A, T>;
    blocks_ = gemm_blocks<A, T>(dims_.group_out(), positions, k_, pack_weights, true);
    split_ = split_gemm<A>(dims_.batch * dims_.groups, dims_.group_out(), positions,
                           context.threads, pointwise_ ? 0.2 : 1.5);
    cost = cost_of(info);
    dtype = dtype_of<T>;
  }

  void run(const KernelArgs& args, Stream&) const override {
    if (dims_.batch * dims_.out_channels * dims_.window.out_size() == 0) return;
    const double slot_ns = cost.flops / kFlopsPerNs / static_cast<double>(split_.slots);
    parallel_for(parallel_, split_.slots, slot_ns,
                 Slot{this, args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3),
                      args.output<T>(0), static_cast<A*>(args.workspace())});
  }

  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(split_.slots * blocks_.elements()) * sizeof(A);
  }
  bool packs_input(int i) const override { return i == 1 && packed_ != nullptr; }
  std::size_t packed_bytes() const override { return packed_ ? packed_->bytes() : 0; }
  std::string implementation() const override {
    return pointwise_ ? "gemm:pointwise" : "gemm:implicit";
  }

 private:
  struct Slot {
    const ConvKernel* self;
    const T *x, *w, *bias, *residual;
    T* y;
    A* workspace;
    void operator()(std::int64_t slot) const {
      const GemmSplit& split = self->split_;
      A* const own = workspace + slot * self->blocks_.elements();
      for (std::int64_t i = split.first_task(slot); i < split.first_task(slot + 1); ++i) {
        self->run_task(*this, split.task(i), own);
      }
    }
  };

  void run_task(const Slot& args, const GemmSplit::Task& task, A* workspace) const {
    const std::int64_t group = task.batch % dims_.groups;
    const std::int64_t plane = dims_.window.in_size();
    const T* x = args.x + task.batch * dims_.group_in() * plane;
    const std::int64_t y_offset = task.batch * dims_.group_out() * finish_.y_row;
    Product<A, T> product;
    product.m = dims_.group_out();
    product.n = finish_.y_row;
    product.k = k_;
    product.blocks = blocks_;
    if (packed_ != nullptr) {
      product.a_panels =
          static_cast<const A*>(packed_->address()) + group * padded_rows<A>(product.m) * k_;
    } else {
      product.a = args.w + group * product.m * k_;
      product.a_row = k_;
      product.a_k = 1;
    }
    product.finish = finish_;
    product.finish.y = args.y + y_offset;
    if (args.residual != nullptr) product.finish.residual = args.residual + y_offset;
    if (args.bias != nullptr) product.finish.bias = args.bias + group * product.m;
    const StridedRight<A, T> rows{x, plane, 1};
    const Im2col<A, T> columns{x, &dims_.window, plane, dims_.window.kernel_size()};
    if (pointwise_) {
      product.b = {StridedRight<A, T>::pack, &rows};
    } else {
      product.b = {Im2col<A, T>::pack, &columns};
    }
    product.run(task.m0, task.m1, task.n0, task.n1, workspace);
  }

  void pack(const Tensor& w) {
    const std::int64_t m = dims_.group_out();
    const std::int64_t size = padded_rows<A>(m) * k_;
    packed_ = allocate_host(
        static_cast<std::size_t>(std::max<std::int64_t>(dims_.groups * size, 1)) * sizeof(A));
    for (std::int64_t group = 0; group < dims_.groups; ++group) {
      pack_left<A, T>(w.data<const T>() + group * m * k_, m, k_, k_, 1,
                      static_cast<A*>(packed_->address()) + group * size);
    }
  }

  ConvDims dims_;
  Parallel parallel_;
  std::int64_t k_ = 0;
  bool pointwise_ = false;
  Finish<A, T> finish_;
  GemmBlocks blocks_;
  GemmSplit split_;
  std::shared_ptr<Buffer> packed_;  ///< weights in panels, one group after the other
};

template <typename A, typename T>
std::unique_ptr<PreparedKernel> prepare_depthwise(const PrepareContext& context,
                                                  const DepthwiseDims& depthwise,
                                                  const Finish<A, T>& finish) {
  Depthwise<A, T> kernel{depthwise, 1, nullptr, nullptr, nullptr, finish};
  kernel.slots = std::clamp<std::int64_t>(depthwise.planes, 1, context.threads);
  const double taps = static_cast<double>(depthwise.rows.kernel * depthwise.cols.kernel);
  const double outputs = static_cast<double>(depthwise.planes) * static_cast<double>(finish.y_row);
  const double slot_ns = (0.03 * taps + 0.3) * outputs / static_cast<double>(kernel.slots);
  const auto bytes = static_cast<std::size_t>(kernel.slots * depthwise.elements()) * sizeof(A);
  return make_kernel(
      context,
      [kernel, slot_ns](const Launch& launch) {
        Depthwise<A, T> functor = kernel;
        functor.x = launch.input<T>(0);
        functor.w = launch.input<T>(1);
        functor.workspace = static_cast<A*>(launch.workspace());
        functor.finish.bias = launch.input<T>(2);
        functor.finish.residual = launch.input<T>(3);
        functor.finish.y = launch.output<T>(0);
        parallel_for(launch, functor.slots, slot_ns, functor);
      },
      "depthwise", bytes);
}

template <typename A, typename T>
std::unique_ptr<PreparedKernel> prepare_typed(const PrepareContext& context) {
  constexpr std::int64_t kMostElements = 512 * 1024;  // far apart taps need wide bands
  const ConvDims dims = conv_dims(context.info);
  if (dims.depthwise() && dims.window.rank <= 2 && dims.out_channels > 0) {
    const DepthwiseDims depthwise = depthwise_dims(dims, Tile<A>::kLanes);
    if (depthwise.padded_width <= kMostElements && depthwise.padded_height <= kMostElements &&
        depthwise.elements() <= kMostElements) {
      return prepare_depthwise<A, T>(context, depthwise, conv_finish<A, T>(context.info, dims));
    }
  }
  return std::make_unique<ConvKernel<A, T>>(context);
}

std::unique_ptr<PreparedKernel> prepare_conv(const PrepareContext& context) {
  switch (context.info.input(0).dtype) {
    case DType::f64:
      return prepare_typed<double, double>(context);
    case DType::f16:
      return prepare_typed<float, Half>(context);
    case DType::bf16:
      return prepare_typed<float, BFloat16>(context);
    default:
      return prepare_typed<float, float>(context);
  }
}

}  // namespace

void register_conv_kernels(KernelRegistry& registry) {
  add_kernel(registry, "conv", accept_floating, prepare_conv);
}

}  // namespace turnout::kokkos
