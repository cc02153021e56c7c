#include "ops/rules.hpp"

namespace turnout {

void require_floating(const NodeInfo& info, int i) {
  if (!info.has_input(i)) return;
  const DType dtype = info.input(i).dtype;
  if (!is_floating(dtype)) {
    info.fail(fmt::format("input {} is {}, expected a floating type", i, to_string(dtype)));
  }
  if (dtype != info.input(0).dtype) {
    info.fail(fmt::format("input {} is {}, but input 0 is {}", i, to_string(dtype),
                          to_string(info.input(0).dtype)));
  }
}

void require_shape(const NodeInfo& info, int i, const Shape& expected, std::string_view meaning) {
  if (!info.has_input(i) || info.input(i).shape == expected) return;
  info.fail(fmt::format("input {} has shape {}, expected {} ({})", i,
                        to_string(info.input(i).shape), to_string(expected), meaning));
}

int require_axis(const NodeInfo& info, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    info.fail(fmt::format("axis {} out of range for {}", axis, to_string(info.input(0))));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Cost touch_cost(const NodeInfo& info) {
  Cost cost;
  for (int i = 0; i < info.input_count(); ++i) {
    if (info.has_input(i)) cost.bytes_read += static_cast<double>(info.input(i).bytes());
  }
  for (const TensorSpec* output : info.outputs) {
    cost.bytes_written += static_cast<double>(output->bytes());
  }
  return cost;
}

std::vector<double> wide_values(const Tensor* tensor) {
  return tensor == nullptr ? std::vector<double>() : to_double(*tensor);
}

void store_values(Tensor& tensor, std::span<const double> values) {
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    const std::span<T> out = tensor.values<T>();
    for (std::size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        out[i] = static_cast<T>(values[i]);
      } else {
        out[i] = T(static_cast<float>(values[i]));
      }
    }
  });
}

FusedActivation fused_activation(const NodeInfo& info) {
  const std::string& name = info.attrs->text("activation");
  const std::optional<Activation> kind = parse_activation(name);
  if (!kind) info.fail(fmt::format("unknown activation '{}'", name));
  return {*kind, info.attrs->real("activation_alpha"), info.attrs->real("activation_beta")};
}

std::vector<AttrDef> activation_attrs() {
  return {
      attr("activation", std::string("none"), "Function applied last: relu, gelu, clip, ..."),
      attr("activation_alpha", 0.0, "First parameter of the activation."),
      attr("activation_beta", 0.0, "Second parameter of the activation."),
  };
}

}  // namespace turnout
