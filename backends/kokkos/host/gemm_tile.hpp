#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// The innermost product: a tile of rows x columns in registers, fed from packed panels.
//
// A panel of a holds kRows rows, stored k by k: a[k * kRows + row]; one of b holds kCols columns:
// b[k * kCols + column]. One step of k multiplies kRows numbers of a, each spread over a register,
// with the kVecs registers of b's row. Sizes follow the registers of the processor that is compiled
// for; the vector type is the compiler's generic one, so no instruction set is named.
namespace turnout::kokkos {

#if defined(__AVX512F__)
inline constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr std::size_t kVectorBytes = 32;
#else
inline constexpr std::size_t kVectorBytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool kManyRegisters = true;  // 32
#else
inline constexpr bool kManyRegisters = false;  // 16
#endif

/// Sizes of the tile for sums of type A (float or double).
template <typename A>
struct Tile {
  using Vec [[gnu::vector_size(kVectorBytes)]] = A;
  static constexpr int kLanes = static_cast<int>(kVectorBytes / sizeof(A));
  static constexpr int kVecs = kManyRegisters ? 3 : 2;
  static constexpr int kRows = kManyRegisters ? 8 : 6;
  static constexpr int kCols = kVecs * kLanes;
};

template <typename A>
inline typename Tile<A>::Vec load_vec(const A* from) {
  typename Tile<A>::Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <typename A>
inline void store_vec(A* to, const typename Tile<A>::Vec& v) {
  std::memcpy(to, &v, sizeof v);
}

/// sums[row * kCols + column] = sum over k of a and b; columns beyond Vecs registers are left out.
/// Packed: a is a panel (its strides are ignored); else a[row * a_row + k * a_k].
/// Steps: partial sums per element, for tiles with too few rows to hide an addition's latency.
template <typename A, int Rows, int Vecs, bool Packed, int Steps>
inline void multiply_tile(std::int64_t k, const A* __restrict a, std::int64_t a_row,
                          std::int64_t a_k, const A* __restrict b, A* __restrict sums) {
  using T = Tile<A>;
  using Vec = typename T::Vec;
  Vec acc[Steps][Rows][Vecs] = {};
  const auto step = [&](Vec(&into)[Rows][Vecs], std::int64_t at) __attribute__((always_inline)) {
    Vec row[Vecs];
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) row[v] = load_vec<A>(b + at * T::kCols + v * T::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const A factor = Packed ? a[at * T::kRows + r] : a[r * a_row + at * a_k];
#pragma GCC unroll 4
      for (int v = 0; v < Vecs; ++v) into[r][v] += factor * row[v];
    }
  };
  std::int64_t at = 0;
  for (; at + Steps <= k; at += Steps) {
#pragma GCC unroll 8
    for (int s = 0; s < Steps; ++s) step(acc[s], at + s);
  }
  for (; at < k; ++at) step(acc[0], at);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) {
      Vec total = acc[0][r][v];
      for (int s = 1; s < Steps; ++s) total += acc[s][r][v];
      store_vec(sums + r * T::kCols + v * T::kLanes, total);
    }
  }
}

template <typename A, int Rows, bool Packed>
inline void multiply_rows(int vecs, std::int64_t k, const A* a, std::int64_t a_row,
                          std::int64_t a_k, const A* b, A* sums) {
  constexpr int kSteps = Rows == 1 ? 4 : (Rows == 2 ? 2 : 1);
  if constexpr (Tile<A>::kVecs == 3) {
    if (vecs == 3) return multiply_tile<A, Rows, 3, Packed, kSteps>(k, a, a_row, a_k, b, sums);
  }
  if (vecs == 2) return multiply_tile<A, Rows, 2, Packed, kSteps>(k, a, a_row, a_k, b, sums);
  multiply_tile<A, Rows, 1, Packed, kSteps>(k, a, a_row, a_k, b, sums);
}

/// A tile of `rows` <= kRows and `cols` <= kCols (rounded up to whole registers).
template <typename A, bool Packed>
void multiply(int rows, int cols, std::int64_t k, const A* a, std::int64_t a_row, std::int64_t a_k,
              const A* b, A* sums) {
  using Fn = void (*)(int, std::int64_t, const A*, std::int64_t, std::int64_t, const A*, A*);
  static constexpr Fn kByRows[] = {multiply_rows<A, 1, Packed>, multiply_rows<A, 2, Packed>,
                                   multiply_rows<A, 3, Packed>, multiply_rows<A, 4, Packed>,
                                   multiply_rows<A, 5, Packed>, multiply_rows<A, 6, Packed>,
                                   multiply_rows<A, 7, Packed>, multiply_rows<A, 8, Packed>};
  static_assert(Tile<A>::kRows <= 8);
  const int vecs = (cols + Tile<A>::kLanes - 1) / Tile<A>::kLanes;
  kByRows[rows - 1](vecs, k, a, a_row, a_k, b, sums);
}

}  // namespace turnout::kokkos
