// Pools: an output is the maximum, the sum or the sum of powers of the inputs under its window.
#include "ops/pool.hpp"

#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/device/window.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {
namespace {

enum class PoolKind { max, average, lp };

/// Work of one pool: start, fold an input in, end. A: type of sums.
template <typename W>
struct PoolMath {
  PoolKind kind = PoolKind::max;
  bool include_pad = false;  ///< average: padding counts
  double power = 2;          ///< lp
  W lowest = W(0);           ///< what the maximum of nothing is

  template <typename T>
  TURNOUT_HD T identity() const {
    return kind == PoolKind::max ? static_cast<T>(lowest) : T(0);
  }
  template <typename A>
  TURNOUT_HD A combine(A a, A b) const {
    if (kind == PoolKind::max) return (b > a) | (b != b) ? b : a;  // NaN wins
    return a + b;
  }
  template <typename A>
  TURNOUT_HD A mapped(W v) const {
    if (kind != PoolKind::lp) return static_cast<A>(v);
    if (power == 1) return static_cast<A>(v < 0 ? -v : v);
    if (power == 2) return static_cast<A>(v) * static_cast<A>(v);
    return static_cast<A>(std::pow(static_cast<double>(v < 0 ? -v : v), power));
  }
  /// `count`: inputs of the mean.
  template <typename A>
  TURNOUT_HD W ended(A a, std::int64_t count) const {
    if (kind == PoolKind::average) return static_cast<W>(a / static_cast<A>(count > 1 ? count : 1));
    if (kind == PoolKind::max || power == 1) return static_cast<W>(a);
    if (power == 2) return static_cast<W>(std::sqrt(static_cast<double>(a)));
    return static_cast<W>(std::pow(static_cast<double>(a), 1 / power));
  }
};

/// Item: one output.
template <typename W>
struct Pool {
  const void* x;
  void* y;
  std::int64_t* indices;  // of maxima; null: not asked for
  DType dtype;
  bool column_major;
  PoolMath<W> math;
  SmallWindow window;

  TURNOUT_HD void operator()(std::int64_t item) const {
    const SmallWindow::Axis *d = &window.axes[0], *h = &window.axes[1], *w = &window.axes[2];
    std::int64_t rest = item;
    const std::int64_t ow = rest % w->out;
    rest /= w->out;
    const std::int64_t oh = rest % h->out;
    rest /= h->out;
    const std::int64_t od = rest % d->out;
    const std::int64_t plane = rest / d->out, size = d->in * h->in * w->in;
    W acc = math.template identity<W>();
    std::int64_t best = -1;
    for (std::int64_t i = d->first_tap(od); i < d->last_tap(od, d->in); ++i) {
      const std::int64_t z = d->position(od, i);
      for (std::int64_t j = h->first_tap(oh); j < h->last_tap(oh, h->in); ++j) {
        const std::int64_t row = h->position(oh, j);
        for (std::int64_t k = w->first_tap(ow); k < w->last_tap(ow, w->in); ++k) {
          const std::int64_t column = w->position(ow, k);
          const std::int64_t at = (z * h->in + row) * w->in + column;
          const W value = math.template mapped<W>(load_element<W>(x, dtype, plane * size + at));
          if (best < 0 || value > acc || (value != value && acc == acc)) {
            best = column_major ? (column * h->in + row) * d->in + z : at;
          }
          acc = math.combine(acc, value);
        }
      }
    }
    const std::int64_t count =
        math.kind == PoolKind::average ? counted(*d, od) * counted(*h, oh) * counted(*w, ow) : 1;
    store_element<W>(y, dtype, item, math.ended(acc, count));
    if (indices != nullptr) indices[item] = best < 0 ? -1 : plane * size + best;
  }
  TURNOUT_HD std::int64_t counted(const SmallWindow::Axis& axis, std::int64_t o) const {
    if (math.include_pad) return axis.last_tap(o, axis.in + axis.pad_end);
    const std::int64_t taps = axis.last_tap(o, axis.in) - axis.first_tap(o);
    return taps < 0 ? 0 : taps;
  }
};

/// Line: one plane to one number.
template <typename W>
struct GlobalPool {
  using A = std::conditional_t<std::is_integral_v<W>, W, double>;
  const void* x;
  void* y;
  DType dtype;
  std::int64_t size;
  PoolMath<W> math;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t plane) const {
    A acc = math.template identity<A>();
    for (std::int64_t i = group.rank(); i < size; i += group.size()) {
      acc = math.combine(acc, math.template mapped<A>(load_element<W>(x, dtype, plane * size + i)));
    }
    acc = group.reduce(math, acc);
    if (group.rank() == 0) store_element<W>(y, dtype, plane, math.ended(acc, size));
  }
};

