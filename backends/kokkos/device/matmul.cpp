#include "ops/matmul.hpp"

#include <vector>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/device/gemm.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

/// Where the matrices of a batch begin.
struct BatchOffsets {
  std::int64_t a, b, bias;
};

/// The Product of a matmul: matrices with any strides.
template <typename A>
struct MatmulProduct {
  const void* a;
  const void* b;
  const BatchOffsets* offsets;  // null: one batch
  DType dtype;
  bool trans_a, trans_b;
  std::int64_t m, n, k;
  std::int64_t bias_row, bias_col;

  using Column = std::int64_t;
  TURNOUT_HD bool left_by_step() const { return !trans_a; }
  TURNOUT_HD bool right_by_step() const { return trans_b; }
  TURNOUT_HD A left(std::int64_t batch, std::int64_t row, std::int64_t step) const {
    const std::int64_t start = offsets == nullptr ? 0 : offsets[batch].a;
    return load_term<A>(a, dtype, start + (trans_a ? step * m + row : row * k + step));
  }
  TURNOUT_HD Column column(std::int64_t batch, std::int64_t col) const {
    return (offsets == nullptr ? 0 : offsets[batch].b) + (trans_b ? col * k : col);
  }
  TURNOUT_HD A right(Column column, std::int64_t step) const {
    return load_term<A>(b, dtype, column + (trans_b ? step : step * n));
  }
  TURNOUT_HD std::int64_t y_at(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    return (batch * m + row) * n + col;
  }
  TURNOUT_HD std::int64_t bias_at(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    return (offsets == nullptr ? 0 : offsets[batch].bias) + row * bias_row + col * bias_col;
  }
};

Constant batch_offsets(const PrepareContext& context, const MatmulDims& dims) {
  std::vector<BatchOffsets> offsets;
  for (std::int64_t i = 0; i < dims.batches() && dims.batches() > 1; ++i) {
    offsets.push_back({dims.offset(i, dims.a_strides), dims.offset(i, dims.b_strides),
                       dims.offset(i, dims.bias_strides)});
  }
  return constant_of(context, offsets);
}

std::unique_ptr<PreparedKernel> prepare_matmul(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const MatmulDims dims = matmul_dims(info);
  const std::int64_t elements = dims.output.elements();
  const Constant offsets = batch_offsets(context, dims);
  return dispatch_term(info.input(0).dtype, [&]<typename A>(std::type_identity<A>) {
    ProductEnd<A> end = product_end<A>(info);
    end.scale = static_cast<A>(info.attrs->real("alpha"));
    const GemmGrid grid = make_grid(dims.batches(), dims.m, dims.n, dims.k);
    const auto run = [=](const Launch& launch) {
      const MatmulProduct<A> product{launch.input<std::byte>(0),
                                     launch.input<std::byte>(1),
                                     offsets.template data<BatchOffsets>(),
                                     end.dtype,
                                     dims.trans_a,
                                     dims.trans_b,
                                     dims.m,
                                     dims.n,
                                     dims.k,
                                     dims.bias_row_stride,
                                     dims.bias_col_stride};
      run_gemm(launch, grid, elements, product, with_operands(end, launch));
    };
    return make_kernel(context, run, grid.splits > 1 ? "gemm:split" : "gemm",
                       gemm_workspace_bytes<A>(grid, elements));
  });
}

}  // namespace

void register_matmul_kernels(KernelRegistry& registry) {
  add_kernel(registry, "matmul", accept_any, prepare_matmul);
}

}  // namespace turnout::kokkos
