#include "backends/gpu/library.hpp"

#include "core/error.hpp"
#include "ops/matmul.hpp"
#include "ops/rules.hpp"

namespace turnout::gpu {
namespace {

// The distance between matrices, or -1 where there is no single one: an operand that is broadcast
// along some batch dimensions alone.
std::int64_t batch_stride(const MatmulDims& dims, const MatmulDims::Strides& strides) {
  const std::int64_t batches = dims.batches();
  if (batches <= 1) return 0;
  const std::int64_t stride = dims.offset(1, strides);
  for (std::int64_t i = 2; i < batches; ++i) {
    if (dims.offset(i, strides) != stride * i) return -1;
  }
  return stride;
}

struct Described {
  GemmProblem problem;
  std::string refusal;
};

Described describe(const NodeInfo& info) {
  const MatmulDims dims = matmul_dims(info);
  Described result;
  GemmProblem& problem = result.problem;
  problem.dtype = info.input(0).dtype;
  problem.batches = dims.batches();
  problem.m = dims.m;
  problem.n = dims.n;
  problem.k = dims.k;
  problem.trans_a = dims.trans_a;
  problem.trans_b = dims.trans_b;
  problem.alpha = info.attrs->real("alpha");
  problem.bias = info.has_input(2);
  problem.residual = info.has_input(3);
  problem.activation = fused_activation(info).kind;
  problem.a_stride = batch_stride(dims, dims.a_strides);
  problem.b_stride = batch_stride(dims, dims.b_strides);
  const std::int64_t bias_stride = problem.bias ? batch_stride(dims, dims.bias_strides) : 0;
  const bool bias_by_column =
      dims.bias_row_stride == 0 && (dims.bias_col_stride == 1 || dims.n == 1);
  if (!is_floating(problem.dtype)) {
    result.refusal = fmt::format("no product of {}", to_string(problem.dtype));
  } else if (dims.output.elements() == 0 || dims.k == 0) {
    result.refusal = "a product without terms";
  } else if (problem.a_stride < 0 || problem.b_stride < 0) {
    result.refusal = "matrices of the batch aren't at equal distances";
  } else if (problem.bias && (bias_stride != 0 || !bias_by_column)) {
    result.refusal = "a bias that isn't one number a column";
  } else {
    result.refusal = blas_refusal(problem);
  }
  return result;
}

class MatmulKernel final : public PreparedKernel {
 public:
  explicit MatmulKernel(const NodeInfo& info) : gemm_(make_gemm(describe(info).problem)) {}

  void run(const KernelArgs& args, Stream& stream) const override {
    gemm_->run(args.input<std::byte>(0), args.input<std::byte>(1), args.input<std::byte>(2),
               args.input<std::byte>(3), args.output<std::byte>(0), args.workspace(),
               stream.native_handle());
  }
  std::size_t workspace_bytes() const override { return gemm_->workspace_bytes(); }
  std::string implementation() const override { return gemm_->implementation(); }

 private:
  std::unique_ptr<Gemm> gemm_;
};

}  // namespace

void register_library_kernels(KernelRegistry& registry) {
  if (*blas_provider() == '\0') return;
  KernelEntry entry;
  entry.op = "matmul";
  entry.provider = blas_provider();
  entry.accepts = [](const NodeInfo& info, const DeviceInfo&) {
    std::string refusal = describe(info).refusal;
    return refusal.empty() ? Acceptance::yes() : Acceptance::no(std::move(refusal));
  };
  entry.prepare = [](const PrepareContext& context) {
    return std::make_unique<MatmulKernel>(context.info);
  };
  registry.add(std::move(entry));
}

std::vector<std::string> library_providers() {
  if (*blas_provider() == '\0') return {};
  return {blas_provider()};
}

}  // namespace turnout::gpu
