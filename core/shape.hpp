#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/dtype.hpp"

namespace turnout {

/// Dimensions of a tensor, outermost first; at most kMaxRank of them, each >= 0. Rank 0 is a
/// scalar. A plain value without heap memory.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// Throws Error for too many or negative dimensions, or when the number of elements overflows.
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  /// Negative axes count from the end.
  std::int64_t dim(int axis) const { return (*this)[axis < 0 ? axis + rank_ : axis]; }
  void set(int axis, std::int64_t dim) { dims_[static_cast<std::size_t>(axis)] = dim; }
  std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }

  std::int64_t elements() const { return elements(0, rank_); }
  /// Product of the dimensions [first, last).
  std::int64_t elements(int first, int last) const;
  /// Row-major strides, in elements.
  std::array<std::int64_t, kMaxRank> strides() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  ///< "[2,3]"

/// `axis` in [-rank, rank) made non-negative; otherwise an Error that names `what`.
int normalize_axis(std::int64_t axis, int rank, std::string_view what);

/// The shape both broadcast to by NumPy's rule; Error naming `what` if there is none.
Shape broadcast(const Shape& a, const Shape& b, std::string_view what);

/// Element type and shape: what is known of a value before it exists.
struct TensorSpec {
  DType dtype = DType::undefined;
  Shape shape;

  std::int64_t elements() const { return shape.elements(); }
  std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(size_of(dtype)); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

std::string to_string(const TensorSpec& spec);  ///< "f32[2,3]"

}  // namespace turnout
