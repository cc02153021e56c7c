#include "ops/conv.hpp"

#include <algorithm>

#include "ops/families.hpp"
#include "ops/rules.hpp"

namespace turnout {
namespace {

// Groups, channels and kernel sizes of either direction, checked against the attributes.
ConvDims weight_dims(const NodeInfo& info, bool transposed) {
  const Shape& x = info.input(0).shape;
  const Shape& w = info.input(1).shape;
  if (x.rank() < 3 || w.rank() != x.rank()) {
    info.fail(fmt::format("input {} and weights {} need the same rank of at least 3",
                          to_string(info.input(0)), to_string(info.input(1))));
  }
  ConvDims dims;
  dims.batch = x[0];
  dims.in_channels = x[1];
  dims.groups = info.attrs->integer("group");
  const std::int64_t first = w[0];
  if (dims.groups < 1 || x[1] % dims.groups != 0 || first % dims.groups != 0) {
    info.fail(fmt::format("group {} has to divide the channels of {} and of weights {}",
                          dims.groups, to_string(x), to_string(w)));
  }
  const std::int64_t expected = transposed ? x[1] : x[1] / dims.groups;
  if ((transposed ? first : w[1]) != expected) {
    info.fail(fmt::format("weights {} don't fit input {} with group {}", to_string(w), to_string(x),
                          dims.groups));
  }
  if (transposed && w[1] > (std::int64_t{1} << 31)) info.fail("too many output channels");
  dims.out_channels = transposed ? w[1] * dims.groups : first;
  const AttrValue* given = info.attrs->find("kernel_shape");
  if (given != nullptr) {
    const Shape kernel(w.dims().subspan(2));
    const auto& wanted = std::get<std::vector<std::int64_t>>(*given);
    if (!std::equal(wanted.begin(), wanted.end(), kernel.begin(), kernel.end())) {
      info.fail(fmt::format("kernel_shape [{}] differs from weights {}", fmt::join(wanted, ","),
                            to_string(w)));
    }
  }
  return dims;
}

// Calls f(index, offset in the kernel, offset in the input's plane) for the taps of the output
// position that hit the input.
template <typename F>
void for_each_tap(const Window& window, std::int64_t position, F&& f) {
  std::array<std::int64_t, Window::kMaxRank> at{};
  for (int i = window.rank - 1; i >= 0; --i) {
    at[static_cast<std::size_t>(i)] = position % window.axis(i).out;
    position /= window.axis(i).out;
  }
  const auto visit = [&](const auto& self, int i, std::int64_t tap, std::int64_t plane) -> void {
    if (i == window.rank) return f(tap, plane);
    const Window::Axis& axis = window.axis(i);
    const std::int64_t o = at[static_cast<std::size_t>(i)];
    for (std::int64_t t = axis.first_tap(o); t < axis.last_tap(o); ++t) {
      self(self, i + 1, tap * axis.kernel + t, plane * axis.in + axis.start(o) + t * axis.dilation);
    }
  };
  visit(visit, 0, 0, 0);
}

std::vector<TensorSpec> infer_conv(const NodeInfo& info) {
  for (int i = 0; i < info.input_count(); ++i) require_floating(info, i);
  fused_activation(info);
  const ConvDims dims = conv_dims(info);
  const Shape output = windowed_shape(info, dims.out_channels, dims.window);
  require_shape(info, 2, Shape{dims.out_channels}, "one bias a channel");
  require_shape(info, 3, output, "a residual has the output's shape");
  return {{info.input(0).dtype, output}};
}

GemmShape conv_gemm(const ConvDims& dims, std::int64_t out_channels, std::int64_t positions) {
  return {dims.groups, out_channels, dims.batch * positions,
          dims.group_in() * dims.window.kernel_size()};
}

// Sizes of a convolution for the time models: `dims` and its window of the forward direction.
// Padding is the same on both ends and kernels aren't dilated there, so the input's sides are made
// to fit: the output has its size.
gpu_model::OpShape conv_shape(const ConvDims& dims, gpu_model::Pass pass) {
  gpu_model::OpShape shape;
  if (dims.window.rank > 2) return shape;
  struct Side {
    std::int64_t size = 1, filter = 1, pad = 0, stride = 1;
  };
  const auto side = [](const Window::Axis& axis) {
    const std::int64_t covered = (axis.out - 1) * axis.stride + axis.kernel;
    Side result{axis.in, axis.kernel, std::max<std::int64_t>(0, (covered - axis.in + 1) / 2),
                axis.stride};
    if ((result.size + 2 * result.pad - result.filter) / result.stride + 1 != axis.out) {
      result.pad = std::max<std::int64_t>(0, (covered - axis.in) / 2);
      result.size = covered - 2 * result.pad;
    }
    return result;
  };
  const Side w = side(dims.window.axis(dims.window.rank - 1));
  const Side h = dims.window.rank == 2 ? side(dims.window.axis(0)) : Side{};
  const bool empty = dims.batch < 1 || dims.in_channels < 1 || dims.out_channels < 1 ||
                     dims.window.in_size() < 1 || dims.window.out_size() < 1;
  if (empty) return shape;
  const bool transposed = pass == gpu_model::Pass::backward_data;
  shape.is_conv = true;
  shape.pass = pass;
  shape.batch = dims.batch;
  shape.in_channels = transposed ? dims.out_channels : dims.in_channels;
  shape.out_channels = transposed ? dims.in_channels : dims.out_channels;
  shape.groups = dims.groups;
  shape.height = h.size;
  shape.filter_h = h.filter;
  shape.pad_h = h.pad;
  shape.stride_h = h.stride;
  shape.width = w.size;
  shape.filter_w = w.filter;
  shape.pad_w = w.pad;
  shape.stride_w = w.stride;
  return shape;
}

double conv_terms(const NodeInfo& info) {
  const ConvDims dims = conv_dims(info);
  return static_cast<double>(dims.group_in() * dims.window.kernel_size());
}

Cost conv_cost(const NodeInfo& info) {
  const ConvDims dims = conv_dims(info);
  Cost cost = touch_cost(info);
  cost.gemm = conv_gemm(dims, dims.group_out(), dims.window.out_size());
  cost.conv = conv_shape(dims, gpu_model::Pass::forward);
  const double outputs = static_cast<double>(dims.batch) * static_cast<double>(dims.out_channels) *
                         static_cast<double>(dims.window.out_size());
  cost.flops = 2 * outputs * static_cast<double>(cost.gemm.k);
  for (int extra = 2; extra < 4; ++extra) cost.flops += info.has_input(extra) ? outputs : 0;
  if (info.attrs->text("activation") != "none") cost.flops += outputs;
  return cost;
}

void reference_conv(const NodeInfo& info, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  const ConvDims d = conv_dims(info);
  const FusedActivation act = fused_activation(info);
  const auto x = wide_values(inputs[0]);
  const auto w = wide_values(inputs[1]);
  const auto bias = inputs.size() > 2 ? wide_values(inputs[2]) : std::vector<double>();
  const auto residual = inputs.size() > 3 ? wide_values(inputs[3]) : std::vector<double>();
  std::vector<double> y(static_cast<std::size_t>(outputs[0].elements()));
  const std::int64_t plane = d.window.in_size();
  const std::int64_t positions = d.window.out_size();
  const std::int64_t taps = d.window.kernel_size();
  std::size_t o = 0;
  for (std::int64_t n = 0; n < d.batch; ++n) {
    for (std::int64_t m = 0; m < d.out_channels; ++m) {
      const std::int64_t first = m / d.group_out() * d.group_in();  // input channel
      for (std::int64_t p = 0; p < positions; ++p, ++o) {
        double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(m)];
        for_each_tap(d.window, p, [&](std::int64_t tap, std::int64_t at) {
          for (std::int64_t c = 0; c < d.group_in(); ++c) {
            sum += x[static_cast<std::size_t>((n * d.in_channels + first + c) * plane + at)] *
                   w[static_cast<std::size_t>((m * d.group_in() + c) * taps + tap)];
          }
        });
        if (!residual.empty()) sum += residual[o];
        y[o] = act(sum);
      }
    }
  }
  store_values(outputs[0], y);
}

std::vector<TensorSpec> infer_conv_transpose(const NodeInfo& info) {
  for (int i = 0; i < info.input_count(); ++i) require_floating(info, i);
  const ConvDims dims = conv_transpose_dims(info);
  require_shape(info, 2, Shape{dims.out_channels}, "one bias a channel");
  Window window = dims.window;
  for (int i = 0; i < window.rank; ++i) window.axis(i).out = dims.window.axis(i).in;
  return {{info.input(0).dtype, windowed_shape(info, dims.out_channels, window)}};
}

double conv_transpose_terms(const NodeInfo& info) {
  const ConvDims dims = conv_transpose_dims(info);
  return static_cast<double>(dims.group_in() * dims.window.kernel_size());
}

Cost conv_transpose_cost(const NodeInfo& info) {
  const ConvDims dims = conv_transpose_dims(info);
  Cost cost = touch_cost(info);
  const std::int64_t positions = dims.window.out_size();
  cost.gemm = {dims.groups, dims.group_out() * dims.window.kernel_size(), dims.batch * positions,
               dims.group_in()};
  cost.conv = conv_shape(dims, gpu_model::Pass::backward_data);
  cost.flops = 2.0 * static_cast<double>(dims.batch * positions) *
               static_cast<double>(dims.in_channels) * static_cast<double>(dims.group_out()) *
               static_cast<double>(dims.window.kernel_size());
  return cost;
}

void reference_conv_transpose(const NodeInfo& info, std::span<const Tensor* const> inputs,
                              std::span<Tensor> outputs) {
  const ConvDims d = conv_transpose_dims(info);
  const auto x = wide_values(inputs[0]);
  const auto w = wide_values(inputs[1]);
  const auto bias = inputs.size() > 2 ? wide_values(inputs[2]) : std::vector<double>();
  std::vector<double> y(static_cast<std::size_t>(outputs[0].elements()));
  const std::int64_t plane = d.window.in_size();  // of the output
  const std::int64_t positions = d.window.out_size();
  const std::int64_t taps = d.window.kernel_size();
  for (std::size_t o = 0; !bias.empty() && o < y.size(); ++o) {
    y[o] = bias[o / static_cast<std::size_t>(plane) % static_cast<std::size_t>(d.out_channels)];
  }
  for (std::int64_t n = 0; n < d.batch; ++n) {
    for (std::int64_t c = 0; c < d.in_channels; ++c) {
      const std::int64_t first = c / d.group_in() * d.group_out();  // output channel
      for (std::int64_t p = 0; p < positions; ++p) {
        const double value = x[static_cast<std::size_t>((n * d.in_channels + c) * positions + p)];
        for_each_tap(d.window, p, [&](std::int64_t tap, std::int64_t at) {
          for (std::int64_t m = 0; m < d.group_out(); ++m) {
            y[static_cast<std::size_t>((n * d.out_channels + first + m) * plane + at)] +=
                value * w[static_cast<std::size_t>((c * d.group_out() + m) * taps + tap)];
          }
        });
      }
    }
  }
  store_values(outputs[0], y);
}

Tolerance conv_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {1e-14, 1e-14, true, "double sums in any order; grows with the root of their length"};
    case DType::f16:
      return {1e-3, 1e-4, true, "one rounding of 2^-11 of a float sum"};
    case DType::bf16:
      return {8e-3, 1e-3, true, "one rounding of 2^-8 of a float sum"};
    default:
      return {2e-6, 1e-6, true, "float sums in any order; grows with the root of their length"};
  }
}

