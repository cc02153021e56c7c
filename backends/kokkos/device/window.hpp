#pragma once

#include "backends/kokkos/support.hpp"
#include "ops/window.hpp"

namespace turnout::kokkos {

/// A Window of up to three dimensions as functors see it: the last dimension is axes[2], those
/// that aren't there have size 1.
struct SmallWindow {
  static constexpr int kRank = 3;
  struct Axis {
    std::int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

    /// Input position of tap t of output o; it may be outside.
    TURNOUT_HD std::int64_t position(std::int64_t o, std::int64_t t) const {
      return o * stride - pad_begin + t * dilation;
    }
    /// Taps [first_tap, last_tap) of output o that fall inside [0, limit).
    TURNOUT_HD std::int64_t first_tap(std::int64_t o) const {
      const std::int64_t start = position(o, 0);
      return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    }
    TURNOUT_HD std::int64_t last_tap(std::int64_t o, std::int64_t limit) const {
      const std::int64_t start = position(o, 0);
      const std::int64_t end = limit > start ? (limit - start - 1) / dilation + 1 : 0;
      return end < kernel ? end : kernel;
    }
  };
  Axis axes[kRank];

  std::int64_t in_size() const { return axes[0].in * axes[1].in * axes[2].in; }
  std::int64_t out_size() const { return axes[0].out * axes[1].out * axes[2].out; }
  std::int64_t kernel_size() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

/// Of a window that accept_window() takes.
inline SmallWindow small_window(const Window& window) {
  SmallWindow small;
  for (int i = 0; i < window.rank; ++i) {
    const Window::Axis& axis = window.axis(i);
    small.axes[SmallWindow::kRank - window.rank + i] = {
        axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.pad_begin, axis.pad_end};
  }
  return small;
}

/// Refuses inputs [N, C, spatial...] with more than three spatial dimensions.
inline Acceptance accept_window(const NodeInfo& info) {
  if (info.input(0).shape.rank() <= SmallWindow::kRank + 2) return Acceptance::yes();
  return Acceptance::no("windows over more than three dimensions");
}

}  // namespace turnout::kokkos
