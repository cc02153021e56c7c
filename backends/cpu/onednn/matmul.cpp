#include "ops/matmul.hpp"
#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {
namespace {

using dnnl::memory;

/// Operand of a product: its batch dimensions are 1 where it is broadcast.
Desc matrix_desc(const MatmulDims& d, const MatmulDims::Strides& batch_strides, std::int64_t rows,
                 std::int64_t cols, bool transposed, DType dtype) {
  Dims dims;
  Dims strides;
  for (int i = 0; i < d.batch.rank(); ++i) {
    const std::int64_t stride = batch_strides[static_cast<std::size_t>(i)];
    dims.push_back(stride == 0 ? 1 : d.batch[i]);
    strides.push_back(stride == 0 ? rows * cols : stride);
  }
  dims.insert(dims.end(), {rows, cols});
  strides.push_back(transposed ? 1 : cols);
  strides.push_back(transposed ? rows : 1);
  return {dims, require_type(dtype), strides};
}

Desc result_desc(const MatmulDims& d, DType dtype) {
  Dims dims(d.batch.begin(), d.batch.end());
  dims.insert(dims.end(), {d.m, d.n});
  return plain_desc(dims, dtype);
}

/// Bias, with 1 in every dimension in which it is broadcast.
Desc bias_desc(const MatmulDims& d, DType dtype) {
  Dims dims;
  for (int i = 0; i < d.batch.rank(); ++i) {
    dims.push_back(d.bias_strides[static_cast<std::size_t>(i)] == 0 ? 1 : d.batch[i]);
  }
  dims.push_back(d.bias_row_stride == 0 ? 1 : d.m);
  dims.push_back(d.bias_col_stride == 0 ? 1 : d.n);
  return plain_desc(dims, dtype);
}

bool bias_is_row(const MatmulDims& d) {
  for (int i = 0; i < d.batch.rank(); ++i) {
    if (d.bias_strides[static_cast<std::size_t>(i)] != 0) return false;
  }
  return d.bias_row_stride == 0 && (d.bias_col_stride == 1 || d.n == 1);
}

/// What follows the product, in this order: alpha, bias, residual, activation.
class Epilogue {
 public:
  /// `alpha`: a factor that isn't in the packed weights. A bias that oneDNN can take directly is
  /// left to the caller.
  Epilogue(const Site& site, const MatmulDims& d, double alpha) : site_(site) {
    direct_bias_ = site.info.has_input(2) && alpha == 1 && bias_is_row(d);
    if (alpha != 1) {
      ops_.append_eltwise(dnnl::algorithm::eltwise_linear, static_cast<float>(alpha), 0);
    }
    if (site.info.has_input(2) && !direct_bias_) {
      add_binary(2, bias_desc(d, site.input(2).dtype));
    }
    if (site.info.has_input(3)) add_binary(3, result_desc(d, site.input(3).dtype));
    append_activation(ops_, fused_activation(site.info));
  }

  bool direct_bias() const { return direct_bias_; }

  dnnl::primitive_attr attr() const {
    dnnl::primitive_attr attr = base_attr();
    attr.set_post_ops(ops_);
    return attr;
  }

  void bind(Recipe& recipe) const {
    for (const Binary& binary : binaries_) {
      recipe.view_input(DNNL_ARG_ATTR_MULTIPLE_POST_OP(binary.position) | DNNL_ARG_SRC_1,
                        binary.input, binary.desc);
    }
  }

 private:
  struct Binary {
    int position;
    int input;
    Desc desc;
  };

  void add_binary(int input, const Desc& desc) {
    binaries_.push_back({ops_.len(), input, desc});
    ops_.append_binary(dnnl::algorithm::binary_add, desc);
  }

