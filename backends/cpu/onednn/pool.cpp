#include "ops/pool.hpp"

#include <algorithm>

#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::algorithm;

/// Padding behind the input that an output of this size needs: with ceil_mode more than pad_end.
std::int64_t needed_pad(const Window::Axis& axis) {
  const std::int64_t reach = (axis.out - 1) * axis.stride + axis.extent();
  return std::max(axis.pad_end, reach - axis.in - axis.pad_begin);
}

bool overhangs(const Window& window) {
  return std::any_of(window.axes.begin(), window.axes.begin() + window.rank,
                     [](const Window::Axis& axis) { return needed_pad(axis) > axis.pad_end; });
}

/// True if some window sees nothing but padding.
bool has_empty_window(const Window& window) {
  return std::any_of(window.axes.begin(), window.axes.begin() + window.rank,
                     [](const Window::Axis& axis) {
                       for (std::int64_t o = 0; o < axis.out; ++o) {
                         if (axis.first_tap(o) >= axis.last_tap(o)) return true;
                       }
                       return false;
                     });
}

Recipe pooling(const Site& site, algorithm kind, const Window& window) {
  Dims strides, kernel, dilations, pads_begin, pads_end;
  for (int i = 0; i < window.rank; ++i) {
    const Window::Axis& axis = window.axis(i);
    strides.push_back(axis.stride);
    kernel.push_back(axis.kernel);
    dilations.push_back(axis.dilation - 1);
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(needed_pad(axis));
  }
  Recipe recipe;
  recipe.descriptor = dnnl::pooling_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, kind, site.take(0), site.give(), strides,
      kernel, dilations, pads_begin, pads_end, base_attr());
  recipe.input(DNNL_ARG_SRC, site, 0);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

Recipe max_pool(const Site& site) {
  if (site.info.output_count() > 1) refuse("oneDNN gives no indices in ONNX's form");
  const Window window = pool_window(site.info);
  if (has_empty_window(window)) refuse("a window sees nothing but padding");
  return pooling(site, algorithm::pooling_max, window);
}

Recipe average_pool(const Site& site) {
  const Window window = pool_window(site.info);
  if (has_empty_window(window)) refuse("a window sees nothing but padding");
  const bool include_pad = site.info.attrs->integer("count_include_pad") != 0;
  if (include_pad && overhangs(window)) {
    refuse("oneDNN would count what ceil_mode adds behind the padding");
  }
  return pooling(
      site,
      include_pad ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding,
      window);
}

Recipe global_pool(const Site& site, algorithm kind) {
  const Shape& shape = site.input(0).shape;
  if (shape.rank() < 3) refuse("no spatial dimensions");
  Window window;
  window.rank = shape.rank() - 2;
  for (int i = 0; i < window.rank; ++i) {
    window.axis(i).in = window.axis(i).kernel = shape[i + 2];
  }
  return pooling(site, kind, window);
}

Recipe global_average(const Site& site) {
  return global_pool(site, algorithm::pooling_avg_exclude_padding);
}

Recipe global_max(const Site& site) { return global_pool(site, algorithm::pooling_max); }

}  // namespace

// oneDNN's maximum passes over NaN, which ONNX lets win. It is taken all the same: a convolution
// network would otherwise leave its layout around every pool.
void register_pool(KernelRegistry& registry) {
  add_kernel(registry, "max_pool", {max_pool});
  add_kernel(registry, "average_pool", {average_pool});
  add_kernel(registry, "global_average_pool", {global_average});
  add_kernel(registry, "global_max_pool", {global_max});
}

}  // namespace turnout::onednn
