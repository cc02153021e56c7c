#include <algorithm>
#include <cmath>

#include "ops/families.hpp"
#include "ops/rules.hpp"

namespace turnout {
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(std::span<const double> values) {
  Moments m;
  const auto count = static_cast<double>(values.size());
  for (double v : values) m.mean += v / count;
  for (double v : values) m.variance += (v - m.mean) * (v - m.mean) / count;
  return m;
}

Cost norm_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  cost.flops = 8 * static_cast<double>(info.input(0).elements());
  return cost;
}

Cost batch_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  cost.flops = 2 * static_cast<double>(info.input(0).elements());
  return cost;
}

std::int64_t channels_of(const NodeInfo& info, int least_rank) {
  const Shape& x = info.input(0).shape;
  if (x.rank() < least_rank) {
    info.fail(fmt::format("input {} has rank below {}", to_string(info.input(0)), least_rank));
  }
  return x.rank() > 1 ? x[1] : 1;
}

// Elements of a channel in one sample.
std::size_t plane_of(const Shape& x) {
  return static_cast<std::size_t>(x.elements(std::min(2, x.rank()), x.rank()));
}

// scale and bias (inputs 1 and 2) hold one value a channel.
std::vector<TensorSpec> infer_per_channel(const NodeInfo& info, int least_rank, int last_input) {
  require_floating(info, 0);
  const std::int64_t channels = channels_of(info, least_rank);
  for (int i = 1; i <= last_input; ++i) {
    if (!is_floating(info.input(i).dtype)) {
      info.fail(fmt::format("input {} is {}", i, to_string(info.input(i))));
    }
    require_shape(info, i, Shape{channels}, "one value a channel");
  }
  return {info.input(0)};
}

std::vector<TensorSpec> infer_batch_norm(const NodeInfo& info) {
  if (info.attrs->integer("training_mode") != 0) info.fail("training_mode 1 isn't supported");
  return infer_per_channel(info, 1, 4);
}

void reference_batch_norm(const NodeInfo& info, std::span<const Tensor* const> inputs,
                          std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const double epsilon = info.attrs->real("epsilon");
  const auto scale = to_double(*inputs[1]), bias = to_double(*inputs[2]);
  const auto mean = to_double(*inputs[3]), variance = to_double(*inputs[4]);
  auto x = to_double(*inputs[0]);
  const std::size_t plane = shape.rank() > 1 ? plane_of(shape) : x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / plane % scale.size();
    x[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + bias[c];
  }
  store_values(outputs[0], x);
}

std::vector<TensorSpec> infer_instance_norm(const NodeInfo& info) {
  return infer_per_channel(info, 3, 2);
}

std::vector<TensorSpec> infer_group_norm(const NodeInfo& info) {
  auto specs = infer_per_channel(info, 2, 2);
  const std::int64_t groups = info.attrs->integer("num_groups");
  const std::int64_t channels = channels_of(info, 2);
  if (groups < 1 || channels % groups != 0) {
    info.fail(fmt::format("num_groups {} doesn't divide {} channels", groups, channels));
  }
  return specs;
}

// Normalizes `run` elements at a time, then scales and shifts each channel.
void normalize_channels(const NodeInfo& info, std::span<const Tensor* const> inputs, Tensor& output,
                        std::size_t run) {
  const double epsilon = info.attrs->real("epsilon");
  const auto scale = to_double(*inputs[1]), bias = to_double(*inputs[2]);
  auto x = to_double(*inputs[0]);
  const std::size_t plane = plane_of(inputs[0]->shape());
  for (std::size_t first = 0; first < x.size(); first += run) {
    const Moments m = moments(std::span(x).subspan(first, run));
    for (std::size_t i = first; i < first + run; ++i) {
      const std::size_t c = i / plane % scale.size();
      x[i] = (x[i] - m.mean) / std::sqrt(m.variance + epsilon) * scale[c] + bias[c];
    }
  }
  store_values(output, x);
}

void reference_instance_norm(const NodeInfo& info, std::span<const Tensor* const> inputs,
                             std::span<Tensor> outputs) {
  normalize_channels(info, inputs, outputs[0], plane_of(inputs[0]->shape()));
}

void reference_group_norm(const NodeInfo& info, std::span<const Tensor* const> inputs,
                          std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const auto groups = static_cast<std::size_t>(info.attrs->integer("num_groups"));
  normalize_channels(info, inputs, outputs[0],
                     static_cast<std::size_t>(shape[1]) / groups * plane_of(shape));
}