template <typename W>
std::unique_ptr<PreparedKernel> prepare_window_pool(const PrepareContext& context,
                                                    const PoolMath<W>& math) {
  const NodeInfo& info = context.info;
  const SmallWindow window = small_window(pool_window(info));
  const std::int64_t elements = info.output(0).elements();
  const AttrValue* order = info.attrs->find("storage_order");
  const bool column_major = order != nullptr && std::get<std::int64_t>(*order) != 0;
  const DType dtype = info.input(0).dtype;
  const auto run = [=](const Launch& launch) {
    parallel_for(launch, elements, 0,
                 Pool<W>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                         launch.output<std::int64_t>(1), dtype, column_major, math, window});
  };
  return make_kernel(context, run, "pool");
}

template <typename W>
std::unique_ptr<PreparedKernel> prepare_global_pool(const PrepareContext& context,
                                                    const PoolMath<W>& math) {
  const Shape& shape = context.info.input(0).shape;
  const std::int64_t planes = shape.elements(0, 2);
  const std::int64_t size = shape.elements(2, shape.rank());
  const DType dtype = context.info.input(0).dtype;
  const auto run = [=](const Launch& launch) {
    parallel_lines(
        launch, planes, size, 1,
        GlobalPool<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype, size, math});
  };
  return make_kernel(context, run, "pool:global");
}

template <PoolKind Kind, bool Global>
std::unique_ptr<PreparedKernel> prepare_pool(const PrepareContext& context) {
  const AttrMap& attrs = *context.info.attrs;
  const DType dtype = context.info.input(0).dtype;
  const auto prepare = [&]<typename W>(std::type_identity<W>) {
    PoolMath<W> math;
    math.kind = Kind;
    if constexpr (std::is_integral_v<W>) {
      math.lowest = integer_limits(dtype).low;
    } else {
      math.lowest = -std::numeric_limits<W>::infinity();
    }
    if (attrs.has("count_include_pad")) math.include_pad = attrs.integer("count_include_pad") != 0;
    if (attrs.has("p")) math.power = static_cast<double>(attrs.integer("p"));
    return Global ? prepare_global_pool<W>(context, math) : prepare_window_pool<W>(context, math);
  };
  if (!is_floating(dtype)) return prepare(std::type_identity<std::int64_t>{});
  return dispatch_compute(dtype, prepare);
}

template <PoolKind Kind, bool Global>
Acceptance accept_pool(const NodeInfo& info) {
  if (!Global) {
    if (Acceptance window = accept_window(info); !window.ok) return window;
  }
  const DType dtype = info.input(0).dtype;
  const bool bytes = dtype == DType::i8 || dtype == DType::u8;
  return Kind == PoolKind::max && !Global && bytes ? Acceptance::yes() : accept_floating(info);
}

template <PoolKind Kind, bool Global>
void add_pool(KernelRegistry& registry, const std::string& op) {
  add_kernel(registry, op, accept_pool<Kind, Global>, prepare_pool<Kind, Global>);
}

}  // namespace

void register_pool_kernels(KernelRegistry& registry) {
  add_pool<PoolKind::max, false>(registry, "max_pool");
  add_pool<PoolKind::average, false>(registry, "average_pool");
  add_pool<PoolKind::lp, false>(registry, "lp_pool");
  add_pool<PoolKind::max, true>(registry, "global_max_pool");
  add_pool<PoolKind::average, true>(registry, "global_average_pool");
  add_pool<PoolKind::lp, true>(registry, "global_lp_pool");
}

}  // namespace turnout::kokkos
