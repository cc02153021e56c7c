// Arithmetic of sliding windows, after the ONNX operators Conv, ConvTranspose and the pools.
//
// Example: 7 inputs, kernel 3, stride 2, dilation 1, pads 1 and 1: the windows start at -1, 1, 3,
// 5, so there are (7 + 1 + 1 - 3) / 2 + 1 = 4 outputs.
#include "ops/window.hpp"

#include <algorithm>

namespace turnout {
namespace {

constexpr std::int64_t kMaxAttr = (std::int64_t{1} << 31) - 1;  // keeps products inside 64 bits

// One value per spatial dimension from an attribute that may be absent.
std::vector<std::int64_t> per_axis(const NodeInfo& info, std::string_view name, std::size_t count,
                                   std::int64_t fallback, std::int64_t least) {
  const AttrValue* value = info.attrs->find(name);
  const auto* given = value ? std::get_if<std::vector<std::int64_t>>(value) : nullptr;
  if (given == nullptr || given->empty()) return std::vector<std::int64_t>(count, fallback);
  if (given->size() != count) {
    info.fail(fmt::format("{} has {} values, expected {} for input {}", name, given->size(), count,
                          to_string(info.input(0))));
  }
  for (std::int64_t v : *given) {
    if (v < least || v > kMaxAttr) {
      info.fail(fmt::format("{} {} is outside {}..{}", name, v, least, kMaxAttr));
    }
  }
  return *given;
}

std::string_view auto_pad(const NodeInfo& info) {
  const AttrValue* value = info.attrs->find("auto_pad");
  const std::string_view mode = value ? std::string_view(std::get<std::string>(*value)) : "NOTSET";
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    info.fail(fmt::format("auto_pad '{}' is not NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode));
  }
  return mode;
}

// The attributes, before pads and outputs are settled.
Window window_attributes(const NodeInfo& info, std::span<const std::int64_t> kernel) {
  const Shape& x = info.input(0).shape;
  if (x.rank() < 3) {
    info.fail(fmt::format("input {} has no spatial dimension", to_string(info.input(0))));
  }
  Window window;
  window.rank = x.rank() - 2;
  const auto rank = static_cast<std::size_t>(window.rank);
  if (kernel.size() != rank) {
    info.fail(fmt::format("kernel of {} dimensions for input {}", kernel.size(),
                          to_string(info.input(0))));
  }
  const auto strides = per_axis(info, "strides", rank, 1, 1);
  const auto dilations = per_axis(info, "dilations", rank, 1, 1);
  const auto pads = per_axis(info, "pads", 2 * rank, 0, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (kernel[i] < 1 || kernel[i] > kMaxAttr) {
      info.fail(fmt::format("kernel size {} is outside 1..{}", kernel[i], kMaxAttr));
    }
    window.axes[i] = {x[static_cast<int>(i) + 2],
                      0,
                      kernel[i],
                      strides[i],
                      dilations[i],
                      pads[i],
                      pads[i + rank]};
  }
  return window;
}

void same_pads(Window::Axis& axis, std::int64_t total, bool upper) {
  total = std::max<std::int64_t>(total, 0);
  axis.pad_begin = upper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

std::int64_t outputs_of(const NodeInfo& info, const Window::Axis& axis, bool ceil_mode) {
  const std::int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.extent();
  if (room < 0) {
    info.fail(fmt::format("kernel of extent {} is larger than the padded input of {}",
                          axis.extent(), axis.in + axis.pad_begin + axis.pad_end));
  }
  if (!ceil_mode) return room / axis.stride + 1;
  const std::int64_t out = room / axis.stride + (room % axis.stride != 0) + 1;
  // A window that would start in the padding at the end is left out.
  return (out - 1) * axis.stride >= axis.in + axis.pad_begin ? out - 1 : out;
}

}  // namespace

std::int64_t Window::Axis::first_tap(std::int64_t o) const {
  const std::int64_t at = start(o);
  return at >= 0 ? 0 : std::min(kernel, (-at + dilation - 1) / dilation);
}

std::int64_t Window::Axis::last_tap(std::int64_t o, std::int64_t limit) const {
  const std::int64_t room = limit - start(o);
  return room <= 0 ? 0 : std::min(kernel, (room - 1) / dilation + 1);
}

std::int64_t Window::in_size() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= axis(i).in;
  return product;
}

std::int64_t Window::out_size() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= axis(i).out;
  return product;
}

std::int64_t Window::kernel_size() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= axis(i).kernel;
  return product;
}

