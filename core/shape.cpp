#include "core/shape.hpp"

#include <algorithm>
#include <limits>

namespace turnout {

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) {
    fail(ErrorCode::unsupported, "rank {} is above the limit of {}", dims.size(), kMaxRank);
  }
  // Room for 16-byte elements, so that sizes in bytes can't overflow either.
  constexpr std::int64_t kLimit = std::numeric_limits<std::int64_t>::max() / 16;
  std::int64_t product = 1;
  for (std::int64_t dim : dims) {
    if (dim < 0) fail(ErrorCode::invalid_argument, "negative dimension {}", dim);
    if (dim > 0 && product > kLimit / dim) {
      fail(ErrorCode::invalid_argument, "shape with more than {} elements", kLimit);
    }
    product *= std::max<std::int64_t>(dim, 1);
  }
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::elements(int first, int last) const {
  std::int64_t product = 1;
  for (int axis = first; axis < last; ++axis) product *= (*this)[axis];
  return product;
}

std::array<std::int64_t, Shape::kMaxRank> Shape::strides() const {
  std::array<std::int64_t, kMaxRank> result{};
  std::int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    result[static_cast<std::size_t>(axis)] = stride;
    stride *= (*this)[axis];
  }
  return result;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ","));
}

int normalize_axis(std::int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorCode::invalid_argument, "[{}] axis {} out of range for rank {}", what, axis, rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view what) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank() ? a.dim(-i) : 1;
    const std::int64_t y = i <= b.rank() ? b.dim(-i) : 1;
    if (x != y && x != 1 && y != 1) {
      fail(ErrorCode::invalid_argument, "[{}] shapes {} and {} can't be broadcast", what,
           to_string(a), to_string(b));
    }
    dims[static_cast<std::size_t>(rank - i)] = x == 1 ? y : x;
  }
  return Shape(std::span(dims.data(), static_cast<std::size_t>(rank)));
}

std::string to_string(const TensorSpec& spec) {
  return std::string(to_string(spec.dtype)) + to_string(spec.shape);
}

}  // namespace turnout
