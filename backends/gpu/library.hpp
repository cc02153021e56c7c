#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "ops/activation.hpp"

// Kernels of the vendor's own libraries. The neutral half (library.cpp) turns nodes into problems;
// vendor/*_library.cpp solves them. Emulated devices have a naive one, so that the neutral half is
// tested without hardware.
namespace turnout::gpu {

/// y = activation(alpha * a b + bias + residual), `batches` times; everything dense and row-major.
struct GemmProblem {
  DType dtype = DType::f32;  ///< of all operands; sums are f32, or f64 for f64
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;    ///< stored as [k,m], [n,k]
  std::int64_t a_stride = 0, b_stride = 0;  ///< elements from one matrix to the next; 0: one
  double alpha = 1;
  bool bias = false;      ///< [n], the same for every row and batch
  bool residual = false;  ///< of y's shape
  Activation activation = Activation::none;
};

/// A problem made ready: algorithm chosen, descriptors made. Immutable; thread-safe.
class Gemm {
 public:
  virtual ~Gemm() = default;
  /// Enqueues on the stream. Addresses are the device's; bias and residual null where there is
  /// none.
  virtual void run(const void* a, const void* b, const void* bias, const void* residual, void* y,
                   void* workspace, void* native_stream) const = 0;
  virtual std::size_t workspace_bytes() const { return 0; }
  virtual std::string implementation() const = 0;
};

/// The provider's name: "cublaslt". Empty: this build has no such library.
const char* blas_provider();
/// Why the library doesn't take the problem; empty: it does.
std::string blas_refusal(const GemmProblem& problem);
/// The device it is for is current.
std::unique_ptr<Gemm> make_gemm(const GemmProblem& problem);

/// Adds the kernels above.
void register_library_kernels(KernelRegistry& registry);
/// Their providers, best first.
std::vector<std::string> library_providers();

}  // namespace turnout::gpu
