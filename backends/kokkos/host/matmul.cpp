#include "ops/matmul.hpp"

#include "backends/kokkos/host/gemm_split.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/rules.hpp"

namespace turnout::kokkos {
namespace {

constexpr double kFlopsPerNs = 100;  // about what one core does; decides if threads are woken

/// Floating products: sums in A, elements of T.
template <typename A, typename T>
class MatmulKernel final : public PreparedKernel {
 public:
  explicit MatmulKernel(const PrepareContext& context)
      : dims_(matmul_dims(context.info)), parallel_(context.threads) {
    const NodeInfo& info = context.info;
    const FusedActivation act = fused_activation(info);
    finish_.activation = {act.kind, static_cast<A>(act.alpha), static_cast<A>(act.beta)};
    finish_.alpha = static_cast<A>(info.attrs->real("alpha"));
    finish_.y_row = dims_.n;
    finish_.bias_row = dims_.bias_row_stride;
    finish_.bias_col = dims_.bias_col_stride;
    if (const Tensor* b = info.constant(1)) pack(*b);
    const bool pack_a = dims_.trans_a || !std::is_same_v<A, T>;
    blocks_ = gemm_blocks<A, T>(dims_.m, dims_.n, dims_.k, pack_a, packed_ == nullptr);
    const double pack_cost = packed_ != nullptr ? 0 : (dims_.trans_b ? 1.0 : 0.2);
    split_ = split_gemm<A>(dims_.batches(), dims_.m, dims_.n, context.threads, pack_cost);
    cost = cost_of(info);
    dtype = dtype_of<T>;
  }

  void run(const KernelArgs& args, Stream&) const override {
    if (dims_.output.elements() == 0) return;
    const double task_ns = cost.flops / kFlopsPerNs / static_cast<double>(split_.slots);
    parallel_for(parallel_, split_.slots, task_ns,
                 Slot{this, args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3),
                      args.output<T>(0), static_cast<A*>(args.workspace())});
  }

  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(split_.slots * blocks_.elements()) * sizeof(A);
  }
  bool packs_input(int i) const override { return i == 1 && packed_ != nullptr; }
  std::size_t packed_bytes() const override { return packed_ ? packed_->bytes() : 0; }
  std::string implementation() const override {
    return packed_ != nullptr ? "gemm:packed" : "gemm";
  }

 private:
  struct Slot {
    const MatmulKernel* self;
    const T *a, *b, *bias, *residual;
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
    Product<A, T> product;
    product.m = dims_.m;
    product.n = dims_.n;
    product.k = dims_.k;
    product.blocks = blocks_;
    product.a = args.a + dims_.offset(task.batch, dims_.a_strides);
    product.a_row = dims_.trans_a ? 1 : dims_.k;
    product.a_k = dims_.trans_a ? dims_.m : 1;
    product.finish = finish_;
    product.finish.y = args.y + task.batch * dims_.m * dims_.n;
    if (args.residual != nullptr) {
      product.finish.residual = args.residual + task.batch * dims_.m * dims_.n;
    }
    if (args.bias != nullptr) {
      product.finish.bias = args.bias + dims_.offset(task.batch, dims_.bias_strides);
    }
    const std::int64_t b_offset = dims_.offset(task.batch, dims_.b_strides);
    StridedRight<A, T> right{args.b, dims_.trans_b ? 1 : dims_.n, dims_.trans_b ? dims_.k : 1};
    if (packed_ != nullptr) {
      const std::int64_t matrix = dims_.k == 0 ? 0 : b_offset / (dims_.k * dims_.n);
      product.b_panels =
          static_cast<const A*>(packed_->address()) + matrix * padded_cols<A>(dims_.n) * dims_.k;
    } else {
      right.b += b_offset;
      product.b = {StridedRight<A, T>::pack, &right};
    }
    product.run(task.m0, task.m1, task.n0, task.n1, workspace);
  }

