// Pools: an output is the maximum, the sum or the sum of powers of the inputs under its window.
#include "ops/pool.hpp"

#include <cmath>
#include <limits>

#include "backends/kokkos/host/row_math.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/rules.hpp"

namespace turnout::kokkos {
namespace {

enum class PoolKind { max, average, lp };

/// Work of one pool: start, fold an input in, end.
template <typename T>
struct PoolMath {
  using A = std::conditional_t<sizeof(T) == 1, T, Wide<T>>;
  PoolKind kind = PoolKind::max;
  bool include_pad = false;  ///< average: padding counts
  double power = 2;          ///< lp

  TURNOUT_HD A start() const {
    if (kind != PoolKind::max) return A(0);
    if constexpr (std::is_integral_v<A>) return std::numeric_limits<A>::lowest();
    return -std::numeric_limits<A>::infinity();
  }
  TURNOUT_HD static A larger(A a, A v) { return (v > a) | (v != v) ? v : a; }  // NaN wins
  TURNOUT_HD A raised(A v) const {
    if (power == 1) return v < 0 ? A(-v) : v;
    if (power == 2) return A(v * v);
    return static_cast<A>(std::pow(std::abs(static_cast<double>(v)), power));
  }
  TURNOUT_HD A folded(A a, A v) const {
    if (kind == PoolKind::max) return larger(a, v);
    return static_cast<A>(a + (kind == PoolKind::average ? v : raised(v)));
  }
  /// `count`: inputs of the mean.
  TURNOUT_HD A ended(A a, std::int64_t count) const {
    if (kind == PoolKind::average) return static_cast<A>(a / static_cast<A>(count > 1 ? count : 1));
    if (kind == PoolKind::max || power == 1) return a;
    if (power == 2) return static_cast<A>(std::sqrt(static_cast<double>(a)));
    return static_cast<A>(std::pow(static_cast<double>(a), 1 / power));
  }
  TURNOUT_HD std::int64_t counted(const Window::Axis& axis, std::int64_t o) const {
    if (include_pad) return axis.last_tap(o, axis.in + axis.pad_end);
    return axis.last_tap(o) - axis.first_tap(o);
  }
};

/// Item: one plane, 1-D or 2-D, a piece of a row of outputs at a time: first the rows under the
/// windows are folded into one line, then the columns of the line.
template <typename T>
struct PoolPlane {
  using A = typename PoolMath<T>::A;
  static constexpr int kPiece = 64;
  static constexpr int kLine = 512;
  PoolMath<T> math;
  Window::Axis rows, cols;
  const T* x = nullptr;
  T* y = nullptr;

  /// True if the line of a piece fits.
  static bool fits(const Window::Axis& cols) {
    if (cols.extent() > kLine || cols.stride > kLine) return false;
    return (std::min<std::int64_t>(kPiece, cols.out) - 1) * cols.stride + cols.extent() <= kLine;
  }

  void operator()(std::int64_t plane) const {
    const T* from = x + plane * rows.in * cols.in;
    T* to = y + plane * rows.out * cols.out;
    for (std::int64_t r = 0; r < rows.out; ++r) {
      for (std::int64_t c = 0; c < cols.out; c += kPiece) {
        piece(from, r, c, std::min<std::int64_t>(kPiece, cols.out - c), to + r * cols.out + c);
      }
    }
  }

 private:
  void piece(const T* plane, std::int64_t r, std::int64_t c, std::int64_t count, T* to) const {
    A line[kLine];
    std::fill(line,
              line + std::min<std::int64_t>((kPiece - 1) * cols.stride + cols.extent(), kLine),
              math.start());
    const std::int64_t start = cols.start(c);
    const std::int64_t begin = std::max<std::int64_t>(start, 0);
    const std::int64_t end = std::min(start + (count - 1) * cols.stride + cols.extent(), cols.in);
    for (std::int64_t t = rows.first_tap(r); t < rows.last_tap(r); ++t) {
      const T* row = plane + (rows.start(r) + t * rows.dilation) * cols.in;
      fold_row(row + begin, end - begin, line + (begin - start));
    }
    A acc[kPiece];
    for (A& a : acc) a = math.start();
    for (std::int64_t t = 0; t < cols.kernel; ++t) fold_tap(line + t * cols.dilation, count, acc);
    if (math.kind == PoolKind::max) {
      for (std::int64_t j = 0; j < count; ++j) to[j] = T(acc[j]);
      return;
    }
    const std::int64_t row_count = math.counted(rows, r);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t first = cols.start(c + j);
      const bool inside = first >= 0 && first + cols.extent() <= cols.in;
      const std::int64_t taps = inside ? cols.kernel : math.counted(cols, c + j);
      to[j] = T(math.ended(acc[j], row_count * taps));
    }
  }

  void fold_row(const T* __restrict row, std::int64_t count, A* __restrict line) const {
    if (math.kind == PoolKind::max) {
      for (std::int64_t j = 0; j < count; ++j) {
        line[j] = math.larger(line[j], static_cast<A>(row[j]));
      }
    } else {
      for (std::int64_t j = 0; j < count; ++j) {
        line[j] = math.folded(line[j], static_cast<A>(row[j]));
      }
    }
  }

