#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

/// Input axis that each output axis walks along.
std::vector<int> axis_order(const Site& site) {
  const int rank = site.input(0).shape.rank();
  std::vector<int> order;
  const AttrValue* perm = site.info.attrs->find("perm");
  if (perm == nullptr) {
    for (int i = rank - 1; i >= 0; --i) order.push_back(i);
    return order;
  }
  for (const std::int64_t axis : std::get<std::vector<std::int64_t>>(*perm)) {
    order.push_back(normalize_axis(axis, rank, "perm"));
  }
  return order;
}

/// A reorder of plain memory.
Recipe transpose(const Site& site) {
  const Desc x = plain_desc(site.input(0));
  const Desc y = plain_desc(site.output());
  const Dims steps = x.get_strides();
  Dims strides;
  for (const int axis : axis_order(site))
    strides.push_back(steps.at(static_cast<std::size_t>(axis)));
  if (strides.empty()) strides = steps;  // a scalar
  const Desc seen(y.get_dims(), require_type(site.input(0).dtype), strides);
  Recipe recipe;
  recipe.descriptor = dnnl::reorder::primitive_desc(engine(), seen, engine(), y, base_attr());
  recipe.view_input(DNNL_ARG_FROM, 0, seen);
  recipe.view_output(DNNL_ARG_TO, y);
  return recipe;
}

Recipe concat(const Site& site) {
  const int axis =
      normalize_axis(site.info.attrs->integer("axis"), site.output().shape.rank(), "concat");
  std::vector<Desc> sources;
  for (int i = 0; i < site.info.input_count(); ++i) {
    if (site.input(i).elements() == 0) refuse("oneDNN takes no empty operand");
    sources.push_back(site.take(i));
  }
  Recipe recipe;
  recipe.descriptor =
      dnnl::concat::primitive_desc(engine(), site.give(), axis, sources, base_attr());
  for (int i = 0; i < site.info.input_count(); ++i) {
    recipe.input(DNNL_ARG_MULTIPLE_SRC + i, site, i);
  }
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

}  // namespace

void register_movement(KernelRegistry& registry) {
  add_kernel(registry, "transpose", {transpose});
  add_kernel(registry, "concat", {concat});
}

}  // namespace turnout::onednn