// Layer and RMS normalization: all dimensions from `axis` on are normalized together.
int norm_axis(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
}

void require_broadcast_to_tail(const NodeInfo& info, int i) {
  if (!info.has_input(i)) return;
  const Shape& x = info.input(0).shape;
  const Shape& scale = info.input(i).shape;
  bool fits = scale.rank() <= x.rank();
  for (int d = 1; fits && d <= scale.rank(); ++d) {
    fits = scale.dim(-d) == 1 || scale.dim(-d) == x.dim(-d);
  }
  if (!fits) {
    info.fail(fmt::format("input {} of shape {} can't be broadcast to {}", i, to_string(scale),
                          to_string(x)));
  }
}

DType stash_dtype(const NodeInfo& info) {
  switch (info.attrs->integer("stash_type")) {  // numbers of onnx.TensorProto.DataType
    case 1:
      return DType::f32;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      info.fail(
          fmt::format("stash_type {} isn't a floating type", info.attrs->integer("stash_type")));
  }
}

std::vector<TensorSpec> infer_layer_norm(const NodeInfo& info) {
  for (int i = 0; i < info.input_count(); ++i) {
    require_floating(info, i);
    if (i > 0) require_broadcast_to_tail(info, i);
  }
  Shape statistics = info.input(0).shape;
  for (int i = norm_axis(info); i < statistics.rank(); ++i) statistics.set(i, 1);
  const TensorSpec spec{stash_dtype(info), statistics};
  return {info.input(0), spec, spec};
}

std::vector<TensorSpec> infer_rms_norm(const NodeInfo& info) { return {infer_layer_norm(info)[0]}; }

// Elements of `operand` as they are broadcast over `shape`; `fallback` where it isn't given.
std::vector<double> broadcast_values(const Tensor* operand, const Shape& shape, double fallback) {
  std::vector<double> result(static_cast<std::size_t>(shape.elements()), fallback);
  if (operand == nullptr) return result;
  const auto values = to_double(*operand);
  const auto strides = operand->shape().strides();
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t at = 0;
    for (int d = 1; d <= shape.rank(); ++d) {
      if (d <= operand->shape().rank() && operand->shape().dim(-d) != 1) {
        const auto axis = static_cast<std::size_t>(operand->shape().rank() - d);
        at += rest % shape.dim(-d) * strides[axis];
      }
      rest /= shape.dim(-d);
    }
    result[i] = values[static_cast<std::size_t>(at)];
  }
  return result;
}

// Rows of x[axis:] through statistics(row) -> {center, factor}: y = (x - center) factor scale + b.
template <typename Statistics>
void normalize_rows(const NodeInfo& info, std::span<const Tensor* const> inputs, Tensor& output,
                    Statistics statistics) {
  const Shape& shape = inputs[0]->shape();
  const auto length = static_cast<std::size_t>(shape.elements(norm_axis(info), shape.rank()));
  auto x = to_double(*inputs[0]);
  const auto scale = broadcast_values(inputs[1], shape, 1);
  const auto bias = broadcast_values(inputs.size() > 2 ? inputs[2] : nullptr, shape, 0);
  for (std::size_t first = 0; first < x.size(); first += length) {
    const auto [center, factor] = statistics(std::span<const double>(x).subspan(first, length));
    for (std::size_t i = first; i < first + length; ++i) {
      x[i] = (x[i] - center) * factor * scale[i] + bias[i];
    }
  }
  store_values(output, x);
}

void reference_layer_norm(const NodeInfo& info, std::span<const Tensor* const> inputs,
                          std::span<Tensor> outputs) {
  const double epsilon = info.attrs->real("epsilon");
  std::vector<double> means, factors;
  normalize_rows(info, inputs, outputs[0], [&](std::span<const double> row) {
    const Moments m = moments(row);
    means.push_back(m.mean);
    factors.push_back(1 / std::sqrt(m.variance + epsilon));
    return std::pair{means.back(), factors.back()};
  });
  const Shape& x = inputs[0]->shape();
  const auto rows = static_cast<std::size_t>(x.elements(0, norm_axis(info)));
  means.resize(rows, std::nan(""));  // rows without elements
  factors.resize(rows, std::nan(""));
  if (outputs.size() > 1) store_values(outputs[1], means);
  if (outputs.size() > 2) store_values(outputs[2], factors);
}

