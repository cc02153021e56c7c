#pragma once

#include "backends/kokkos/device/launch.hpp"
#include "backends/kokkos/scatter.hpp"

// Updates that replace, all at once. The last of those to one place has to win: first the highest
// number of an update is noted for every place, in the workspace, then an update is made only where
// its own number is found. data [4], indices {1, 3, 1}: the numbers are {-1, 2, -1, 1}.
namespace turnout::kokkos {

/// Where update `number` goes, as the number of a place.
TURNOUT_HD inline std::int64_t place_of_update(const ScatterNdPlan& plan, const Indices& indices,
                                               std::int64_t number) {
  return plan.offset_of(indices, number) / plan.inner;
}
TURNOUT_HD inline std::int64_t place_of_update(const ScatterElementsPlan& plan,
                                               const Indices& indices, std::int64_t number) {
  const RowPlace<2> other = place_of(plan.loops, number / plan.length);
  const std::int64_t from = other.offsets[1] + number % plan.length * plan.step;
  return other.offsets[0] + indices.get(from, plan.dim) * plan.axis_stride;
}

// Elements of an update, and where they lie in the operand.
TURNOUT_HD inline std::int64_t update_elements(const ScatterNdPlan& plan) { return plan.inner; }
TURNOUT_HD inline std::int64_t update_elements(const ScatterElementsPlan&) { return 1; }
TURNOUT_HD inline std::int64_t update_offset(const ScatterNdPlan& plan, std::int64_t number) {
  return number * plan.inner;
}
TURNOUT_HD inline std::int64_t update_offset(const ScatterElementsPlan& plan, std::int64_t number) {
  return place_of(plan.loops, number / plan.length).offsets[1] + number % plan.length * plan.step;
}
inline std::int64_t update_count(const ScatterNdPlan& plan) { return plan.tuples; }
inline std::int64_t update_count(const ScatterElementsPlan& plan) {
  return plan.loops.rows * plan.loops.length() * plan.length;
}

struct ForgetUpdates {
  std::int64_t* last;
  TURNOUT_HD void operator()(std::int64_t place) const { last[place] = -1; }
};

template <typename Plan>
struct NoteUpdates {
  std::int64_t* last;
  Indices indices;
  Plan plan;
  TURNOUT_HD void operator()(std::int64_t number) const {
    Kokkos::atomic_max(&last[place_of_update(plan, indices, number)], number);
  }
};

/// Item: one element of one update.
template <typename T, typename Plan>
struct ReplaceElement {
  T* y;
  const T* updates;
  const std::int64_t* last;
  Indices indices;
  Plan plan;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t size = update_elements(plan);
    const std::int64_t number = item / size, i = item % size;
    const std::int64_t place = place_of_update(plan, indices, number);
    if (last[place] == number) y[place * size + i] = updates[update_offset(plan, number) + i];
  }
};

/// `elements`: of the data.
template <typename Plan>
std::size_t replace_workspace_bytes(const Plan& plan, std::int64_t elements) {
  const std::int64_t size = update_elements(plan);
  return size == 0 ? 0 : static_cast<std::size_t>(elements / size) * sizeof(std::int64_t);
}

template <typename T, typename Plan>
void replace_by_last(const Launch& launch, const Indices& indices, const Plan& plan,
                     std::int64_t elements) {
  auto* last = static_cast<std::int64_t*>(launch.workspace());
  const std::int64_t size = update_elements(plan), updates = update_count(plan);
  parallel_for(launch, elements / size, 0, ForgetUpdates{last});
  parallel_for(launch, updates, 0, NoteUpdates<Plan>{last, indices, plan});
  parallel_for(
      launch, updates * size, 0,
      ReplaceElement<T, Plan>{launch.output<T>(0), launch.input<T>(2), last, indices, plan});
}

}  // namespace turnout::kokkos
