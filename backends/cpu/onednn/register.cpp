#include "backends/cpu/onednn/recipe.hpp"
#include "core/backend.hpp"

namespace turnout {

void register_onednn_kernels(KernelRegistry& registry) {
  onednn::register_matmul(registry);
  onednn::register_conv(registry);
  onednn::register_pool(registry);
  onednn::register_softmax(registry);
  onednn::register_eltwise(registry);
  onednn::register_binary(registry);
  onednn::register_reduction(registry);
  onednn::register_norm(registry);
  onednn::register_movement(registry);
  onednn::register_reorder(registry);
}

}  // namespace turnout