  void fold_tap(const A* __restrict line, std::int64_t count, A* __restrict acc) const {
    const bool whole = (kPiece - 1) * cols.stride + cols.extent() <= kLine;
    if (whole && cols.stride == 1) {
      fold_tap<1>(line, kPiece, acc);
    } else if (whole && cols.stride == 2) {
      fold_tap<2>(line, kPiece, acc);
    } else {
      fold_tap<0>(line, count, acc);
    }
  }

  /// Stride 0: any, for `count` outputs. Otherwise for all of a piece.
  template <int Stride>
  void fold_tap(const A* __restrict line, std::int64_t count, A* __restrict acc) const {
    const std::int64_t stride = Stride == 0 ? cols.stride : Stride;
    const std::int64_t end = Stride == 0 ? count : kPiece;
    if (math.kind == PoolKind::max) {
      for (std::int64_t j = 0; j < end; ++j) acc[j] = math.larger(acc[j], line[j * stride]);
    } else {
      for (std::int64_t j = 0; j < end; ++j) acc[j] = static_cast<A>(acc[j] + line[j * stride]);
    }
  }
};

/// Item: one plane of any rank, with the indices of maxima where they are wanted.
template <typename T>
struct PoolAny {
  using A = typename PoolMath<T>::A;
  PoolMath<T> math;
  const Window* window = nullptr;
  bool column_major = false;
  const T* x = nullptr;
  T* y = nullptr;
  std::int64_t* indices = nullptr;

  void operator()(std::int64_t plane) const {
    const std::int64_t in_size = window->in_size();
    const std::int64_t out_size = window->out_size();
    for (std::int64_t o = 0; o < out_size; ++o) {
      std::int64_t best = -1;
      y[plane * out_size + o] = T(output(x + plane * in_size, o, best));
      if (indices != nullptr) {
        indices[plane * out_size + o] = best < 0 ? -1 : plane * in_size + best;
      }
    }
  }

 private:
  struct Taps {
    std::int64_t first, last, at;
  };

  A output(const T* plane, std::int64_t position, std::int64_t& best) const {
    std::array<Taps, Window::kMaxRank> taps{};
    std::array<std::int64_t, Window::kMaxRank> out{};
    std::int64_t count = 1;
    bool any = true;
    for (int i = window->rank - 1; i >= 0; --i) {
      const Window::Axis& axis = window->axis(i);
      const auto at = static_cast<std::size_t>(i);
      out[at] = position % axis.out;
      position /= axis.out;
      taps[at] = {axis.first_tap(out[at]), axis.last_tap(out[at]), axis.first_tap(out[at])};
      any = any && taps[at].first < taps[at].last;
      count *= std::max<std::int64_t>(math.counted(axis, out[at]), 0);
    }
    A acc = math.start();
    for (bool more = any; more; more = advance(taps)) {
      std::int64_t offset = 0, column = 0;
      for (int i = 0; i < window->rank; ++i)
        offset = offset * window->axis(i).in + at(i, out, taps);
      for (int i = window->rank - 1; i >= 0; --i) {
        column = column * window->axis(i).in + at(i, out, taps);
      }
      const A value = static_cast<A>(plane[offset]);
      if (math.kind == PoolKind::max) {
        const bool better = value > acc || (value != value && acc == acc);
        if (better || best < 0) {
          best = column_major ? column : offset;
          acc = value;
        }
      } else {
        acc = math.folded(acc, value);
      }
    }
    return math.ended(acc, count);
  }

  std::int64_t at(int i, const std::array<std::int64_t, Window::kMaxRank>& out,
                  const std::array<Taps, Window::kMaxRank>& taps) const {
    const auto axis = static_cast<std::size_t>(i);
    return window->axis(i).start(out[axis]) + taps[axis].at * window->axis(i).dilation;
  }

