#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/op.hpp"

namespace turnout {

/// A window that slides over the spatial dimensions of [N, C, spatial...]: attributes of pools and
/// convolutions with auto_pad, ceil_mode and defaults resolved. Checked: kernel, stride and
/// dilation are at least 1, pads at least 0, nothing overflows.
///
/// Output position o looks at input positions `o * stride - pad_begin + t * dilation` for the taps
/// t in [0, kernel); those outside [0, in) are padding.
struct Window {
  static constexpr int kMaxRank = Shape::kMaxRank - 2;
  struct Axis {
    std::int64_t in = 1, out = 1;
    std::int64_t kernel = 1, stride = 1, dilation = 1;
    std::int64_t pad_begin = 0, pad_end = 0;

    std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
    std::int64_t start(std::int64_t o) const { return o * stride - pad_begin; }
    /// Taps [first_tap, last_tap) of output o that fall inside [0, limit).
    std::int64_t first_tap(std::int64_t o) const;
    std::int64_t last_tap(std::int64_t o) const { return last_tap(o, in); }
    std::int64_t last_tap(std::int64_t o, std::int64_t limit) const;
  };

  int rank = 0;
  std::array<Axis, kMaxRank> axes{};

  const Axis& axis(int i) const { return axes[static_cast<std::size_t>(i)]; }
  Axis& axis(int i) { return axes[static_cast<std::size_t>(i)]; }
  std::int64_t in_size() const;      ///< product of the input's spatial dimensions
  std::int64_t out_size() const;     ///< product of the output's spatial dimensions
  std::int64_t kernel_size() const;  ///< product of the kernel's dimensions
  /// True if every output looks at the one input of the same position (kernel and stride 1).
  bool pointwise() const;
};

/// Window of a node whose input 0 is [N, C, spatial...]. `kernel` is the kernel's size per spatial
/// dimension; the attributes auto_pad, strides, dilations, pads and ceil_mode are read where the
/// op has them. An auto_pad other than NOTSET wins over pads. Errors name the node.
Window sliding_window(const NodeInfo& info, std::span<const std::int64_t> kernel);

/// The same for the transposed direction: `in` of the window is the op's output, `out` its input.
/// Reads output_shape and output_padding too.
Window transposed_window(const NodeInfo& info, std::span<const std::int64_t> kernel);

/// [N, channels, sizes of the window's output].
Shape windowed_shape(const NodeInfo& info, std::int64_t channels, const Window& window);

/// Schema of the attributes that sliding_window reads, but for kernel_shape and ceil_mode.
std::vector<AttrDef> window_attrs();

}  // namespace turnout
