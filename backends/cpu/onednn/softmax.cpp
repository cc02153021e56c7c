#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

Recipe softmax_like(const Site& site, dnnl::algorithm kind) {
  const int axis =
      normalize_axis(site.info.attrs->integer("axis"), site.input(0).shape.rank(), "softmax");
  const Desc x = site.take(0);
  Recipe recipe;
  recipe.descriptor = dnnl::softmax_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, kind, x, x, axis, base_attr());
  recipe.input(DNNL_ARG_SRC, site, 0);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

Recipe softmax(const Site& site) { return softmax_like(site, dnnl::algorithm::softmax_accurate); }

Recipe log_softmax(const Site& site) { return softmax_like(site, dnnl::algorithm::softmax_log); }

}  // namespace

void register_softmax(KernelRegistry& registry) {
  add_kernel(registry, "softmax", {softmax});
  add_kernel(registry, "log_softmax", {log_softmax});
}

}  // namespace turnout::onednn