  const Site& site_;
  dnnl::post_ops ops_;
  std::vector<Binary> binaries_;
  bool direct_bias_ = false;
};

/// alpha goes into weights that are packed anyway.
bool alpha_into_weights(const Site& site) {
  return site.info.constant(1) != nullptr && site.input(1).dtype == DType::f32;
}

/// One plain product with constant weights: oneDNN's inner product is the faster form of it for
/// few rows (784x512 by 8 rows on one core: 27 us, as a matmul 29 us).
Recipe inner_product(const Site& site) {
  const MatmulDims d = matmul_dims(site.info);
  const double alpha = site.info.attrs->real("alpha");
  if (site.info.constant(1) == nullptr || d.batch.rank() > 0 || d.trans_a) {
    refuse("not a product with constant weights");
  }
  if (alpha != 1 && !alpha_into_weights(site)) refuse("alpha needs f32 weights");
  const DType dtype = site.input(0).dtype;
  const Epilogue epilogue(site, d, 1);
  if (site.info.has_input(2) && !epilogue.direct_bias()) refuse("bias isn't one row");
  const Desc x = plain_desc({d.m, d.k}, dtype);
  const Desc any({d.n, d.k}, require_type(dtype), memory::format_tag::any);
  const Desc y = plain_desc({d.m, d.n}, dtype);
  const Desc bias = plain_desc({d.n}, dtype);
  using Primitive = dnnl::inner_product_forward::primitive_desc;
  const auto kind = dnnl::prop_kind::forward_inference;
  Recipe recipe;
  recipe.descriptor = epilogue.direct_bias()
                          ? Primitive(engine(), kind, x, any, bias, y, epilogue.attr())
                          : Primitive(engine(), kind, x, any, y, epilogue.attr());
  recipe.view_input(DNNL_ARG_SRC, 0, x);
  const Dims strides = d.trans_b ? Dims{d.k, 1} : Dims{1, d.n};
  recipe.pack(DNNL_ARG_WEIGHTS, site, 1, Desc({d.n, d.k}, require_type(dtype), strides),
              static_cast<float>(alpha));
  if (epilogue.direct_bias()) recipe.view_input(DNNL_ARG_BIAS, 2, bias);
  epilogue.bind(recipe);
  recipe.view_output(DNNL_ARG_DST, y);
  return recipe;
}

Recipe product(const Site& site, bool pack_weights) {
  const MatmulDims d = matmul_dims(site.info);
  if (d.k == 0) refuse("a sum of no terms");
  const DType dtype = site.input(0).dtype;
  const double alpha = site.info.attrs->real("alpha");
  const bool folded = pack_weights && alpha_into_weights(site);
  const Epilogue epilogue(site, d, folded ? 1 : alpha);
  const Desc a = matrix_desc(d, d.a_strides, d.m, d.k, d.trans_a, dtype);
  const Desc b = matrix_desc(d, d.b_strides, d.k, d.n, d.trans_b, dtype);
  const Desc y = result_desc(d, dtype);
  const Desc weights =
      pack_weights ? Desc(b.get_dims(), require_type(dtype), memory::format_tag::any) : b;
  Dims bias_dims(static_cast<std::size_t>(d.batch.rank()) + 1, 1);
  bias_dims.push_back(d.n);
  const Desc bias = plain_desc(bias_dims, dtype);
  using Primitive = dnnl::matmul::primitive_desc;
  Recipe recipe;
  recipe.descriptor = epilogue.direct_bias()
                          ? Primitive(engine(), a, weights, bias, y, epilogue.attr())
                          : Primitive(engine(), a, weights, y, epilogue.attr());
  recipe.view_input(DNNL_ARG_SRC, 0, a);
  if (pack_weights) {
    recipe.pack(DNNL_ARG_WEIGHTS, site, 1, b, folded ? static_cast<float>(alpha) : 1);
  } else {
    recipe.view_input(DNNL_ARG_WEIGHTS, 1, b);
  }
  if (epilogue.direct_bias()) recipe.view_input(DNNL_ARG_BIAS, 2, bias);
  epilogue.bind(recipe);
  recipe.view_output(DNNL_ARG_DST, y);
  return recipe;
}

Recipe packed_product(const Site& site) {
  if (site.info.constant(1) == nullptr) refuse("weights aren't constant");
  return product(site, true);
}

Recipe plain_product(const Site& site) { return product(site, false); }

}  // namespace

void register_matmul(KernelRegistry& registry) {
  add_kernel(registry, "matmul", {inner_product, packed_product, plain_product});
}

}  // namespace turnout::onednn
