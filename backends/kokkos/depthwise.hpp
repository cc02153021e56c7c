#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/kokkos/finish.hpp"
#include "ops/conv.hpp"

// Convolutions with one input channel a group, directly: one plane of the output at a time.
namespace turnout::kokkos {

/// Item: output channel `i` of all images. 1-D windows are planes of one row.
template <typename A, typename T>
struct DepthwisePlane {
  Window::Axis rows, cols;
  std::int64_t out_channels, multiplier;  ///< output channels, in all and per input channel
  const T* x = nullptr;
  const T* w = nullptr;
  Finish<A, T> finish;

  DepthwisePlane(const ConvDims& dims, const Finish<A, T>& end)
      : cols(dims.window.axis(dims.window.rank - 1)),
        out_channels(dims.out_channels),
        multiplier(dims.group_out()),
        finish(end) {
    rows.out = 1;
    if (dims.window.rank == 2) rows = dims.window.axis(0);
  }

  void operator()(std::int64_t i) const {
    const std::int64_t channel = i % out_channels;
    const std::int64_t in_channels = out_channels / multiplier;
    const T* plane =
        x + (i / out_channels * in_channels + channel / multiplier) * rows.in * cols.in;
    const T* taps = w + channel * rows.kernel * cols.kernel;
    Finish<A, T> end = finish;
    end.y += (i - channel) * end.y_row;  // the finish counts rows from the image's first channel
    if (end.residual != nullptr) end.residual += (i - channel) * end.y_row;
    for (std::int64_t r = 0; r < rows.out; ++r) output_row(plane, taps, channel, r, end);
  }

 private:
  static constexpr int kCols = Tile<A>::kCols;
  static constexpr int kStep = Tile<A>::kLanes;

  void output_row(const T* plane, const T* taps, std::int64_t channel, std::int64_t r,
                  const Finish<A, T>& end) const {
    // Columns [low, high) see no padding to the left or right.
    const std::int64_t low = std::min((cols.pad_begin + cols.stride - 1) / cols.stride, cols.out);
    const std::int64_t room = cols.in + cols.pad_begin - cols.extent();
    const std::int64_t high = room < 0 ? low : std::clamp(room / cols.stride + 1, low, cols.out);
    alignas(64) A sums[kCols];
    for (std::int64_t c = 0; c < cols.out;) {
      const bool inside = c >= low && c < high;
      const std::int64_t edge = c < low ? low : (inside ? high : cols.out);
      const auto count = static_cast<int>(std::min<std::int64_t>(edge - c, kCols));
      for (int j = 0; j < count; ++j) sums[j] = 0;
      for (std::int64_t t = rows.first_tap(r); t < rows.last_tap(r); ++t) {
        const T* line = plane + (rows.start(r) + t * rows.dilation) * cols.in;
        const T* weights = taps + t * cols.kernel;
        if (inside) {
          add_inside(line + cols.start(c), weights, count, sums);
        } else {
          add_edge(line, weights, c, count, sums);
        }
      }
      end(sums, channel, r * cols.out + c, 1, count, true, true);
      c += count;
    }
  }

  void add_inside(const T* line, const T* weights, int count, A* sums) const {
    for (std::int64_t t = 0; t < cols.kernel; ++t) {
      const A factor = static_cast<A>(weights[t]);
      const T* from = line + t * cols.dilation;
      if (cols.stride == 1) {
        for (int j = 0; j < count; ++j) sums[j] += factor * static_cast<A>(from[j]);
      } else {
        for (int j = 0; j < count; ++j) sums[j] += factor * static_cast<A>(from[j * cols.stride]);
      }
    }
  }

  void add_edge(const T* line, const T* weights, std::int64_t c, int count, A* sums) const {
    for (int j = 0; j < count; ++j) {
      for (std::int64_t t = cols.first_tap(c + j); t < cols.last_tap(c + j); ++t) {
        sums[j] += static_cast<A>(weights[t]) *
                   static_cast<A>(line[cols.start(c + j) + t * cols.dilation]);
      }
    }
  }
};

}  // namespace turnout::kokkos
