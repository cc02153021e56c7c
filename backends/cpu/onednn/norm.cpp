#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::normalization_flags;

void require_f32(const Site& site, int first) {
  for (int i = first; i < site.info.input_count(); ++i) {
    if (site.info.has_input(i) && site.input(i).dtype != DType::f32) {
      refuse("scales and statistics have to be f32");
    }
  }
}

Recipe batch_normalization(const Site& site) {
  if (site.info.output_count() > 1) refuse("statistics are not an output at inference");
  require_f32(site, 1);
  const Desc x = site.take(0);
  Recipe recipe;
  recipe.descriptor = dnnl::batch_normalization_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, x, x,
      static_cast<float>(site.info.attrs->real("epsilon")),
      normalization_flags::use_global_stats | normalization_flags::use_scale |
          normalization_flags::use_shift,
      base_attr());
  recipe.input(DNNL_ARG_SRC, site, 0);
  recipe.view_input(DNNL_ARG_SCALE, 1, plain_desc(site.input(1)));
  recipe.view_input(DNNL_ARG_SHIFT, 2, plain_desc(site.input(2)));
  recipe.view_input(DNNL_ARG_MEAN, 3, plain_desc(site.input(3)));
  recipe.view_input(DNNL_ARG_VARIANCE, 4, plain_desc(site.input(4)));
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

/// Rows of all dimensions from `axis` on, normalized one by one.
Recipe layer_normalization(const Site& site) {
  if (site.info.output_count() > 1) refuse("oneDNN gives the variance, ONNX its inverse root");
  require_f32(site, 1);
  const Shape& shape = site.input(0).shape;
  const int axis = normalize_axis(site.info.attrs->integer("axis"), shape.rank(), "axis");
  const std::int64_t length = shape.elements(axis, shape.rank());
  const bool has_shift = site.info.has_input(2);
  if (site.input(1).elements() != length || (has_shift && site.input(2).elements() != length)) {
    refuse("scale and bias are broadcast");
  }
  const Desc x = plain_desc({shape.elements(0, axis), length}, site.input(0).dtype);
  const Desc line = plain_desc(Dims{length}, DType::f32);
  auto flags = normalization_flags::use_scale;
  if (has_shift) flags |= normalization_flags::use_shift;
  Recipe recipe;
  recipe.descriptor = dnnl::layer_normalization_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, x, x,
      static_cast<float>(site.info.attrs->real("epsilon")), flags, base_attr());
  recipe.view_input(DNNL_ARG_SRC, 0, x);
  recipe.view_input(DNNL_ARG_SCALE, 1, line);
  if (has_shift) recipe.view_input(DNNL_ARG_SHIFT, 2, line);
  recipe.view_output(DNNL_ARG_DST, x);
  return recipe;
}

}  // namespace

void register_norm(KernelRegistry& registry) {
  add_kernel(registry, "batch_normalization", {batch_normalization});
  add_kernel(registry, "layer_normalization", {layer_normalization});
}

}  // namespace turnout::onednn
