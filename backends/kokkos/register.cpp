#include "backends/kokkos/kernels.hpp"
#include "core/backend.hpp"

namespace turnout {

void register_kokkos_kernels(KernelRegistry& registry) {
  kokkos::register_matmul_kernels(registry);
  kokkos::register_conv_kernels(registry);
  kokkos::register_conv_transpose_kernels(registry);
  kokkos::register_pool_kernels(registry);
  kokkos::register_unary_kernels(registry);
  kokkos::register_binary_kernels(registry);
  kokkos::register_select_kernels(registry);
  kokkos::register_reduce_kernels(registry);
  kokkos::register_scan_kernels(registry);
  kokkos::register_softmax_kernels(registry);
  kokkos::register_norm_kernels(registry);
  kokkos::register_movement_kernels(registry);
  kokkos::register_pad_kernels(registry);
  kokkos::register_gather_kernels(registry);
  kokkos::register_scatter_kernels(registry);
  kokkos::register_fill_kernels(registry);
  kokkos::register_top_k_kernels(registry);
  kokkos::register_reverse_kernels(registry);
  kokkos::register_resize_kernels(registry);
}

}  // namespace turnout
