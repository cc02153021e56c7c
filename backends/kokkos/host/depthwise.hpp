#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/kokkos/host/finish.hpp"
#include "ops/conv.hpp"

// Convolutions with one input channel a group, directly. A band of a channel's rows is copied
// between zeros for its padding, wide enough that every output column, rounded up to whole
// registers, is computed alike; then each output is the sum of its taps.
namespace turnout::kokkos {

/// Numbers of a depthwise convolution; 1-D windows are planes of one row.
struct DepthwiseDims {
  Window::Axis rows, cols;
  std::int64_t planes = 0;                           ///< output channels of all images
  std::int64_t out_channels = 0;                     ///< of one image
  std::int64_t multiplier = 1;                       ///< output channels per input channel
  std::int64_t band = 1;                             ///< output rows that are done at a time
  std::int64_t padded_height = 0, padded_width = 0;  ///< of a band's copy

  std::int64_t elements() const { return padded_height * padded_width; }
};

/// `lanes`: columns of a register.
inline DepthwiseDims depthwise_dims(const ConvDims& dims, int lanes) {
  constexpr std::int64_t kBandElements = 48 * 1024;
  DepthwiseDims d;
  d.cols = dims.window.axis(dims.window.rank - 1);
  d.rows.out = 1;
  if (dims.window.rank == 2) d.rows = dims.window.axis(0);
  d.planes = dims.batch * dims.out_channels;
  d.out_channels = dims.out_channels;
  d.multiplier = dims.group_out();
  const std::int64_t columns = (d.cols.out + lanes - 1) / lanes * lanes;
  d.padded_width = std::max<std::int64_t>((columns - 1) * d.cols.stride + d.cols.extent(), 1);
  const std::int64_t room = kBandElements / d.padded_width - d.rows.extent();
  d.band =
      std::clamp<std::int64_t>(room / d.rows.stride + 1, 1, std::max(d.rows.out, std::int64_t{1}));
  d.padded_height = (d.band - 1) * d.rows.stride + d.rows.extent();
  return d;
}

/// Item: a contiguous share of the planes.
template <typename A, typename T>
struct Depthwise {
  DepthwiseDims dims;
  std::int64_t slots = 1;
  const T* x = nullptr;
  const T* w = nullptr;
  A* workspace = nullptr;  ///< dims.elements() a slot
  Finish<A, T> finish;

  void operator()(std::int64_t slot) const {
    A* const band = workspace + slot * dims.elements();
    std::fill(band, band + dims.elements(), A(0));
    const std::int64_t last = dims.planes * (slot + 1) / slots;
    for (std::int64_t i = dims.planes * slot / slots; i < last; ++i) {
      for (std::int64_t r = 0; r < dims.rows.out; r += dims.band) run_band(i, r, band);
    }
  }

 private:
  using Vec = typename Tile<A>::Vec;
  static constexpr int kStep = Tile<A>::kLanes;

  void run_band(std::int64_t plane, std::int64_t first_row, A* band) const {
    const std::int64_t channel = plane % dims.out_channels;
    const std::int64_t image = plane / dims.out_channels;
    const std::int64_t in_channels = dims.out_channels / dims.multiplier;
    copy_band(x + (image * in_channels + channel / dims.multiplier) * dims.rows.in * dims.cols.in,
              dims.rows.start(first_row), band);
    const T* taps = w + channel * dims.rows.kernel * dims.cols.kernel;
    Finish<A, T> end = finish;
    end.y += image * dims.out_channels * end.y_row;
    if (end.residual != nullptr) end.residual += image * dims.out_channels * end.y_row;
    const std::int64_t last_row = std::min(first_row + dims.band, dims.rows.out);
    for (std::int64_t r = first_row; r < last_row; ++r) {
      const A* from = band + (r - first_row) * dims.rows.stride * dims.padded_width;
      for (std::int64_t c = 0; c < dims.cols.out;) {
        const auto left = static_cast<int>(std::min<std::int64_t>(dims.cols.out - c, 3 * kStep));
        const int vecs = std::min((left + kStep - 1) / kStep, Tile<A>::kVecs);
        const int count = std::min(left, vecs * kStep);
        alignas(64) A sums[Tile<A>::kCols];
        add_taps(vecs, from + c * dims.cols.stride, taps, sums);
        end(sums, channel, r * dims.cols.out + c, 1, count, true, true);
        c += count;
      }
    }
  }

  /// Rows of the input from `top` on; only what lies inside changes from band to band, and rows
  /// above or below.
  void copy_band(const T* plane, std::int64_t top, A* band) const {
    const std::int64_t begin = std::min(dims.cols.pad_begin, dims.padded_width);
    const std::int64_t count = std::min(dims.cols.in, dims.padded_width - begin);
    for (std::int64_t i = 0; i < dims.padded_height; ++i) {
      A* to = band + i * dims.padded_width + begin;
      if (top + i < 0 || top + i >= dims.rows.in) {
        std::fill(to, to + count, A(0));
        continue;
      }
      const T* from = plane + (top + i) * dims.cols.in;
      for (std::int64_t j = 0; j < count; ++j) to[j] = static_cast<A>(from[j]);
    }
  }

  void add_taps(int vecs, const A* from, const T* taps, A* sums) const {
    if constexpr (Tile<A>::kVecs == 3) {
      if (vecs == 3) return add_taps<3>(from, taps, sums);
    }
    if (vecs == 2) return add_taps<2>(from, taps, sums);
    add_taps<1>(from, taps, sums);
  }

  template <int Vecs>
  void add_taps(const A* from, const T* taps, A* sums) const {
    switch (dims.cols.stride) {
      case 1:
        return add_strided<Vecs, 1>(from, taps, sums);
      case 2:
        return add_strided<Vecs, 2>(from, taps, sums);
      default:
        add_strided<Vecs, 0>(from, taps, sums);
    }
  }

  /// Stride 0: any.
  template <int Vecs, int Stride>
  void add_strided(const A* from, const T* taps, A* sums) const {
    const std::int64_t row_step = dims.rows.dilation * dims.padded_width;
    const std::int64_t stride = Stride == 0 ? dims.cols.stride : Stride;
    Vec acc[Vecs] = {};
    for (std::int64_t t = 0; t < dims.rows.kernel; ++t) {
      for (std::int64_t u = 0; u < dims.cols.kernel; ++u) {
        const A factor = static_cast<A>(taps[t * dims.cols.kernel + u]);
        const A* line = from + t * row_step + u * dims.cols.dilation;
#pragma GCC unroll 4
        for (int v = 0; v < Vecs; ++v) {
          acc[v] += factor * load_strided<Stride>(line + v * kStep * stride, stride);
        }
      }
    }
    for (int v = 0; v < Vecs; ++v) store_vec(sums + v * kStep, acc[v]);
  }

  template <int Stride>
  static Vec load_strided(const A* from, std::int64_t stride) {
    if constexpr (Stride == 1) return load_vec(from);
    if constexpr (Stride == 2) {  // every other one of two registers, the second one place earlier
      using Index [[gnu::vector_size(kVectorBytes)]] =
          std::conditional_t<sizeof(A) == 8, std::int64_t, std::int32_t>;
      Index pick{};
      for (int l = 0; l < kStep; ++l) pick[l] = l < kStep / 2 ? 2 * l : 2 * l + 1;
      return __builtin_shuffle(load_vec(from), load_vec(from + kStep - 1), pick);
    }
    Vec result{};
    for (int l = 0; l < kStep; ++l) result[l] = from[l * (Stride == 0 ? stride : Stride)];
    return result;
  }
};

}  // namespace turnout::kokkos
