#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::algorithm;

/// The input's dimensions with ones where they are summed away.
Dims reduced_dims(const Site& site) {
  const Shape& shape = site.input(0).shape;
  Dims dims = to_dims(shape);
  std::vector<std::int64_t> axes;
  if (site.info.has_input(1)) axes = site.info.constant_integers(1);
  if (axes.empty()) {
    if (site.info.attrs->integer("noop_with_empty_axes") != 0) refuse("nothing is reduced");
    return Dims(dims.size(), 1);
  }
  for (const std::int64_t axis : axes) {
    dims[static_cast<std::size_t>(normalize_axis(axis, shape.rank(), "axes"))] = 1;
  }
  return dims;
}

template <algorithm kKind>
Recipe reduction(const Site& site) {
  if (!is_floating(site.input(0).dtype)) refuse("floating types only");
  const Desc x = plain_desc(site.input(0));
  const Dims dims = reduced_dims(site);
  if (dims == x.get_dims()) refuse("nothing is reduced");
  const Desc y = plain_desc(dims, site.output().dtype);
  Recipe recipe;
  recipe.descriptor =
      dnnl::reduction::primitive_desc(engine(), kKind, x, y, 0.0F, 0.0F, base_attr());
  recipe.view_input(DNNL_ARG_SRC, 0, x);
  recipe.view_output(DNNL_ARG_DST, y);
  return recipe;
}

}  // namespace

void register_reduction(KernelRegistry& registry) {
  add_kernel(registry, "reduce_sum", {reduction<algorithm::reduction_sum>});
  add_kernel(registry, "reduce_mean", {reduction<algorithm::reduction_mean>});
}

}  // namespace turnout::onednn
