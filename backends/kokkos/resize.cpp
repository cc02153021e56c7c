// resize: each output element is a sum over taps of every resized dimension (see
// ops/movement_resize.hpp for the tables). Neighbouring dimensions that aren't resized are one.

#include <cmath>
#include <vector>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/convert.hpp"
#include "ops/movement_resize.hpp"

namespace turnout::kokkos {

namespace {

/// A dimension: resized, or with one tap of weight 1 at its own place (tables empty).
struct Group {
  std::int64_t in = 1, out = 1, taps = 1;
  std::vector<std::int64_t> index;
  std::vector<double> weight;
  std::vector<std::uint8_t> outside;
};

std::vector<Group> groups_of(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  std::vector<Group> groups;
  bool open = false;  // the last group can take another dimension
  auto axes = resize_axes(info);
  auto next = axes.begin();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (next != axes.end() && next->axis == axis) {
      groups.push_back({next->in, next->out, next->taps, next->index, next->weight, next->outside});
      ++next;
      open = false;
    } else if (open) {
      groups.back().in *= shape[axis];
      groups.back().out *= shape[axis];
    } else {
      groups.push_back({shape[axis], shape[axis], 1, {}, {}, {}});
      open = true;
    }
  }
  if (groups.empty()) groups.emplace_back();
  return groups;
}

/// Group as a functor sees it.
struct Axis {
  std::int64_t in, out, taps, stride;  // stride: of the input
  const std::int64_t* index;           // null: not resized
  const double* weight;
  const std::uint8_t* outside;  // null: never
};

struct Axes {
  int outer = 0;  // all but the last, which is the row
  Axis axes[5];
};
constexpr int kMaxGroups = 5;

/// The groups with their tables where a functor can read them.
struct Tables {
  Axes axes;
  std::vector<Constant> kept;  // what the axes point to

  template <typename T>
  const T* keep(const PrepareContext& context, const std::vector<T>& values) {
    kept.push_back(constant_of(context, values));
    return kept.back().data<T>();
  }
};

Tables tables_of(const PrepareContext& context, const std::vector<Group>& groups) {
  Tables tables;
  Axes& result = tables.axes;
  result.outer = static_cast<int>(groups.size()) - 1;
  std::int64_t stride = 1;
  for (int i = result.outer; i >= 0; --i) {
    const Group& group = groups[static_cast<std::size_t>(i)];
    result.axes[i] = {group.in,
                      group.out,
                      group.taps,
                      stride,
                      tables.keep(context, group.index),
                      tables.keep(context, group.weight),
                      tables.keep(context, group.outside)};
    stride *= group.in;
  }
  return tables;
}

/// Nearest without extrapolation. Item: one row of the output; on devices one element.
template <typename T>
struct ResizeMove {
  const T* x;
  T* y;
  Axes at;
  TURNOUT_HD std::int64_t source_of(int axes, std::int64_t index) const {
    std::int64_t from = 0;
    for (int i = axes - 1; i >= 0; --i) {
      const Axis& axis = at.axes[i];
      const std::int64_t place = index % axis.out;
      index /= axis.out;
      from += (axis.index == nullptr ? place : axis.index[place]) * axis.stride;
    }
    return from;
  }
  TURNOUT_HD void operator()(std::int64_t row) const {
    if constexpr (kDevice) {
      y[row] = x[source_of(at.outer + 1, row)];
      return;
    }
    const std::int64_t from = source_of(at.outer, row);
    const Axis& last = at.axes[at.outer];
    T* to = y + row * last.out;
    if (last.index == nullptr) {
      copy_dense(x + from, to, last.out);
    } else {
      for (std::int64_t i = 0; i < last.out; ++i) to[i] = x[from + last.index[i]];
    }
  }
};

/// Weighted sums in A. Item: one row of the output.
template <typename W>
struct ResizeSum {
  using A = std::conditional_t<std::is_same_v<W, float>, float, double>;
  const void* x;
  void* y;
  DType dtype;
  A extrapolation;
  double low, high;  // of integers
  Axes at;
  TURNOUT_HD void operator()(std::int64_t row) const {
    std::int64_t places[kMaxGroups], combinations = 1, rest = row;
    bool outside = false;
    for (int i = at.outer - 1; i >= 0; --i) {
      const Axis& axis = at.axes[i];
      places[i] = rest % axis.out;
      rest /= axis.out;
      combinations *= axis.taps;
      outside = outside || (axis.outside != nullptr && axis.outside[places[i]] != 0);
    }
    const Axis& last = at.axes[at.outer];
    A sums[kBlockElements];
    for (std::int64_t begin = 0; begin < last.out; begin += kBlockElements) {
      const std::int64_t left = last.out - begin;
      const std::int64_t n = left < kBlockElements ? left : kBlockElements;
      for (std::int64_t i = 0; i < n; ++i) sums[i] = outside ? extrapolation : A(0);
      for (std::int64_t c = 0; c < combinations && !outside; ++c) {
        add_combination(c, places, begin, n, sums);
      }
      store(row * last.out + begin, begin, n, sums);
    }
  }
  TURNOUT_HD void add_combination(std::int64_t c, const std::int64_t* places, std::int64_t begin,
                                  std::int64_t n, A* sums) const {
    std::int64_t from = 0;
    A weight = 1;
    for (int i = at.outer - 1; i >= 0; --i) {
      const Axis& axis = at.axes[i];
      const std::int64_t tap = places[i] * axis.taps + c % axis.taps;
      c /= axis.taps;
      from += (axis.index == nullptr ? places[i] : axis.index[tap]) * axis.stride;
      if (axis.weight != nullptr) weight *= static_cast<A>(axis.weight[tap]);
    }
    if (weight == A(0)) return;
    const Axis& last = at.axes[at.outer];
    W buffer[kBlockElements];
    buffer[0] = W(0);
    if (last.index == nullptr) {
      const W* source = load_block(x, dtype, from + begin, 1, n, buffer);
      for (std::int64_t i = 0; i < n; ++i) sums[i] += weight * static_cast<A>(source[i]);
      return;
    }
    const bool direct = dtype == dtype_of<W>;
    const W* source = static_cast<const W*>(x) + (direct ? from : 0);
    for (std::int64_t i = 0; i < n; ++i) {
      A sum = 0;
      for (std::int64_t t = (begin + i) * last.taps; t < (begin + i + 1) * last.taps; ++t) {
        const W value = direct ? source[last.index[t]]
                               : *load_block(x, dtype, from + last.index[t], 1, 1, buffer);
        sum += static_cast<A>(last.weight[t]) * static_cast<A>(value);
      }
      sums[i] += weight * sum;
    }
  }
  TURNOUT_HD void store(std::int64_t to, std::int64_t begin, std::int64_t n, A* sums) const {
    const std::uint8_t* outside = at.axes[at.outer].outside;
    W buffer[kBlockElements];
    W* place = result_block(y, dtype, to, buffer);
    for (std::int64_t i = 0; i < n; ++i) {
      if (outside != nullptr && outside[begin + i] != 0) sums[i] = extrapolation;
      if constexpr (std::is_integral_v<W>) {
        const double whole = std::nearbyint(sums[i]);
        place[i] = convert<W>(whole < low ? low : (whole > high ? high : whole));
      } else {
        place[i] = sums[i];
      }
    }
    store_block(y, dtype, to, n, place);
  }
};

/// On devices. Item: one element.
template <typename W>
struct ResizeElement {
  using A = typename ResizeSum<W>::A;
  const void* x;
  void* y;
  DType dtype;
  A extrapolation;
  double low, high;  // of integers
  Axes at;
  TURNOUT_HD void operator()(std::int64_t item) const {
    std::int64_t places[kMaxGroups], combinations = 1, rest = item;
    for (int i = at.outer; i >= 0; --i) {
      const Axis& axis = at.axes[i];
      places[i] = rest % axis.out;
      rest /= axis.out;
      combinations *= axis.taps;
      if (axis.outside != nullptr && axis.outside[places[i]] != 0) return put(item, extrapolation);
    }
    A sum = 0;
    for (std::int64_t c = 0; c < combinations; ++c) sum += term(c, places);
    put(item, sum);
  }

