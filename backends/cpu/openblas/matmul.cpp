// y = activation(alpha a b + bias + residual) by single-threaded GEMM calls on blocks of y.
//
// Example: 2 threads, one product with m = 1, n = 512: two items of 256 columns each. With m = 512
// and n = 1: two items of 256 rows. With 8 products: four whole ones a thread.
#include "ops/matmul.hpp"

#include "backends/cpu/openblas/blas.hpp"
#include "backends/cpu/openblas/epilogue.hpp"
#include "backends/cpu/openblas/kernels.hpp"
#include "backends/cpu/openblas/partition.hpp"
#include "backends/cpu/threads.hpp"

namespace turnout::openblas {
namespace {

/// Where a product is cut, so that there are items for all threads.
struct Cut {
  std::int64_t row_parts = 1, col_parts = 1;
};

// Parts thinner than this make GEMM slower than a second thread makes it faster.
constexpr std::int64_t kUnit = 16;

Cut cut_product(const MatmulDims& d, int threads) {
  if (threads <= 1 || d.batches() >= threads) return {};
  const std::int64_t parts = (threads + d.batches() - 1) / std::max<std::int64_t>(d.batches(), 1);
  const std::int64_t row_units = (d.m + kUnit - 1) / kUnit;
  const std::int64_t col_units = (d.n + kUnit - 1) / kUnit;
  if (row_units > col_units) return {std::min(parts, row_units), 1};
  return {1, std::min(parts, col_units)};
}

template <typename T>
class MatmulKernel final : public PreparedKernel {
 public:
  explicit MatmulKernel(const PrepareContext& context)
      : dims_(matmul_dims(context.info)),
        activation_(fused_activation(context.info)),
        alpha_(static_cast<T>(context.info.attrs->real("alpha"))),
        threads_(cpu::useful_threads(cost_of(context.info), context.threads)),
        cut_(cut_product(dims_, threads_)) {}

  std::string implementation() const override {
    return dims_.m == 1 || dims_.n == 1 ? "gemv" : "gemm";
  }

  void run(const KernelArgs& args, Stream&) const override {
    const Operands in{args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3),
                      args.output<T>(0)};
    const std::int64_t tiles = cut_.row_parts * cut_.col_parts;
    for_each_item(dims_.batches() * tiles, threads_, [&](std::int64_t item, int) {
      const std::int64_t tile = item % tiles;
      const Part rows = part_of(dims_.m, cut_.row_parts, tile / cut_.col_parts, kUnit);
      const Part cols = part_of(dims_.n, cut_.col_parts, tile % cut_.col_parts, kUnit);
      run_tile(in, item / tiles, rows, cols);
    });
  }

 private:
  struct Operands {
    const T *a, *b, *bias, *residual;
    T* y;
  };

  // Blocks of rows that leave the cache's second level warm for the epilogue.
  std::int64_t block_rows(std::int64_t cols) const {
    constexpr std::int64_t kBlockBytes = 512 * 1024;
    const auto row_bytes = cols * static_cast<std::int64_t>(sizeof(T));
    return std::max<std::int64_t>(256, kBlockBytes / std::max<std::int64_t>(row_bytes, 1));
  }

  void run_tile(const Operands& in, std::int64_t batch, const Part& rows, const Part& cols) const {
    const MatmulDims& d = dims_;
    const T* a = in.a + d.offset(batch, d.a_strides);
    const T* b = in.b + d.offset(batch, d.b_strides) + cols.begin * (d.trans_b ? d.k : 1);
    const std::int64_t step = block_rows(cols.size());
    for (std::int64_t i = rows.begin; i < rows.end; i += step) {
      Product<T> product{std::min(step, rows.end - i), cols.size(), d.k, d.trans_a, d.trans_b};
      product.alpha = alpha_;
      product.a = a + i * (d.trans_a ? 1 : d.k);
      product.lda = std::max<std::int64_t>(1, d.trans_a ? d.m : d.k);
      product.b = b;
      product.ldb = std::max<std::int64_t>(1, d.trans_b ? d.k : d.n);
      const std::int64_t offset = (batch * d.m + i) * d.n + cols.begin;
      product.c = in.y + offset;
      product.ldc = d.n;
      product.run();
      EpilogueBlock<T> block{product.c, product.m, product.n, d.n};
      if (in.bias != nullptr) {
        block.bias = in.bias + d.offset(batch, d.bias_strides) + i * d.bias_row_stride +
                     cols.begin * d.bias_col_stride;
        block.bias_row_step = d.bias_row_stride;
        block.bias_col_step = d.bias_col_stride;
      }
      if (in.residual != nullptr) block.residual = in.residual + offset;
      run_epilogue(activation_, block);
    }
  }

  MatmulDims dims_;
  FusedActivation activation_;
  T alpha_;
  int threads_;
  Cut cut_;
};

Acceptance accept(const NodeInfo& info) {
  const MatmulDims d = matmul_dims(info);
  if (!fits_blas(d.m) || !fits_blas(d.n) || !fits_blas(d.k)) {
    return Acceptance::no("dimensions over 2^31 - 1");
  }
  return Acceptance::yes();
}

template <typename T>
std::unique_ptr<PreparedKernel> prepare(const PrepareContext& context) {
  return std::make_unique<MatmulKernel<T>>(context);
}

}  // namespace

void register_matmul(KernelRegistry& registry) {
  add_kernel(registry, "matmul", {accept, prepare<float>, prepare<double>});
}

}  // namespace turnout::openblas
