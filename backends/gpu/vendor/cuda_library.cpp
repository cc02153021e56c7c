// Products by cuBLASLt. Row-major y = a b is column-major y^T = b^T a^T, so the library's first
// operand is b. Compile-only so far: see docs/support.md.
#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>

#include "backends/gpu/library.hpp"
#include "backends/gpu/vendor/cuda.hpp"

namespace turnout::gpu {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto code =
      status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::internal;
  fail(code, "[cublaslt] {}: {}", call, cublasLtGetStatusString(status));
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// A handle a device, kept while a kernel needs it.
std::shared_ptr<cublasLtContext> shared_handle() {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<cublasLtContext>> handles;
  int device = 0;
  vendor::check(cudaGetDevice(&device), "GetDevice");
  const std::scoped_lock lock(mutex);
  if (auto known = handles[device].lock()) return known;
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "Create");
  std::shared_ptr<cublasLtContext> result(handle, [](cublasLtHandle_t h) { cublasLtDestroy(h); });
  handles[device] = result;
  return result;
}

// What the library has to know of a problem: plain data, so that a run can have a copy of its own.
struct Descriptor {
  explicit Descriptor(const GemmProblem& p) {
    const bool wide = p.dtype == DType::f64;
    // Never TF32 for f32 operands.
    check(cublasLtMatmulDescInit(&operation, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 wide ? CUDA_R_64F : CUDA_R_32F),
          "MatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p));
    const cudaDataType_t type = data_type(p.dtype);
    describe(left, type, p.trans_b ? p.k : p.n, p.trans_b ? p.n : p.k, p, p.b_stride);
    describe(right, type, p.trans_a ? p.m : p.k, p.trans_a ? p.k : p.m, p, p.a_stride);
    describe(out, type, p.n, p.m, p, p.m * p.n);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof value),
          "MatmulDescSetAttribute");
  }

  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t left{}, right{}, out{};

 private:
  static cublasLtEpilogue_t epilogue(const GemmProblem& p) {
    if (p.activation == Activation::gelu_tanh) {
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    }
    if (p.activation == Activation::relu) {
      return p.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    }
    return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }

  static void describe(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, std::int64_t rows,
                       std::int64_t cols, const GemmProblem& p, std::int64_t stride) {
    check(cublasLtMatrixLayoutInit(&layout, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), rows),
          "MatrixLayoutInit");
    const auto count = static_cast<std::int32_t>(p.batches);
    check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count),
          "MatrixLayoutSetAttribute");
    check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &stride, sizeof stride),
          "MatrixLayoutSetAttribute");
  }
};

class CublasLtGemm final : public Gemm {
 public:
  explicit CublasLtGemm(const GemmProblem& problem)
      : problem_(problem), handle_(shared_handle()), descriptor_(problem), choice_(choose()) {}

  void run(const void* a, const void* b, const void* bias, const void* residual, void* y,
           void* workspace, void* native_stream) const override {
    Descriptor own = descriptor_;  // the bias' address is part of it
    if (problem_.bias) own.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const bool wide = problem_.dtype == DType::f64;
    const double alpha64 = problem_.alpha, beta64 = problem_.residual ? 1 : 0;
    const auto alpha32 = static_cast<float>(alpha64), beta32 = static_cast<float>(beta64);
    const void* alpha = wide ? static_cast<const void*>(&alpha64) : &alpha32;
    const void* beta = wide ? static_cast<const void*>(&beta64) : &beta32;
    check(
        cublasLtMatmul(handle_.get(), &own.operation, alpha, b, &own.left, a, &own.right, beta,
                       problem_.residual ? residual : y, &own.out, y, &own.out, &choice_.algo,
                       workspace, choice_.workspaceSize, static_cast<cudaStream_t>(native_stream)),
        "Matmul");
  }
  std::size_t workspace_bytes() const override { return choice_.workspaceSize; }
  std::string implementation() const override { return "matmul"; }

 private:
  // The library's own first choice within a bound of workspace; asked once.
  cublasLtMatmulHeuristicResult_t choose() const {
    constexpr std::uint64_t kMostBytes = std::uint64_t{32} << 20;
    Descriptor own = descriptor_;
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(cublasLtMatmulPreferenceInit(&preference), "MatmulPreferenceInit");
    check(
        cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &kMostBytes, sizeof kMostBytes),
        "MatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_.get(), &own.operation, &own.left, &own.right,
                                         &own.out, &own.out, &preference, 1, &result, &found),
          "MatmulAlgoGetHeuristic");
    if (found == 0) fail(ErrorCode::unsupported, "[cublaslt] no algorithm for this product");
    return result;
  }

  GemmProblem problem_;
  std::shared_ptr<cublasLtContext> handle_;
  Descriptor descriptor_;
  cublasLtMatmulHeuristicResult_t choice_;
};

}  // namespace

const char* blas_provider() { return "cublaslt"; }

std::string blas_refusal(const GemmProblem& problem) {
  switch (problem.activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::gelu_tanh:
      break;
    default:
      return "this activation isn't among the library's epilogues";
  }
  const bool epilogue = problem.bias || problem.activation != Activation::none;
  if (problem.dtype == DType::f64 && epilogue) return "f64 products have no epilogue";
  return "";
}

std::unique_ptr<Gemm> make_gemm(const GemmProblem& problem) {
  return std::make_unique<CublasLtGemm>(problem);
}

}  // namespace turnout::gpu
