// softmax, log_softmax and hardmax along one axis of [outer, length, inner]; a line is what lies
// along it.
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

struct Extents {
  std::int64_t outer, length, inner;
  TURNOUT_HD std::int64_t start(std::int64_t line) const {
    return line / inner * length * inner + line % inner;
  }
  std::int64_t lines() const { return outer * inner; }
};

Extents extents_of(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  if (shape.rank() == 0) return {1, 1, 1};
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), info.op->name);
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

template <typename W>
struct SoftmaxLine {
  const void* x;
  void* y;
  DType dtype;
  Extents at;
  bool log;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t start = at.start(line);
    const auto element = [&](std::int64_t i) {
      return load_element<W>(x, dtype, start + i * at.inner);
    };
    W top = LargerOp::identity<W>();
    for (std::int64_t i = group.rank(); i < at.length; i += group.size()) {
      top = LargerOp::combine(top, element(i));
    }
    top = group.reduce(LargerOp{}, top);
    double sum = 0;
    for (std::int64_t i = group.rank(); i < at.length; i += group.size()) {
      sum += static_cast<double>(std::exp(element(i) - top));
    }
    sum = group.reduce(AddOp{}, sum);
    const W end = static_cast<W>(log ? std::log(sum) : 1 / sum);
    for (std::int64_t i = group.rank(); i < at.length; i += group.size()) {
      const W value = element(i) - top;
      store_element<W>(y, dtype, start + i * at.inner, log ? value - end : std::exp(value) * end);
    }
  }
};

/// The first of the largest elements. NaN is largest.
template <typename W>
struct Best {
  W value;
  std::int64_t index;  // -1: none
};
struct BestOp {
  template <typename T>
  TURNOUT_HD static T identity() {
    return {0, -1};
  }
  template <typename T>
  TURNOUT_HD static T combine(const T& a, const T& b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
  }
};

/// 1 at the first of the largest elements, else 0.
template <typename W>
struct HardmaxLine {
  const void* x;
  void* y;
  DType dtype;
  Extents at;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t start = at.start(line);
    auto best = BestOp::identity<Best<W>>();
    for (std::int64_t i = group.rank(); i < at.length; i += group.size()) {
      best = BestOp::combine(best, Best<W>{load_element<W>(x, dtype, start + i * at.inner), i});
    }
    best = group.reduce(BestOp{}, best);
    for (std::int64_t i = group.rank(); i < at.length; i += group.size()) {
      store_element<W>(y, dtype, start + i * at.inner, W(i == best.index));
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_softmax(const PrepareContext& context, bool log) {
  const Extents at = extents_of(context.info);
  const DType dtype = context.info.input(0).dtype;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(
          launch, at.lines(), at.length, at.inner,
          SoftmaxLine<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype, at, log});
    };
    return make_kernel(context, run, "softmax:lines");
  });
}

std::unique_ptr<PreparedKernel> prepare_hardmax(const PrepareContext& context) {
  const Extents at = extents_of(context.info);
  const DType dtype = context.info.input(0).dtype;
  return dispatch_compute(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(
          launch, at.lines(), at.length, at.inner,
          HardmaxLine<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype, at});
    };
    return make_kernel(context, run, "hardmax:lines");
  });
}

}  // namespace

void register_softmax_kernels(KernelRegistry& registry) {
  add_kernel(registry, "softmax", accept_floating,
             [](const PrepareContext& context) { return prepare_softmax(context, false); });
  add_kernel(registry, "log_softmax", accept_floating,
             [](const PrepareContext& context) { return prepare_softmax(context, true); });
  add_kernel(registry, "hardmax", accept_floating, prepare_hardmax);
}

}  // namespace turnout::kokkos
