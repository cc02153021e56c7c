// pad: one table per dimension tells for each place in the output where in the input it comes from.
//
// Padding 3 elements by 2 on the left and 1 on the right gives {-1,-1,0,1,2,-1} in mode constant,
// {2,1,0,1,2,1} in mode reflect, {0,0,0,1,2,2} in mode edge, {1,2,0,1,2,0} in mode wrap.

#include <vector>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

constexpr std::int64_t kConstant = -1;

struct PadAxis {
  std::vector<std::int64_t> table;
  std::int64_t in_dim = 1;
  /// Places [first, last) of the table are consecutive places of the input.
  std::int64_t first = 0, last = 0;
};

/// Item: one row of the output; on devices one element.
template <typename T>
struct PadRow {
  const T* x;
  const T* value;  // null: 0
  T* y;
  int outer;  // dimensions but for the row
  std::int64_t dims[Shape::kMaxRank], strides[Shape::kMaxRank];
  const std::int64_t* tables[Shape::kMaxRank];
  std::int64_t length, first, last;
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      pad_element(item);
    } else {
      pad_row(item);
    }
  }

 private:
  TURNOUT_HD void pad_element(std::int64_t item) const {
    std::int64_t from = 0, rest = item;
    for (int axis = outer; axis >= 0; --axis) {
      const std::int64_t place = tables[axis][rest % dims[axis]];
      rest /= dims[axis];
      if (place == kConstant) {
        y[item] = value == nullptr ? T(0) : *value;
        return;
      }
      from += place * strides[axis];
    }
    y[item] = x[from];
  }
  TURNOUT_HD void pad_row(std::int64_t row) const {
    const T fill = value == nullptr ? T(0) : *value;
    T* to = y + row * length;
    std::int64_t from = 0, rest = row;
    bool outside = false;
    for (int axis = outer - 1; axis >= 0; --axis) {
      const std::int64_t place = tables[axis][rest % dims[axis]];
      rest /= dims[axis];
      outside = outside || place == kConstant;
      from += place * strides[axis];
    }
    if (outside) {
      for (std::int64_t i = 0; i < length; ++i) to[i] = fill;
      return;
    }
    const std::int64_t* table = tables[outer];
    const auto edge = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        to[i] = table[i] == kConstant ? fill : x[from + table[i]];
      }
    };
    edge(0, first);
    if (last > first) copy_dense(x + from + table[first], to + first, last - first);
    edge(last, length);
  }
};

std::int64_t source_of(std::int64_t place, std::int64_t dim, const std::string& mode) {
  if (place >= 0 && place < dim) return place;
  if (mode == "constant" || dim == 0) return kConstant;
  if (mode == "edge") return place < 0 ? 0 : dim - 1;
  if (mode == "wrap") return (place % dim + dim) % dim;
  if (dim == 1) return 0;
  const std::int64_t period = 2 * (dim - 1);  // reflect
  const std::int64_t wrapped = (place % period + period) % period;
  return wrapped < dim ? wrapped : period - wrapped;
}

PadAxis make_axis(std::int64_t in_dim, std::int64_t out_dim, std::int64_t before,
                  const std::string& mode) {
  PadAxis axis;
  axis.in_dim = in_dim;
  for (std::int64_t i = 0; i < out_dim; ++i) {
    axis.table.push_back(source_of(i - before, in_dim, mode));
  }
  axis.first = std::clamp<std::int64_t>(before, 0, out_dim);
  axis.last = std::clamp<std::int64_t>(before + in_dim, axis.first, out_dim);
  return axis;
}

/// `axis` followed by a dimension that isn't padded, as one.
PadAxis merge(const PadAxis& axis, std::int64_t dim) {
  PadAxis merged;
  merged.in_dim = axis.in_dim * dim;
  merged.first = axis.first * dim;
  merged.last = axis.last * dim;
  for (std::int64_t place : axis.table) {
    for (std::int64_t i = 0; i < dim; ++i) {
      merged.table.push_back(place == kConstant ? kConstant : place * dim + i);
    }
  }
  return merged;
}

std::vector<PadAxis> plan_pad(const NodeInfo& info) {
  const Shape& in = info.input(0).shape;
  const Shape& out = info.output(0).shape;
  const std::string& mode = info.attrs->text("mode");
  const std::vector<std::int64_t> pads = info.constant_integers(1);
  std::vector<std::int64_t> before(static_cast<std::size_t>(in.rank()), 0);
  if (info.has_input(3)) {
    const std::vector<std::int64_t> axes = info.constant_integers(3);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      before[static_cast<std::size_t>(normalize_axis(axes[i], in.rank(), "pad"))] = pads[i];
    }
  } else {
    std::copy_n(pads.begin(), before.size(), before.begin());
  }
  std::vector<PadAxis> axes;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const std::int64_t left = before[static_cast<std::size_t>(axis)];
    const bool untouched = left == 0 && in[axis] == out[axis];
    if (untouched && !axes.empty()) {
      axes.back() = merge(axes.back(), in[axis]);
    } else {
      axes.push_back(make_axis(in[axis], out[axis], left, mode));
    }
  }
  if (axes.empty()) axes.push_back(make_axis(1, 1, 0, mode));
  return axes;
}

/// A functor without addresses but those of `tables`.
template <typename T>
PadRow<T> make_rows(const std::vector<PadAxis>& axes, const std::vector<Constant>& tables) {
  PadRow<T> functor{};
  functor.outer = static_cast<int>(axes.size()) - 1;
  std::int64_t stride = 1;
  for (int axis = functor.outer; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    functor.dims[axis] = static_cast<std::int64_t>(axes[i].table.size());
    functor.strides[axis] = stride;
    functor.tables[axis] = tables[i].data<std::int64_t>();
    stride *= axes[i].in_dim;
  }
  functor.length = functor.dims[functor.outer];
  functor.first = axes.back().first;
  functor.last = axes.back().last;
  return functor;
}

std::unique_ptr<PreparedKernel> prepare_pad(const PrepareContext& context) {
  const std::vector<PadAxis> axes = plan_pad(context.info);
  std::vector<Constant> tables;
  for (const PadAxis& axis : axes) tables.push_back(constant_of(context, axis.table));
  const std::int64_t elements = context.info.output(0).elements();
  const auto length = static_cast<std::int64_t>(axes.back().table.size());
  const std::int64_t rows = elements == 0 ? 0 : elements / length;
  const auto bytes = static_cast<int>(size_of(context.info.input(0).dtype));
  return dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
    const PadRow<T> prepared = make_rows<T>(axes, tables);
    const auto run = [=, kept = tables](const Launch& launch) {
      PadRow<T> functor = prepared;
      functor.x = launch.input<T>(0);
      functor.value = launch.input<T>(2);
      functor.y = launch.output<T>(0);
      parallel_for(launch, kDevice ? elements : rows, 5 + 0.1 * static_cast<double>(length),
                   functor);
    };
    return make_kernel(context, run, "pad");
  });
}

}  // namespace

void register_pad_kernels(KernelRegistry& registry) {
  add_kernel(registry, "pad", accept_any, prepare_pad);
}

}  // namespace turnout::kokkos