void reference_rms_norm(const NodeInfo& info, std::span<const Tensor* const> inputs,
                        std::span<Tensor> outputs) {
  const double epsilon = info.attrs->real("epsilon");
  normalize_rows(info, inputs, outputs[0], [&](std::span<const double> row) {
    double square = 0;
    for (double v : row) square += v * v / static_cast<double>(row.size());
    return std::pair{0.0, 1 / std::sqrt(square + epsilon)};
  });
}

double row_terms(const NodeInfo& info) {
  const Shape& x = info.input(0).shape;
  const auto axis = static_cast<int>(info.attrs->integer("axis"));
  return static_cast<double>(x.elements(axis < 0 ? axis + x.rank() : axis, x.rank()));
}

double plane_terms(const NodeInfo& info) {
  return static_cast<double>(plane_of(info.input(0).shape));
}

double group_terms(const NodeInfo& info) {
  return plane_terms(info) * static_cast<double>(info.input(0).shape[1]) /
         static_cast<double>(info.attrs->integer("num_groups"));
}

std::vector<TensorSpec> infer_lrn(const NodeInfo& info) {
  require_floating(info, 0);
  channels_of(info, 2);
  if (info.attrs->integer("size") < 1) info.fail("size has to be at least 1");
  return {info.input(0)};
}

// y = x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta.
void reference_lrn(const NodeInfo& info, std::span<const Tensor* const> inputs,
                   std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const std::int64_t size = info.attrs->integer("size");
  const double alpha = info.attrs->real("alpha"), beta = info.attrs->real("beta");
  const std::int64_t channels = shape[1];
  const auto plane = static_cast<std::int64_t>(plane_of(shape));
  const auto x = to_double(*inputs[0]);
  std::vector<double> y(x.size());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
    const std::int64_t c = i / plane % channels;
    const std::int64_t first = std::max<std::int64_t>(0, c - (size - 1) / 2);
    const std::int64_t last = c + std::min(channels - 1 - c, size / 2);  // size/2: ceil((size-1)/2)
    double square = 0;
    for (std::int64_t other = first; other <= last; ++other) {
      const double v = x[static_cast<std::size_t>(i + (other - c) * plane)];
      square += v * v;
    }
    const double base = info.attrs->real("bias") + alpha / static_cast<double>(size) * square;
    y[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i)] / std::pow(base, beta);
  }
  store_values(outputs[0], y);
}

std::vector<bool> normalized_axes(const NodeInfo& info) {
  const Shape& x = info.input(0).shape;
  std::vector<bool> chosen(static_cast<std::size_t>(x.rank()), false);
  for (std::int64_t axis : info.attrs->integers("axes")) {
    chosen[static_cast<std::size_t>(require_axis(info, axis, x.rank()))] = true;
  }
  return chosen;
}

std::vector<TensorSpec> infer_mean_variance(const NodeInfo& info) {
  require_floating(info, 0);
  normalized_axes(info);
  return {info.input(0)};
}

// y = (x - mean) / (sqrt(variance) + 1e-9) over the chosen axes, the 1e-9 being ONNX's.
void reference_mean_variance(const NodeInfo& info, std::span<const Tensor* const> inputs,
                             std::span<Tensor> outputs) {
  const Shape& shape = inputs[0]->shape();
  const auto chosen = normalized_axes(info);
  auto x = to_double(*inputs[0]);
  std::vector<std::vector<std::size_t>> groups(x.size());  // by offset along the other axes
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t key = 0, step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (!chosen[static_cast<std::size_t>(d)]) {
        key += rest % shape[d] * step;
        step *= shape[d];
      }
      rest /= shape[d];
    }
    groups[static_cast<std::size_t>(key)].push_back(i);
  }
  for (const auto& group : groups) {
    std::vector<double> values;
    for (std::size_t i : group) values.push_back(x[i]);
    const Moments m = moments(values);
    for (std::size_t i : group) x[i] = (x[i] - m.mean) / (std::sqrt(m.variance) + 1e-9);
  }
  store_values(outputs[0], x);
}

double all_terms(const NodeInfo& info) { return static_cast<double>(info.input(0).elements()); }

