#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/kernel.hpp"
#include "core/portable.hpp"

// How hand-written kernels run their loops.
//
// A loop body is a functor: a small struct of pointers and numbers with
// `TURNOUT_HD void operator()(std::int64_t i) const`, free of host state, so that the same functor
// can be given to another Kokkos execution space. parallel_for() is the launcher:
//
//   struct Double { const float* x; float* y;
//     TURNOUT_HD void operator()(std::int64_t i) const { y[i] = 2 * x[i]; } };
//   parallel_for(parallel, n, 0.5, Double{x, y});
//
// Kokkos itself is included by support.cpp alone: one dispatch is compiled, not one per functor.
namespace turnout::kokkos {

class SpacePool;

/// How many threads a kernel may use, with the Kokkos instances for that many. Made in prepare();
/// cheap to copy. The first one asking for more than one thread initialises Kokkos, unless the
/// program did; what was initialised here is finalised at exit.
class Parallel {
 public:
  explicit Parallel(int threads);
  int threads() const { return threads_; }
  SpacePool* pool() const { return pool_; }

 private:
  int threads_;
  SpacePool* pool_;  ///< null: one thread
};

/// Calls `body(functor, begin, end)` for ranges that cover [0, n), on several threads at once or
/// on the calling one: see parallel_for.
void run_ranges(const Parallel& parallel, std::int64_t n, double item_ns,
                void (*body)(const void* functor, std::int64_t begin, std::int64_t end),
                const void* functor);

/// Calls functor(i) for every i in [0, n) and returns when all is done. `item_ns`: about how long
/// one call takes, in nanoseconds; a loop too short for other threads to be worth waking runs on
/// the calling thread. Order isn't defined, and calls may happen at the same time. May be called
/// from several threads at once: each takes a Kokkos instance of its own, and when all are taken
/// the loop runs on its caller. Allocates nothing. The functor must not throw.
template <typename Functor>
void parallel_for(const Parallel& parallel, std::int64_t n, double item_ns,
                  const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) < 512,
                "a functor is copied to devices as it is, and larger ones take a slow path there");
  const auto body = [](const void* address, std::int64_t begin, std::int64_t end) {
    const Functor local = *static_cast<const Functor*>(address);  // own copy: no aliasing
    for (std::int64_t i = begin; i < end; ++i) local(i);
  };
  run_ranges(parallel, n, item_ns, body, &functor);
}

/// A prepared kernel around a function `void(const KernelArgs&)`, which has what it needs captured
/// by value.
template <typename Run>
class FunctionKernel final : public PreparedKernel {
 public:
  FunctionKernel(Run run, std::string implementation, std::size_t workspace_bytes)
      : run_(std::move(run)),
        implementation_(std::move(implementation)),
        workspace_bytes_(workspace_bytes) {}
  void run(const KernelArgs& args, Stream&) const override { run_(args); }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string implementation() const override { return implementation_; }

 private:
  Run run_;
  std::string implementation_;
  std::size_t workspace_bytes_;
};

template <typename Run>
std::unique_ptr<PreparedKernel> make_kernel(const PrepareContext& context, Run run,
                                            std::string implementation,
                                            std::size_t workspace_bytes = 0) {
  auto kernel = std::make_unique<FunctionKernel<Run>>(std::move(run), std::move(implementation),
                                                      workspace_bytes);
  kernel->cost = cost_of(context.info);
  if (context.info.has_input(0)) kernel->dtype = context.info.input(0).dtype;
  return kernel;
}

/// Kokkos kernels run on hosts and on devices emulated by one.
Acceptance accept_device(const DeviceInfo& device);

/// Calls f(std::type_identity<T>{}) with the C++ type of a floating dtype.
template <typename F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::f16:
      return f(std::type_identity<Half>{});
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    default:
      fail(ErrorCode::internal, "a kernel for floating types was given {}", to_string(dtype));
  }
}

/// accepts() rules: any tensors; those whose input 0 is f32, f64, f16 or bf16.
Acceptance accept_any(const NodeInfo& info);
Acceptance accept_floating(const NodeInfo& info);
/// The refusal of a dtype.
Acceptance refuse_dtype(DType dtype);

/// Adds an entry of the provider "kokkos"; `accepts` is asked after accept_device().
void add_kernel(KernelRegistry& registry, std::string op, Acceptance (*accepts)(const NodeInfo&),
                std::unique_ptr<PreparedKernel> (*prepare)(const PrepareContext&));

}  // namespace turnout::kokkos