  bool advance(std::array<Taps, Window::kMaxRank>& taps) const {
    for (int i = window->rank - 1; i >= 0; --i) {
      Taps& t = taps[static_cast<std::size_t>(i)];
      if (++t.at < t.last) return true;
      t.at = t.first;
    }
    return false;
  }
};

template <typename T>
std::unique_ptr<PreparedKernel> prepare_window_pool(const PrepareContext& context,
                                                    const PoolMath<T>& math) {
  const NodeInfo& info = context.info;
  const Window window = pool_window(info);
  const Shape& shape = info.output(0).shape;
  const std::int64_t planes = shape.elements(0, 2);
  const bool indices = info.output_count() > 1;
  double taps = 1;
  for (int i = 0; i < window.rank; ++i) taps *= static_cast<double>(window.axis(i).kernel);
  const double plane_ns = (0.1 * taps + 1) * static_cast<double>(window.out_size());
  const bool rows_first = window.rank <= 2 && PoolPlane<T>::fits(window.axis(window.rank - 1));
  if (rows_first && !indices) {
    PoolPlane<T> plane{math, {}, window.axis(window.rank - 1)};
    if (window.rank == 2) plane.rows = window.axis(0);
    if (window.rank == 1) plane.rows.out = 1;
    return make_kernel(
        context,
        [plane, planes, plane_ns](const Launch& launch) {
          PoolPlane<T> functor = plane;
          functor.x = launch.input<T>(0);
          functor.y = launch.output<T>(0);
          parallel_for(launch, planes, plane_ns, functor);
        },
        "pool:rows");
  }
  const AttrValue* order = info.attrs->find("storage_order");
  const bool column_major = order != nullptr && std::get<std::int64_t>(*order) != 0;
  return make_kernel(
      context,
      [math, window, column_major, planes, plane_ns](const Launch& launch) {
        parallel_for(launch, planes, 5 * plane_ns,
                     PoolAny<T>{math, &window, column_major, launch.input<T>(0),
                                launch.output<T>(0), launch.output<std::int64_t>(1)});
      },
      "pool:any");
}

/// Item: one plane to one number.
template <typename T>
struct GlobalPool {
  using A = typename PoolMath<T>::A;
  PoolMath<T> math;
  std::int64_t size = 0;
  const T* x = nullptr;
  T* y = nullptr;

  void operator()(std::int64_t plane) const {
    const T* from = x + plane * size;
    if (math.kind == PoolKind::max) {
      y[plane] = T(largest(from));
      return;
    }
    const PoolMath<T>& m = math;
    const double sum =
        math.kind == PoolKind::average
            ? sum_of<A>(size, [&](std::int64_t i) { return static_cast<A>(from[i]); })
            : sum_of<A>(size, [&](std::int64_t i) { return m.raised(static_cast<A>(from[i])); });
    if (math.kind == PoolKind::average) {
      y[plane] = T(static_cast<A>(sum / static_cast<double>(size)));
    } else {
      y[plane] = T(math.ended(static_cast<A>(sum), 1));
    }
  }

 private:
  A largest(const T* from) const {
    A lanes[kLanes];
    for (A& lane : lanes) lane = math.start();
    std::int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int l = 0; l < kLanes; ++l)
        lanes[l] = math.larger(lanes[l], static_cast<A>(from[i + l]));
    }
    for (; i < size; ++i) lanes[0] = math.larger(lanes[0], static_cast<A>(from[i]));
    A best = lanes[0];
    for (const A lane : lanes) best = math.larger(best, lane);
    return best;
  }
};

template <typename T>
std::unique_ptr<PreparedKernel> prepare_global_pool(const PrepareContext& context,
                                                    const PoolMath<T>& math) {
  const Shape& shape = context.info.input(0).shape;
  const std::int64_t planes = shape.elements(0, 2);
  const std::int64_t size = shape.elements(2, shape.rank());
  return make_kernel(
      context,
      [math, planes, size](const Launch& launch) {
        parallel_for(launch, planes, 0.1 * static_cast<double>(size) + 2,
                     GlobalPool<T>{math, size, launch.input<T>(0), launch.output<T>(0)});
      },
      "pool:global");
}

template <PoolKind Kind, bool Global>
std::unique_ptr<PreparedKernel> prepare_pool(const PrepareContext& context) {
  const AttrMap& attrs = *context.info.attrs;
  const auto prepare = [&]<typename T>(std::type_identity<T>) {
    PoolMath<T> math;
    math.kind = Kind;
    if (attrs.has("count_include_pad")) math.include_pad = attrs.integer("count_include_pad") != 0;
    if (attrs.has("p")) math.power = static_cast<double>(attrs.integer("p"));
    return Global ? prepare_global_pool<T>(context, math) : prepare_window_pool<T>(context, math);
  };
  const DType dtype = context.info.input(0).dtype;
  if (Kind == PoolKind::max && dtype == DType::i8)
    return prepare(std::type_identity<std::int8_t>{});
  if (Kind == PoolKind::max && dtype == DType::u8) {
    return prepare(std::type_identity<std::uint8_t>{});
  }
  return dispatch_floating(dtype, prepare);
}

Acceptance accept_max(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  if (dtype == DType::i8 || dtype == DType::u8) return Acceptance::yes();
  return accept_floating(info);
}

}  // namespace

void register_pool_kernels(KernelRegistry& registry) {
  add_kernel(registry, "max_pool", accept_max, prepare_pool<PoolKind::max, false>);
  add_kernel(registry, "average_pool", accept_floating, prepare_pool<PoolKind::average, false>);
  add_kernel(registry, "lp_pool", accept_floating, prepare_pool<PoolKind::lp, false>);
  add_kernel(registry, "global_max_pool", accept_floating, prepare_pool<PoolKind::max, true>);
  add_kernel(registry, "global_average_pool", accept_floating,
             prepare_pool<PoolKind::average, true>);
  add_kernel(registry, "global_lp_pool", accept_floating, prepare_pool<PoolKind::lp, true>);
}

}  // namespace turnout::kokkos