// Differences from the mean cancel: errors are relative to the range, not to each element.
Tolerance norm_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {1e-12, 1e-13, true, "differences from a double mean cancel"};
    case DType::f16:
      return {2e-3, 1e-4, true, "one rounding of 2^-11 of a float result"};
    case DType::bf16:
      return {1.6e-2, 1e-3, true, "one rounding of 2^-8 of a float result"};
    default:
      return {1e-5, 1e-6, true, "differences from a float mean cancel"};
  }
}

OpDef norm(std::string name, std::string doc, OpDef::Infer infer, OpDef::Reference reference,
           OpDef::TermsRule terms) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.infer = infer;
  def.cost = norm_cost;
  def.reference = reference;
  def.tolerance = norm_tolerance;
  def.terms = terms;
  return def;
}

const AttrDef& epsilon_attr() {
  static const AttrDef def = attr("epsilon", 1e-5, "Added to the variance.");
  return def;
}

void register_channel_norms(OpRegistry& ops) {
  OpDef batch = norm("batch_normalization",
                     "(x - mean) / sqrt(variance + epsilon) * scale + bias per channel, with given "
                     "mean and variance. Inputs: x, scale, bias, mean, variance.",
                     infer_batch_norm, reference_batch_norm, nullptr);
  batch.min_inputs = batch.max_inputs = 5;
  batch.cost = batch_cost;
  batch.attrs = {epsilon_attr(), attr("momentum", 0.9, "Of training; not used."),
                 attr("training_mode", std::int64_t{0}, "Only 0.")};
  ops.add(std::move(batch));

  OpDef instance = norm("instance_normalization",
                        "Each channel of each sample to mean 0 and variance 1, then * scale + "
                        "bias. Inputs: x, scale, bias.",
                        infer_instance_norm, reference_instance_norm, plane_terms);
  instance.min_inputs = instance.max_inputs = 3;
  instance.attrs = {epsilon_attr()};
  ops.add(std::move(instance));

  OpDef group = norm("group_normalization",
                     "Each group of channels of each sample to mean 0 and variance 1, then * scale "
                     "+ bias per channel. Inputs: x, scale, bias.",
                     infer_group_norm, reference_group_norm, group_terms);
  group.min_inputs = group.max_inputs = 3;
  group.attrs = {epsilon_attr(),
                 required_attr("num_groups", AttrType::integer, "Groups of channels."),
                 attr("stash_type", std::int64_t{1}, "Type of the statistics; always float.")};
  ops.add(std::move(group));
}

}  // namespace

void register_norm_ops(OpRegistry& ops) {
  register_channel_norms(ops);

  OpDef layer = norm("layer_normalization",
                     "Rows x[axis:] to mean 0 and variance 1, then * scale + bias. Inputs: x, "
                     "scale, bias (optional). Outputs: y, mean, 1 / standard deviation.",
                     infer_layer_norm, reference_layer_norm, row_terms);
  layer.min_inputs = 2;
  layer.max_inputs = 3;
  layer.max_outputs = 3;
  layer.attrs = {attr("axis", std::int64_t{-1}, "First normalized dimension."), epsilon_attr(),
                 attr("stash_type", std::int64_t{1}, "ONNX's number of outputs 1 and 2's type.")};
  OpDef rms = norm("rms_normalization",
                   "Rows x[axis:] divided by sqrt(mean(x^2) + epsilon), then * scale. Inputs: x, "
                   "scale.",
                   infer_rms_norm, reference_rms_norm, row_terms);
  rms.min_inputs = rms.max_inputs = 2;
  rms.attrs = layer.attrs;
  ops.add(std::move(layer));
  ops.add(std::move(rms));

  OpDef lrn = norm("lrn", "x / (bias + alpha / size * sum of squares of neighbour channels)^beta.",
                   infer_lrn, reference_lrn, nullptr);
  lrn.attrs = {attr("alpha", 1e-4, "Factor of the sum."), attr("beta", 0.75, "Exponent."),
               attr("bias", 1.0, "Added to the sum."),
               required_attr("size", AttrType::integer, "Channels summed over.")};
  ops.add(std::move(lrn));

  OpDef mean_variance =
      norm("mean_variance_normalization", "(x - mean) / (standard deviation + 1e-9) over axes.",
           infer_mean_variance, reference_mean_variance, all_terms);
  mean_variance.attrs = {
      attr("axes", std::vector<std::int64_t>{0, 2, 3}, "Dimensions that are normalized together.")};
  ops.add(std::move(mean_variance));
}

}  // namespace turnout