bool Window::pointwise() const {
  return std::all_of(axes.begin(), axes.begin() + rank, [](const Axis& a) {
    return a.kernel == 1 && a.stride == 1 && a.pad_begin == 0 && a.pad_end == 0;
  });
}

Window sliding_window(const NodeInfo& info, std::span<const std::int64_t> kernel) {
  Window window = window_attributes(info, kernel);
  const std::string_view mode = auto_pad(info);
  const AttrValue* ceil = info.attrs->find("ceil_mode");
  const bool ceil_mode = ceil != nullptr && std::get<std::int64_t>(*ceil) != 0;
  for (int i = 0; i < window.rank; ++i) {
    Window::Axis& axis = window.axis(i);
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      axis.out = axis.in / axis.stride + (axis.in % axis.stride != 0);
      same_pads(axis, (axis.out - 1) * axis.stride + axis.extent() - axis.in, mode == "SAME_UPPER");
      if (axis.in == 0) axis.pad_begin = axis.pad_end = 0;
      continue;
    }
    if (mode == "VALID") axis.pad_begin = axis.pad_end = 0;
    axis.out = outputs_of(info, axis, ceil_mode);
  }
  return window;
}

Window transposed_window(const NodeInfo& info, std::span<const std::int64_t> kernel) {
  Window window = window_attributes(info, kernel);
  const std::string_view mode = auto_pad(info);
  const auto rank = static_cast<std::size_t>(window.rank);
  const auto extra = per_axis(info, "output_padding", rank, 0, 0);
  const auto wanted = per_axis(info, "output_shape", rank, -1, 0);
  for (int i = 0; i < window.rank; ++i) {
    Window::Axis& axis = window.axis(i);
    const auto at = static_cast<std::size_t>(i);
    axis.out = axis.in;
    if (axis.out > kMaxAttr) info.fail(fmt::format("input dimension {} is too large", axis.out));
    const std::int64_t full =
        std::max<std::int64_t>(axis.out - 1, 0) * axis.stride + extra[at] + axis.extent();
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (wanted[at] >= 0 || same) {
      axis.in = wanted[at] >= 0 ? wanted[at] : axis.out * axis.stride;
      same_pads(axis, full - axis.in, mode == "SAME_UPPER");
      continue;
    }
    if (mode == "VALID") axis.pad_begin = axis.pad_end = 0;
    axis.in = full - axis.pad_begin - axis.pad_end;
    if (axis.in < 0) {
      info.fail(fmt::format("pads {} and {} leave nothing of an output of {}", axis.pad_begin,
                            axis.pad_end, full));
    }
  }
  return window;
}

Shape windowed_shape(const NodeInfo& info, std::int64_t channels, const Window& window) {
  std::vector<std::int64_t> dims = {info.input(0).shape[0], channels};
  for (int i = 0; i < window.rank; ++i) dims.push_back(window.axis(i).out);
  try {
    return Shape(dims);
  } catch (const Error& error) {
    info.fail(error.what());
  }
}

std::vector<AttrDef> window_attrs() {
  return {
      attr("auto_pad", std::string("NOTSET"),
           "NOTSET uses pads; SAME_UPPER and SAME_LOWER pad so that out = ceil(in / stride), the "
           "odd one at the end or the beginning; VALID pads nothing. Wins over pads."),
      optional_attr("dilations", AttrType::integers, "Distance of taps per spatial dim; 1."),
      optional_attr("pads", AttrType::integers,
                    "Zeros before each spatial dim, then after each; 0."),
      optional_attr("strides", AttrType::integers, "Step of the window per spatial dim; 1."),
  };
}

}  // namespace turnout
