#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::algorithm;

Recipe eltwise(const Site& site, algorithm kind, double alpha = 0, double beta = 0) {
  if (!is_floating(site.input(0).dtype)) refuse("floating types only");
  const Desc x = site.take(0);
  Recipe recipe;
  recipe.descriptor = dnnl::eltwise_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, kind, x, x, static_cast<float>(alpha),
      static_cast<float>(beta), base_attr());
  recipe.input(DNNL_ARG_SRC, site, 0);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

double real(const Site& site, const char* name) { return site.info.attrs->real(name); }

template <algorithm kKind>
Recipe simple(const Site& site) {
  return eltwise(site, kKind);
}

Recipe leaky_relu(const Site& site) {
  return eltwise(site, algorithm::eltwise_relu, real(site, "alpha"));
}

Recipe elu(const Site& site) { return eltwise(site, algorithm::eltwise_elu, real(site, "alpha")); }

Recipe hard_swish(const Site& site) {
  return eltwise(site, algorithm::eltwise_hardswish, 1.0 / 6, 0.5);
}

Recipe swish(const Site& site) {
  return eltwise(site, algorithm::eltwise_swish, real(site, "alpha"));
}

Recipe gelu(const Site& site) {
  const bool by_tanh = site.info.attrs->text("approximate") == "tanh";
  return eltwise(site, by_tanh ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
}

}  // namespace

// relu, clip and hard_sigmoid are left to others: oneDNN's turn NaN into a bound.
void register_eltwise(KernelRegistry& registry) {
  add_kernel(registry, "sigmoid", {simple<algorithm::eltwise_logistic>});
  add_kernel(registry, "tanh", {simple<algorithm::eltwise_tanh>});
  add_kernel(registry, "leaky_relu", {leaky_relu});
  add_kernel(registry, "elu", {elu});
  add_kernel(registry, "hard_swish", {hard_swish});
  add_kernel(registry, "swish", {swish});
  add_kernel(registry, "gelu", {gelu});
}

}  // namespace turnout::onednn
