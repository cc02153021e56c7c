// top_k along one axis: a team finds the best element of its line that comes after the one found
// before, k times. The time of a line is proportional to k times its length.
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

template <typename W>
struct Ranked {
  W value;
  std::int64_t index;  // -1: none
};

/// NaN is the largest; of equal ones the first comes first.
struct RankOp {
  bool largest;
  template <typename T>
  TURNOUT_HD bool before(const T& a, const T& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return largest ? a_nan : b_nan;
    if (a_nan || a.value == b.value) return a.index < b.index;
    return largest ? a.value > b.value : a.value < b.value;
  }
  template <typename T>
  TURNOUT_HD T identity() const {
    return {0, -1};
  }
  template <typename T>
  TURNOUT_HD T combine(const T& a, const T& b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    return before(a, b) ? a : b;
  }
};

template <typename W>
struct TopKLine {
  const void* x;
  void* values;
  std::int64_t* indices;  // null: not asked for
  DType dtype;
  std::int64_t length, k, inner;
  RankOp op;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t from = line / inner * inner * length + line % inner;
    const std::int64_t to = line / inner * inner * k + line % inner;
    auto found = op.template identity<Ranked<W>>();
    for (std::int64_t n = 0; n < k; ++n) {
      auto best = op.template identity<Ranked<W>>();
      for (std::int64_t i = group.rank(); i < length; i += group.size()) {
        const Ranked<W> one{load_element<W>(x, dtype, from + i * inner), i};
        if (found.index < 0 || op.before(found, one)) best = op.combine(best, one);
      }
      found = group.reduce(op, best);
      if (group.rank() != 0) continue;
      store_element<W>(values, dtype, to + n * inner, found.value);
      if (indices != nullptr) indices[to + n * inner] = found.index;
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
  const RankOp op{info.attrs->integer("largest") != 0};
  const DType dtype = info.input(0).dtype;
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(launch, lines, length, inner,
                     TopKLine<W>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                                 launch.output<std::int64_t>(1), dtype, length, k, inner, op});
    };
    return make_kernel(context, run, "top_k:lines");
  });
}

}  // namespace

void register_top_k_kernels(KernelRegistry& registry) {
  add_kernel(registry, "top_k", accept_any, prepare_top_k);
}

}  // namespace turnout::kokkos