  void pack(const Tensor& b) {
    const std::int64_t size = dims_.k * dims_.n;
    const std::int64_t packed_size = padded_cols<A>(dims_.n) * dims_.k;
    const std::int64_t count = size == 0 ? 0 : b.elements() / size;
    packed_ = allocate_host(
        static_cast<std::size_t>(std::max<std::int64_t>(count * packed_size, 1)) * sizeof(A));
    for (std::int64_t i = 0; i < count; ++i) {
      pack_right<A, T>(b.data<const T>() + i * size, dims_.n, dims_.trans_b ? dims_.k : 1, dims_.k,
                       dims_.trans_b ? 1 : dims_.n,
                       static_cast<A*>(packed_->address()) + i * packed_size);
    }
  }

  MatmulDims dims_;
  Parallel parallel_;
  Finish<A, T> finish_;
  GemmBlocks blocks_;
  GemmSplit split_;
  std::shared_ptr<Buffer> packed_;  ///< b in panels, one matrix after the other
};

/// Products of integers, a row of y at a time. They wrap.
template <typename T>
struct IntegerRows {
  using Wrap = std::make_unsigned_t<T>;
  const MatmulDims* dims;
  const T *a, *b, *bias, *residual;
  T* y;
  void operator()(std::int64_t index) const {
    const MatmulDims& d = *dims;
    const std::int64_t batch = index / d.m, i = index % d.m;
    const T* left = a + d.offset(batch, d.a_strides);
    const T* right = b + d.offset(batch, d.b_strides);
    const T* add =
        bias == nullptr ? nullptr : bias + d.offset(batch, d.bias_strides) + i * d.bias_row_stride;
    for (std::int64_t j = 0; j < d.n; ++j) {
      Wrap sum = 0;
      for (std::int64_t k = 0; k < d.k; ++k) {
        sum += static_cast<Wrap>(left[d.trans_a ? k * d.m + i : i * d.k + k]) *
               static_cast<Wrap>(right[d.trans_b ? j * d.k + k : k * d.n + j]);
      }
      if (add != nullptr) sum += static_cast<Wrap>(add[j * d.bias_col_stride]);
      if (residual != nullptr) sum += static_cast<Wrap>(residual[index * d.n + j]);
      y[index * d.n + j] = static_cast<T>(sum);
    }
  }
};

template <typename T>
std::unique_ptr<PreparedKernel> prepare_integers(const PrepareContext& context) {
  return make_kernel(
      context,
      [dims = matmul_dims(context.info)](const Launch& launch) {
        const double row_ns = 0.5 * static_cast<double>(dims.n) * static_cast<double>(dims.k);
        parallel_for(launch, dims.batches() * dims.m, row_ns,
                     IntegerRows<T>{&dims, launch.input<T>(0), launch.input<T>(1),
                                    launch.input<T>(2), launch.input<T>(3), launch.output<T>(0)});
      },
      "integer rows");
}

std::unique_ptr<PreparedKernel> prepare_matmul(const PrepareContext& context) {
  switch (context.info.input(0).dtype) {
    case DType::f64:
      return std::make_unique<MatmulKernel<double, double>>(context);
    case DType::f16:
      return std::make_unique<MatmulKernel<float, Half>>(context);
    case DType::bf16:
      return std::make_unique<MatmulKernel<float, BFloat16>>(context);
    case DType::i32:
      return prepare_integers<std::int32_t>(context);
    case DType::u32:
      return prepare_integers<std::uint32_t>(context);
    case DType::i64:
      return prepare_integers<std::int64_t>(context);
    case DType::u64:
      return prepare_integers<std::uint64_t>(context);
    default:
      return std::make_unique<MatmulKernel<float, float>>(context);
  }
}

}  // namespace

void register_matmul_kernels(KernelRegistry& registry) {
  add_kernel(registry, "matmul", accept_any, prepare_matmul);
}

}  // namespace turnout::kokkos
