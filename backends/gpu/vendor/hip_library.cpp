// Products by hipBLAS. Row-major y = a b is column-major y^T = b^T a^T, so the library's first
// operand is b. It has no epilogues: bias and activation are left to other kernels. Compile-only so
// far: see docs/support.md.
#include <hipblas/hipblas.h>

#include <map>
#include <memory>
#include <mutex>

#include "backends/gpu/library.hpp"
#include "backends/gpu/vendor/hip.hpp"

namespace turnout::gpu {
namespace {

void check(hipblasStatus_t status, const char* call) {
  if (status == HIPBLAS_STATUS_SUCCESS) return;
  const auto code =
      status == HIPBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::internal;
  fail(code, "[hipblas] {}: status {}", call, static_cast<int>(status));
}

hipblasDatatype_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return HIPBLAS_R_64F;
    case DType::f16:
      return HIPBLAS_R_16F;
    case DType::bf16:
      return HIPBLAS_R_16B;
    default:
      return HIPBLAS_R_32F;
  }
}

// A handle belongs to one stream at a time: one a thread and device.
hipblasHandle_t handle_of_thread() {
  struct Handles {
    ~Handles() {
      for (const auto& [device, handle] : by_device) hipblasDestroy(handle);
    }
    std::map<int, hipblasHandle_t> by_device;
  };
  thread_local Handles handles;
  int device = 0;
  vendor::check(hipGetDevice(&device), "GetDevice");
  const auto [at, is_new] = handles.by_device.try_emplace(device, nullptr);
  if (is_new) check(hipblasCreate(&at->second), "Create");
  return at->second;
}

class HipblasGemm final : public Gemm {
 public:
  explicit HipblasGemm(const GemmProblem& problem) : p_(problem) { handle_of_thread(); }

  void run(const void* a, const void* b, const void* /*bias*/, const void* residual, void* y,
           void* /*workspace*/, void* native_stream) const override {
    const auto stream = static_cast<hipStream_t>(native_stream);
    hipblasHandle_t handle = handle_of_thread();
    check(hipblasSetStream(handle, stream), "SetStream");
    if (residual != nullptr) {
      const std::size_t bytes =
          static_cast<std::size_t>(p_.batches * p_.m * p_.n) * bytes_of(p_.dtype);
      vendor::copy(stream, vendor::Direction::inside, y, residual, bytes);
    }
    const bool wide = p_.dtype == DType::f64;
    const double alpha64 = p_.alpha, beta64 = residual != nullptr ? 1 : 0;
    const auto alpha32 = static_cast<float>(alpha64), beta32 = static_cast<float>(beta64);
    const void* alpha = wide ? static_cast<const void*>(&alpha64) : &alpha32;
    const void* beta = wide ? static_cast<const void*>(&beta64) : &beta32;
    const hipblasDatatype_t type = data_type(p_.dtype);
    const auto int32 = [](std::int64_t value) { return static_cast<int>(value); };
    check(hipblasGemmStridedBatchedEx(
              handle, p_.trans_b ? HIPBLAS_OP_T : HIPBLAS_OP_N,
              p_.trans_a ? HIPBLAS_OP_T : HIPBLAS_OP_N, int32(p_.n), int32(p_.m), int32(p_.k),
              alpha, b, type, int32(p_.trans_b ? p_.k : p_.n), p_.b_stride, a, type,
              int32(p_.trans_a ? p_.m : p_.k), p_.a_stride, beta, y, type, int32(p_.n), p_.m * p_.n,
              int32(p_.batches), wide ? HIPBLAS_R_64F : HIPBLAS_R_32F, HIPBLAS_GEMM_DEFAULT),
          "GemmStridedBatchedEx");
  }
  std::string implementation() const override { return "gemm_strided_batched_ex"; }

 private:
  static std::size_t bytes_of(DType dtype) {
    return dtype == DType::f64 ? 8 : dtype == DType::f32 ? 4 : 2;
  }

  GemmProblem p_;
};

}  // namespace

const char* blas_provider() { return "hipblas"; }

std::string blas_refusal(const GemmProblem& problem) {
  constexpr std::int64_t kMost = 0x7fffffff;  // its sizes are 32-bit
  if (problem.bias) return "the library adds no bias";
  if (problem.activation != Activation::none) return "the library fuses no activation";
  if (std::max({problem.m, problem.n, problem.k, problem.batches}) > kMost) return "too large";
  return "";
}

std::unique_ptr<Gemm> make_gemm(const GemmProblem& problem) {
  return std::make_unique<HipblasGemm>(problem);
}

}  // namespace turnout::gpu
