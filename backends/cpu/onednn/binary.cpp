#include <algorithm>

#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::algorithm;

/// Input i as it arrives if it has the output's shape, otherwise plain with leading ones.
Desc operand(const Site& site, int i) {
  const int rank = std::max(1, site.output().shape.rank());
  if (site.input(i).shape == site.output().shape) return site.take(i);
  return plain_desc(site.input(i), rank);
}

void bind(Recipe& recipe, const Site& site, int argument, int i) {
  if (site.input(i).shape == site.output().shape) {
    recipe.input(argument, site, i);
  } else {
    recipe.view_input(argument, i, recipe.settled(argument));
  }
}

template <algorithm kKind>
Recipe binary(const Site& site) {
  if (!is_floating(site.output().dtype)) refuse("floating types only");
  // oneDNN broadcasts its second operand only.
  const bool commutes = kKind == algorithm::binary_add || kKind == algorithm::binary_mul;
  const bool swap = commutes && site.input(0).shape != site.output().shape;
  const int first = swap ? 1 : 0;
  if (site.input(first).shape != site.output().shape) refuse("the left operand is broadcast");
  const Desc x = operand(site, first);
  Recipe recipe;
  recipe.descriptor =
      dnnl::binary::primitive_desc(engine(), kKind, x, operand(site, 1 - first), x, base_attr());
  bind(recipe, site, DNNL_ARG_SRC_0, first);
  bind(recipe, site, DNNL_ARG_SRC_1, 1 - first);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

}  // namespace

// max and min are left to others: oneDNN's lose NaN.
void register_binary(KernelRegistry& registry) {
  add_kernel(registry, "add", {binary<algorithm::binary_add>});
  add_kernel(registry, "sub", {binary<algorithm::binary_sub>});
  add_kernel(registry, "mul", {binary<algorithm::binary_mul>});
  add_kernel(registry, "div", {binary<algorithm::binary_div>});
}

}  // namespace turnout::onednn