 private:
  TURNOUT_HD A term(std::int64_t combination, const std::int64_t* places) const {
    std::int64_t from = 0;
    A weight = 1;
    for (int i = at.outer; i >= 0; --i) {
      const Axis& axis = at.axes[i];
      const std::int64_t tap = places[i] * axis.taps + combination % axis.taps;
      combination /= axis.taps;
      from += (axis.index == nullptr ? places[i] : axis.index[tap]) * axis.stride;
      if (axis.weight != nullptr) weight *= static_cast<A>(axis.weight[tap]);
    }
    return weight == A(0) ? A(0) : weight * static_cast<A>(load_element<W>(x, dtype, from));
  }
  TURNOUT_HD void put(std::int64_t item, A sum) const {
    if constexpr (std::is_integral_v<W>) {
      const double whole = std::nearbyint(sum);
      store_element<W>(y, dtype, item,
                       convert<W>(whole < low ? low : (whole > high ? high : whole)));
    } else {
      store_element<W>(y, dtype, item, sum);
    }
  }
};

Acceptance accept_resize(const NodeInfo& info) {
  if (groups_of(info).size() > kMaxGroups) {
    return Acceptance::no("more than two separate axes are resized among others");
  }
  if (info.input(0).dtype == DType::boolean && !resize_only_moves(info)) {
    return refuse_dtype(DType::boolean);
  }
  return Acceptance::yes();
}

std::unique_ptr<PreparedKernel> prepare_resize(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const std::vector<Group> groups = groups_of(info);
  const std::int64_t length = groups.back().out;
  const std::int64_t rows = length == 0 ? 0 : info.output(0).elements() / length;
  double products = 1;
  for (const Group& group : groups) products *= static_cast<double>(group.taps);
  const double row_ns = 10 + products * static_cast<double>(length);
  const std::int64_t items = kDevice ? info.output(0).elements() : rows;
  const DType dtype = info.input(0).dtype;
  const Tables tables = tables_of(context, groups);
  if (resize_only_moves(info)) {
    const auto bytes = static_cast<int>(size_of(dtype));
    const auto run = [=](const Launch& launch) {
      dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
        parallel_for(launch, items, row_ns,
                     ResizeMove<T>{launch.input<T>(0), launch.output<T>(0), tables.axes});
      });
    };
    return make_kernel(context, run, "resize:move");
  }
  const double value = info.attrs->real("extrapolation_value");
  const IntegerLimits limits = integer_limits(dtype);
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    using Functor = std::conditional_t<kDevice, ResizeElement<W>, ResizeSum<W>>;
    using A = typename ResizeSum<W>::A;
    double low = static_cast<double>(limits.low), high = static_cast<double>(limits.high);
    if (std::is_same_v<W, std::uint64_t>) {
      low = 0;
      high = 0x1p64;
    }
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, items, row_ns,
                   Functor{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype,
                           static_cast<A>(value), low, high, tables.axes});
    };
    return make_kernel(context, run, "resize:sum");
  });
}

}  // namespace

void register_resize_kernels(KernelRegistry& registry) {
  add_kernel(registry, "resize", accept_resize, prepare_resize);
}

}  // namespace turnout::kokkos
