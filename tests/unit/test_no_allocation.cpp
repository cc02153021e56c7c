// A run with given outputs allocates nothing: operator new is counted. Allocations by malloc inside
// third-party libraries are not seen here; those by operator new are, so oneDNN's are printed
// apart.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "generated/turnout_config.hpp"
#include "tests/support/models.hpp"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* address = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(address);
}

namespace turnout::testing {
namespace {

int allocations_of_a_run(const Graph& model, const Shape& input, SessionOptions options) {
  options.dims["N"] = input[0];
  const Session session(std::make_shared<System>(), model, CostModel(made_up_cpu()), options);
  const std::vector<Tensor> inputs = {random_tensor(input, 1)};
  std::vector<Tensor> outputs = session.run(inputs);
  session.run(inputs, outputs);  // threads and thread-local state are there from now on
  allocations = 0;
  counting = true;
  session.run(inputs, outputs);
  counting = false;
  return allocations;
}

// On one thread only our own code runs, unless `third_party` libraries do. A dispatch of Kokkos on
// several threads makes an execution space, which allocates: printed, not judged.
void check(SessionOptions options, bool third_party) {
  for (const int threads : {1, 2}) {
    options.threads = threads;
    const int mlp_count = allocations_of_a_run(mlp({20, 33, 10}), {3, 20}, options);
    const int cnn_count = allocations_of_a_run(small_cnn(), {2, 3, 12, 12}, options);
    std::printf("allocations by new, %d threads: %d and %d\n", threads, mlp_count, cnn_count);
    if (third_party || threads > 1) continue;
    CHECK(mlp_count == 0);
    CHECK(cnn_count == 0);
  }
}

TEST_CASE("a run on Kokkos kernels allocates nothing") {
  if (!config::kHasKokkos) SKIP("Kokkos is not built");
  SessionOptions options;
  options.providers = {"kokkos"};
  check(options, false);
}

TEST_CASE("a run on OpenBLAS and Kokkos allocates nothing") {
  if (!config::kHasKokkos || !config::kHasOpenblas) SKIP("OpenBLAS or Kokkos is not built");
  SessionOptions options;
  options.providers = {"openblas", "kokkos"};
  check(options, false);
}

TEST_CASE("a run on a virtual device allocates nothing") {
  if (!config::kHasVirtual) SKIP("the virtual backend is not built");
  SessionOptions options;
  options.devices = {"cpu", "virtual:v100"};
  options.providers = {"kokkos"};
  options.alternate = true;
  check(options, false);
}

TEST_CASE("allocations inside oneDNN are shown") {
  if (!config::kHasOnednn || !config::kHasKokkos) SKIP("oneDNN or Kokkos is not built");
  SessionOptions options;
  options.providers = {"onednn", "kokkos"};
  check(options, true);
}

}  // namespace
}  // namespace turnout::testing