OpDef conv_like(std::string name, std::string doc) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.min_inputs = 2;
  def.attrs = window_attrs();
  def.attrs.push_back(attr("group", std::int64_t{1}, "Groups that channels are divided into."));
  def.attrs.push_back(optional_attr("kernel_shape", AttrType::integers,
                                    "Kernel size per spatial dim; that of the weights."));
  def.tolerance = conv_tolerance;
  return def;
}

}  // namespace

ConvDims conv_dims(const NodeInfo& info) {
  ConvDims dims = weight_dims(info, false);
  dims.window = sliding_window(info, info.input(1).shape.dims().subspan(2));
  return dims;
}

ConvDims conv_transpose_dims(const NodeInfo& info) {
  ConvDims dims = weight_dims(info, true);
  dims.window = transposed_window(info, info.input(1).shape.dims().subspan(2));
  return dims;
}

void register_conv_ops(OpRegistry& ops) {
  OpDef conv = conv_like("conv",
                         "Convolution of [N,C,spatial...] with weights [M,C/group,kernel...]; "
                         "y = activation(conv + bias + residual). Without its extras ONNX's Conv.");
  conv.max_inputs = 4;
  for (AttrDef& def : activation_attrs()) conv.attrs.push_back(std::move(def));
  conv.infer = infer_conv;
  conv.cost = conv_cost;
  conv.reference = reference_conv;
  conv.terms = conv_terms;
  ops.add(std::move(conv));

  OpDef transpose = conv_like("conv_transpose",
                              "Transposed convolution with weights [C,M/group,kernel...] (ONNX).");
  transpose.max_inputs = 3;
  transpose.attrs.push_back(
      optional_attr("output_padding", AttrType::integers, "Extra size at the end per dim; 0."));
  transpose.attrs.push_back(optional_attr("output_shape", AttrType::integers,
                                          "Spatial sizes of the output; pads follow from them."));
  transpose.infer = infer_conv_transpose;
  transpose.cost = conv_transpose_cost;
  transpose.reference = reference_conv_transpose;
  transpose.terms = conv_transpose_terms;
  ops.add(std::move(transpose));
}

}  // namespace turnout
