#include "backends/cpu/onednn/descs.hpp"

namespace turnout::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

void refuse(std::string reason) { throw Error(ErrorCode::unsupported, reason); }

std::optional<dnnl::memory::data_type> data_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::f32:
      return Type::f32;
    case DType::f16:
      return Type::f16;
    case DType::bf16:
      return Type::bf16;
    case DType::i8:
      return Type::s8;
    case DType::u8:
      return Type::u8;
    case DType::i32:
      return Type::s32;
    default:
      return std::nullopt;
  }
}

dnnl::memory::data_type require_type(DType dtype) {
  const auto type = data_type(dtype);
  if (!type) refuse(fmt::format("oneDNN doesn't compute in {}", to_string(dtype)));
  return *type;
}

Dims to_dims(const Shape& shape) {
  if (shape.rank() == 0) return {1};
  return Dims(shape.begin(), shape.end());
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Desc plain_desc(const Dims& dims, DType dtype) {
  return {dims, require_type(dtype), dense_strides(dims)};
}

Desc plain_desc(const TensorSpec& spec) { return plain_desc(to_dims(spec.shape), spec.dtype); }

Desc plain_desc(const TensorSpec& spec, int rank) {
  Dims dims = spec.shape.rank() == 0 ? Dims() : to_dims(spec.shape);
  dims.insert(dims.begin(), static_cast<std::size_t>(rank) - dims.size(), 1);
  return plain_desc(dims, spec.dtype);
}

Desc any_desc(const TensorSpec& spec) {
  return {to_dims(spec.shape), require_type(spec.dtype), dnnl::memory::format_tag::any};
}

dnnl::primitive_attr base_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

std::optional<Eltwise> eltwise_of(const FusedActivation& activation) {
  using dnnl::algorithm;
  const auto alpha = static_cast<float>(activation.alpha);
  const auto beta = static_cast<float>(activation.beta);
  switch (activation.kind) {
    case Activation::none:
      return std::nullopt;
    case Activation::relu:
      return Eltwise{algorithm::eltwise_relu, 0, 0};
    case Activation::sigmoid:
      return Eltwise{algorithm::eltwise_logistic, 0, 0};
    case Activation::tanh:
      return Eltwise{algorithm::eltwise_tanh, 0, 0};
    case Activation::gelu:
      return Eltwise{algorithm::eltwise_gelu_erf, 0, 0};
    case Activation::gelu_tanh:
      return Eltwise{algorithm::eltwise_gelu_tanh, 0, 0};
    case Activation::silu:
      return Eltwise{algorithm::eltwise_swish, 1, 0};
    case Activation::hard_sigmoid:
      return Eltwise{algorithm::eltwise_hardsigmoid, alpha, beta};
    case Activation::hard_swish:
      return Eltwise{algorithm::eltwise_hardswish, 1.F / 6, 0.5F};
    case Activation::leaky_relu:
      return Eltwise{algorithm::eltwise_relu, alpha, 0};
    case Activation::elu:
      return Eltwise{algorithm::eltwise_elu, alpha, 0};
    case Activation::clip:
      return Eltwise{algorithm::eltwise_clip, alpha, beta};
  }
  return std::nullopt;
}

void append_activation(dnnl::post_ops& ops, const FusedActivation& activation) {
  if (const auto eltwise = eltwise_of(activation)) {
    ops.append_eltwise(eltwise->algorithm, eltwise->alpha, eltwise->beta);
  }
}

}  // namespace turnout::onednn
