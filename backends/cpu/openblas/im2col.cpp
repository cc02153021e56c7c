#include "backends/cpu/openblas/im2col.hpp"

#include <algorithm>

namespace turnout::openblas {
namespace {

using Coordinates = std::array<std::int64_t, Window::kMaxRank>;

// Positions of a block that lie on one line along the last dimension.
struct Run {
  std::int64_t first = 0;  // in the block
  std::int64_t begin = 0;  // on the line
  std::int64_t length = 0;
  Coordinates outer{};  // output coordinates of the line
};

/// Calls f(run) for the lines of a block, in order.
template <typename F>
void for_each_run(const Window& window, const Part& block, const F& f) {
  const std::int64_t line = window.axis(window.rank - 1).out;
  for (std::int64_t p = block.begin; p < block.end;) {
    Run run;
    run.first = p - block.begin;
    run.begin = p % line;
    run.length = std::min(line - run.begin, block.end - p);
    std::int64_t rest = p / line;
    for (int i = window.rank - 2; i >= 0; --i) {
      run.outer[static_cast<std::size_t>(i)] = rest % window.axis(i).out;
      rest /= window.axis(i).out;
    }
    f(run);
    p += run.length;
  }
}

// Offset of the input line that tap `tap` of a run's line looks at; -1: padding.
std::int64_t line_offset(const Window& window, const Run& run, const Coordinates& tap) {
  std::int64_t offset = 0;
  for (int i = 0; i < window.rank - 1; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Window::Axis& axis = window.axis(i);
    const std::int64_t x = axis.start(run.outer[at]) + tap[at] * axis.dilation;
    if (x < 0 || x >= axis.in) return -1;
    offset = offset * axis.in + x;
  }
  return offset * window.axis(window.rank - 1).in;
}

// A run seen through one tap: zeros, then values of the input's line, then zeros.
struct Copy {
  std::int64_t zeros = 0, values = 0, trailing_zeros = 0;
  std::int64_t from = 0;  // offset in the input's plane of the first value
};

Copy copy_of(const Window& window, const Run& run, const Coordinates& tap) {
  const std::int64_t offset = line_offset(window, run, tap);
  if (offset < 0) return {run.length, 0, 0, 0};
  const Window::Axis& axis = window.axis(window.rank - 1);
  // Position o of the line looks at o * stride + shift.
  const std::int64_t shift =
      tap[static_cast<std::size_t>(window.rank - 1)] * axis.dilation - axis.pad_begin;
  const auto ceil_div = [&](std::int64_t v) { return v <= 0 ? 0 : (v - 1) / axis.stride + 1; };
  const std::int64_t end = run.begin + run.length;
  const std::int64_t first = std::clamp(ceil_div(-shift), run.begin, end);
  const std::int64_t last = std::clamp(ceil_div(axis.in - shift), first, end);
  return {first - run.begin, last - first, end - last, offset + first * axis.stride + shift};
}

template <typename T>
void copy_run(const T* plane, std::int64_t stride, const Copy& copy, T* to) {
  to = std::fill_n(to, copy.zeros, T(0));
  const T* from = plane + copy.from;
  if (stride == 1) {
    to = std::copy_n(from, copy.values, to);
  } else {
    for (std::int64_t i = 0; i < copy.values; ++i) *to++ = from[i * stride];
  }
  std::fill_n(to, copy.trailing_zeros, T(0));
}

bool next(const Window& window, Coordinates& tap) {
  for (int i = window.rank - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (++tap[at] < window.axis(i).kernel) return true;
    tap[at] = 0;
  }
  return false;
}

}  // namespace

template <typename T>
void im2col(const T* x, std::int64_t channels, const Window& window, const Part& block,
            T* columns) {
  const std::int64_t plane = window.in_size();
  const std::int64_t stride = window.axis(window.rank - 1).stride;
  const std::int64_t channel_step = window.kernel_size() * block.size();
  Coordinates tap{};
  T* row = columns;
  do {
    for_each_run(window, block, [&](const Run& run) {
      const Copy copy = copy_of(window, run, tap);
      for (std::int64_t c = 0; c < channels; ++c) {
        copy_run(x + c * plane, stride, copy, row + c * channel_step + run.first);
      }
    });
    row += block.size();
  } while (next(window, tap));
}

template void im2col(const float*, std::int64_t, const Window&, const Part&, float*);
template void im2col(const double*, std::int64_t, const Window&, const Part&, double*);

}  // namespace turnout::openblas
