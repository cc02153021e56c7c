#include "ops/conv.hpp"
#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::memory;

/// A window in oneDNN's terms: dilation counts the gaps between taps.
struct WindowDims {
  Dims strides, dilations, pads_begin, pads_end;

  explicit WindowDims(const Window& window) {
    for (int i = 0; i < window.rank; ++i) {
      const Window::Axis& axis = window.axis(i);
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
      pads_begin.push_back(axis.pad_begin);
      pads_end.push_back(axis.pad_end);
    }
  }
};

/// Weights [out,in/groups,kernel...], or [groups,out/groups,in/groups,kernel...] if there are any,
/// as they lie in memory: [M,C/groups,kernel...], and [C,M/groups,kernel...] of the transposed op.
Desc weights_desc(const ConvDims& d, DType dtype, bool transposed) {
  const std::int64_t taps = d.window.kernel_size();
  Dims dims = {d.group_out(), d.group_in()};
  Dims strides = {d.group_in() * taps, taps};
  if (transposed) strides = {taps, d.group_out() * taps};
  std::int64_t tap_stride = taps;
  for (int i = 0; i < d.window.rank; ++i) {
    tap_stride /= d.window.axis(i).kernel;
    dims.push_back(d.window.axis(i).kernel);
    strides.push_back(tap_stride);
  }
  if (d.groups > 1) {
    dims.insert(dims.begin(), d.groups);
    strides.insert(strides.begin(), d.group_out() * d.group_in() * taps);
  }
  return {dims, require_type(dtype), strides};
}

/// Weights that are known are packed as oneDNN likes them.
Desc asked_weights(const Site& site, const Desc& stored) {
  if (site.info.constant(1) == nullptr) return stored;
  return {stored.get_dims(), stored.get_data_type(), memory::format_tag::any};
}

void bind_weights(Recipe& recipe, const Site& site, const Desc& stored) {
  if (site.info.constant(1) == nullptr) {
    recipe.view_input(DNNL_ARG_WEIGHTS, 1, stored);
  } else {
    recipe.pack(DNNL_ARG_WEIGHTS, site, 1, stored);
  }
}

Desc asked_input(const Site& site) {
  return site.may_choose_layout ? any_desc(site.input(0)) : plain_desc(site.input(0));
}

constexpr int kResidual = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;

Recipe convolution(const Site& site) {
  const ConvDims d = conv_dims(site.info);
  const WindowDims window(d.window);
  const bool has_residual = site.info.has_input(3);
  dnnl::post_ops ops;
  if (has_residual) {
    ops.append_binary(dnnl::algorithm::binary_add,
                      site.may_choose_layout ? any_desc(site.input(3)) : plain_desc(site.input(3)));
  }
  append_activation(ops, fused_activation(site.info));
  dnnl::primitive_attr attr = base_attr();
  attr.set_post_ops(ops);

  const Desc stored = weights_desc(d, site.input(1).dtype, false);
  const Desc bias = site.info.has_input(2) ? plain_desc(site.input(2)) : Desc();
  Recipe recipe;
  recipe.descriptor = dnnl::convolution_forward::primitive_desc(
      engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      asked_input(site), asked_weights(site, stored), bias, site.give(), window.strides,
      window.dilations, window.pads_begin, window.pads_end, attr);
  recipe.input(DNNL_ARG_SRC, site, 0);
  bind_weights(recipe, site, stored);
  if (site.info.has_input(2)) recipe.view_input(DNNL_ARG_BIAS, 2, bias);
  if (has_residual) recipe.input(kResidual, site, 3);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

// oneDNN 3.2's strided brgemm deconvolution gives wrong sums for some shapes (input channels 256,
// kernel 4, stride 2: off by 1 % of the range). The next implementation of its list is taken
// instead.
void skip_strided_brgemm(dnnl::primitive_desc& descriptor) {
  while (std::string_view(descriptor.impl_info_str()).find("brgconv_strided") !=
         std::string_view::npos) {
    if (!descriptor.next_impl()) {
      throw dnnl::error(dnnl_unimplemented, "oneDNN's strided brgemm deconvolution is not exact");
    }
  }
}

Recipe deconvolution(const Site& site) {
  const ConvDims d = conv_transpose_dims(site.info);
  const WindowDims window(d.window);
  const Desc stored = weights_desc(d, site.input(1).dtype, true);
  const Desc bias = site.info.has_input(2) ? plain_desc(site.input(2)) : Desc();
  dnnl::deconvolution_forward::primitive_desc descriptor(
      engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
      asked_input(site), asked_weights(site, stored), bias, site.give(), window.strides,
      window.dilations, window.pads_begin, window.pads_end, base_attr());
  skip_strided_brgemm(descriptor);
  Recipe recipe;
  recipe.descriptor = descriptor;
  recipe.input(DNNL_ARG_SRC, site, 0);
  bind_weights(recipe, site, stored);
  if (site.info.has_input(2)) recipe.view_input(DNNL_ARG_BIAS, 2, bias);
  recipe.output(DNNL_ARG_DST, site);
  return recipe;
}

}  // namespace

void register_conv(KernelRegistry& registry) {
  add_kernel(registry, "conv", {convolution}, WhenPlain::reorder);
  add_kernel(registry, "conv_transpose", {deconvolution}, WhenPlain::reorder);
}

}  // namespace turnout::onednn
