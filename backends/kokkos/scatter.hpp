#pragma once

#include <optional>
#include <string_view>

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/indices.hpp"

// scatter_elements and scatter_nd: a copy of the data, some elements of which are replaced by, or
// combined with, updates at places that are data. Places may repeat, so work is divided over
// dimensions along which they can't meet, and updates to one place are made in order.
namespace turnout::kokkos {

enum class Combine { replace, add, mul, max, min };

inline std::optional<Combine> parse_combine(const std::string& name) {
  constexpr std::string_view kNames[] = {"none", "add", "mul", "max", "min"};
  for (int i = 0; i < 5; ++i) {
    if (kNames[i] == name) return static_cast<Combine>(i);
  }
  return std::nullopt;
}

template <typename T>
TURNOUT_HD T combined(Combine combine, T old, T update) {
  const auto nan = [](T x) { return !(x == x); };
  switch (combine) {
    case Combine::replace:
      return update;
    case Combine::add:
      return static_cast<T>(old + update);
    case Combine::mul:
      return static_cast<T>(old * update);
    case Combine::max:
      return nan(old) || old > update ? old : update;
    case Combine::min:
      return nan(old) || old < update ? old : update;
  }
  return update;
}

/// Replacing goes by element size, arithmetic by type.
template <typename F>
void dispatch_combine(Combine combine, DType dtype, F&& f) {
  if (combine == Combine::replace) {
    dispatch_bytes(static_cast<int>(size_of(dtype)), f);
    return;
  }
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::f16:
      return f(std::type_identity<Half>{});
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    case DType::i32:
      return f(std::type_identity<std::int32_t>{});
    default:
      return f(std::type_identity<std::int64_t>{});
  }
}

inline Acceptance accept_scatter(const NodeInfo& info) {
  const std::optional<Combine> combine = parse_combine(info.attrs->text("reduction"));
  if (!combine) return Acceptance::no("reduction " + info.attrs->text("reduction"));
  const DType dtype = info.input(0).dtype;
  const bool arithmetic = is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64;
  if (*combine != Combine::replace && !arithmetic) return refuse_dtype(dtype);
  return accept_indices(info, 1);
}

/// Output 0 becomes input 0.
inline void copy_data(const Launch& launch, const CopyPlan& plan) {
  if (launch.output<std::byte>(0) == launch.input<std::byte>(0)) return;
  run_copy(launch, plan, launch.input<std::byte>(0), launch.output<std::byte>(0));
}

inline CopyPlan plan_data(const NodeInfo& info) {
  const TensorSpec& data = info.input(0);
  return plan_gather_copy(data.shape, data.shape.strides(), 0, data.dtype);
}

struct ScatterElementsPlan {
  Combine combine;
  Loops<2> loops;             ///< over the updates without the axis; operand 0: data, 1: updates
  std::int64_t length, step;  ///< of the axis in the updates
  std::int64_t dim, axis_stride;  ///< of the axis in the data
};
ScatterElementsPlan plan_scatter_elements(const NodeInfo& info);

/// Item: all updates at one place of the other dimensions than the axis.
template <typename T>
struct ScatterElements {
  T* y;
  const T* updates;
  Indices indices;
  ScatterElementsPlan plan;
  TURNOUT_HD void operator()(std::int64_t item) const {
    for_rows(plan.loops, item, [&](const RowPlace<2>& place) {
      for (std::int64_t i = 0; i < place.length; ++i) {
        T* to = y + place.offsets[0] + i * plan.loops.row_stride(0);
        const std::int64_t from = place.offsets[1] + i * plan.loops.row_stride(1);
        for (std::int64_t k = 0; k < plan.length; ++k) {
          T& target = to[indices.get(from + k * plan.step, plan.dim) * plan.axis_stride];
          target = combined(plan.combine, target, updates[from + k * plan.step]);
        }
      }
    });
  }
};

struct ScatterNdPlan {
  Combine combine;
  int depth;                   ///< indices of a tuple
  std::int64_t tuples, inner;  ///< inner: elements of a slice
  std::int64_t dims[Shape::kMaxRank], strides[Shape::kMaxRank];

  /// Where the slice of a tuple begins.
  TURNOUT_HD std::int64_t offset_of(const Indices& indices, std::int64_t tuple) const {
    std::int64_t at = 0;
    for (int i = 0; i < depth; ++i) at += indices.get(tuple * depth + i, dims[i]) * strides[i];
    return at;
  }
};
ScatterNdPlan plan_scatter_nd(const NodeInfo& info);

/// Item: kColumns elements of every slice.
template <typename T>
struct ScatterNd {
  static constexpr std::int64_t kColumns = kDevice ? 1 : 256;
  T* y;
  const T* updates;
  Indices indices;
  ScatterNdPlan plan;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t begin = item * kColumns;
    const std::int64_t end = begin + kColumns < plan.inner ? begin + kColumns : plan.inner;
    for (std::int64_t tuple = 0; tuple < plan.tuples; ++tuple) {
      const std::int64_t at = plan.offset_of(indices, tuple);
      for (std::int64_t i = begin; i < end; ++i) {
        y[at + i] = combined(plan.combine, y[at + i], updates[tuple * plan.inner + i]);
      }
    }
  }
};

}  // namespace turnout::kokkos
