// top_k.

#include <algorithm>

#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

namespace {

template <typename W>
struct Ranked {
  W value;
  std::int64_t index;
};

/// Lines share `lanes` pieces of scratch; item: every lanes-th line.
template <typename W>
struct TopK {
  const void* x;
  void* values;
  std::int64_t* indices;  // null: not asked for
  Ranked<W>* scratch;     // [lanes, length]
  DType dtype;
  std::int64_t length, k, inner, lines, lanes;
  bool largest;
  /// NaN is the largest; of equal ones the first comes first.
  TURNOUT_HD bool before(const Ranked<W>& a, const Ranked<W>& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return largest ? a_nan : b_nan;
    if (a_nan || a.value == b.value) return a.index < b.index;
    return largest ? a.value > b.value : a.value < b.value;
  }
  TURNOUT_HD void operator()(std::int64_t lane) const {
    for (std::int64_t line = lane; line < lines; line += lanes)
      select(line, scratch + lane * length);
  }
  TURNOUT_HD void select(std::int64_t line, Ranked<W>* ranked) const {
    const std::int64_t from = line / inner * inner * length + line % inner;
    for (std::int64_t i = 0; i < length; ++i) {
      W buffer = W(0);
      ranked[i] = {*load_block(x, dtype, from + i * inner, 1, 1, &buffer), i};
    }
    std::partial_sort(ranked, ranked + k, ranked + length,
                      [this](const Ranked<W>& a, const Ranked<W>& b) { return before(a, b); });
    const std::int64_t to = line / inner * inner * k + line % inner;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t at = to + i * inner;
      W value = ranked[i].value;
      W* place = result_block(values, dtype, at, &value);
      *place = ranked[i].value;
      store_block(values, dtype, at, 1, place);
      if (indices != nullptr) indices[at] = ranked[i].index;
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_top_k(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), "top_k");
  const std::int64_t length = shape[axis], k = info.output(0).shape[axis];
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const std::int64_t lines = k == 0 ? 0 : shape.elements(0, axis) * inner;
  const std::int64_t lanes = std::min<std::int64_t>(lines, 4 * context.threads);
  const bool largest = info.attrs->integer("largest") != 0;
  const DType dtype = info.input(0).dtype;
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      auto* scratch = static_cast<Ranked<W>*>(launch.workspace());
      const double lane_ns = 5.0 * static_cast<double>(length * lines) / static_cast<double>(lanes);
      parallel_for(launch, lanes, lane_ns,
                   TopK<W>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                           launch.output<std::int64_t>(1), scratch, dtype, length, k, inner, lines,
                           lanes, largest});
    };
    return make_kernel(context, run, "top_k",
                       static_cast<std::size_t>(lanes * length) * sizeof(Ranked<W>));
  });
}

}  // namespace

void register_top_k_kernels(KernelRegistry& registry) {
  add_kernel(registry, "top_k", accept_any, prepare_top_k);
}

}  // namespace turnout::kokkos
