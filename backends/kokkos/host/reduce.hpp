#pragma once

#include <cmath>
#include <limits>

#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/host/row_math.hpp"
#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/convert.hpp"

// Reductions over any set of axes: `kept` loops over the output, `reduced` over what goes into one
// element of it. If the innermost dimension is reduced an item is one output element; if it is kept
// an item is a strip of neighbouring output elements, so that memory is read in order.
//
// Few outputs with much to reduce are split: partial results go to the workspace, and a second loop
// puts them together. reduce_mean f32[1000000] on two threads makes two partial sums.
namespace turnout::kokkos {

/// Type of a result before it is finished.
template <typename W>
using Total = std::conditional_t<std::is_integral_v<W>, W, double>;

// Operators: `map` of each element (shift is 0 but for SumExp), `combine` of two results.
struct AddResults {
  template <typename W>
  TURNOUT_HD static W identity() {
    return W(0);
  }
  template <typename W>
  TURNOUT_HD static W combine(W a, W b) {
    if constexpr (std::is_same_v<W, std::int64_t>) {  // wraps, as integers of any width do
      return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Sum : AddResults {
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    return x;
  }
};
struct SumAbs : AddResults {
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    return x < W(0) ? W(0) - x : x;
  }
};
struct SumSquare : AddResults {
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    if constexpr (std::is_same_v<W, std::int64_t>) {
      return static_cast<W>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(x));
    } else {
      return x * x;
    }
  }
};
struct SumExp : AddResults {
  template <typename W>
  TURNOUT_HD static W map(W x, W shift) {
    return fast_exp(x - shift);
  }
};
struct Product {
  template <typename W>
  TURNOUT_HD static W identity() {
    return W(1);
  }
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    return x;
  }
  template <typename W>
  TURNOUT_HD static W combine(W a, W b) {
    if constexpr (std::is_same_v<W, std::int64_t>) {
      return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
// Extremes are NaN if any element is.
struct Max {
  template <typename W>
  TURNOUT_HD static W identity() {
    if constexpr (std::is_integral_v<W>) return std::numeric_limits<W>::lowest();
    return -std::numeric_limits<W>::infinity();
  }
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    return x;
  }
  template <typename W>
  TURNOUT_HD static W combine(W a, W b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <typename W>
  TURNOUT_HD static W identity() {
    if constexpr (std::is_integral_v<W>) return std::numeric_limits<W>::max();
    return std::numeric_limits<W>::infinity();
  }
  template <typename W>
  TURNOUT_HD static W map(W x, W) {
    return x;
  }
  template <typename W>
  TURNOUT_HD static W combine(W a, W b) {
    return b < a || b != b ? b : a;
  }
};

/// What happens to a total at last.
enum class Finish { none, mean, root, log, log_shifted };

template <typename T>
TURNOUT_HD T finished(Finish finish, T total, std::int64_t count, double shift) {
  switch (finish) {
    case Finish::none:
      return total;
    case Finish::mean:
      if constexpr (std::is_integral_v<T>) return count == 0 ? T(0) : total / static_cast<T>(count);
      return total / static_cast<T>(count);
    case Finish::root:
      return convert<T>(std::sqrt(static_cast<double>(total)));
    case Finish::log:
      return convert<T>(std::log(static_cast<double>(total)));
    case Finish::log_shifted:
      return convert<T>(std::log(static_cast<double>(total)) + shift);
  }
  return total;
}

/// Result of the n <= kBlockElements elements at x, in kLanes interleaved partial results.
template <typename Op, typename W>
TURNOUT_HD Total<W> fold(const W* x, std::int64_t n, W shift) {
  W lanes[kLanes];
  for (W& lane : lanes) lane = Op::template identity<W>();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 1  // one vector operation, rather than kLanes scalar ones
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = Op::combine(lanes[lane], Op::map(x[i + lane], shift));
    }
  }
  for (; i < n; ++i) lanes[0] = Op::combine(lanes[0], Op::map(x[i], shift));
  auto total = Op::template identity<Total<W>>();
  for (const W lane : lanes) total = Op::combine(total, static_cast<Total<W>>(lane));
  return total;
}

struct ReducePlan {
  Loops<1> kept, reduced;
  std::int64_t outputs = 1, count = 1;
  std::int64_t splits = 1;
  bool columns = false;
  Finish finish = Finish::none;
  DType dtype = DType::f32;
  IntegerLimits limits{};  ///< of dtype: what the extreme of nothing is
};

template <typename W>
struct ReduceTarget {
  void* y;
  DType dtype;
  Finish finish;
  Total<W>* partial;  ///< [splits, outputs]; null when there is one split
  std::int64_t outputs, count, splits;
  IntegerLimits limits;
  TURNOUT_HD void put(std::int64_t output, std::int64_t split, Total<W> total, W shift) const {
    if (partial != nullptr) {
      partial[split * outputs + output] = total;
      return;
    }
    W result = static_cast<W>(finished(finish, total, count, static_cast<double>(shift)));
    if constexpr (std::is_same_v<W, std::int64_t>) {
      if (count == 0) result = result < limits.low ? limits.low : result;
      if (count == 0) result = result > limits.high ? limits.high : result;
    }
    W* place = result_block(y, dtype, output, &result);
    *place = result;
    store_block(y, dtype, output, 1, place);
  }
};

inline TURNOUT_HD std::int64_t offset_of(const Loops<1>& loops, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = loops.rank - 1; axis >= 0; --axis) {
    offset += index % loops.dims[axis] * loops.strides[0][axis];
    index /= loops.dims[axis];
  }
  return offset;
}

/// The share of one split of the items of `reduced`.
struct ReduceRange {
  std::int64_t first, last;
  TURNOUT_HD ReduceRange(const Loops<1>& reduced, std::int64_t split, std::int64_t splits)
      : first(reduced.items * split / splits), last(reduced.items * (split + 1) / splits) {}
};

template <typename Op, typename W>
struct ReduceRows {
  const void* x;
  DType dtype;
  ReduceTarget<W> target;
  Loops<1> kept, reduced;  // reduced: its row has stride 1
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t output = item / target.splits, split = item % target.splits;
    const std::int64_t start = offset_of(kept, output);
    const ReduceRange range(reduced, split, target.splits);
    W shift = 0;
    if constexpr (std::is_same_v<Op, SumExp>) {
      shift = static_cast<W>(total_of<Max>(start, range, W(0)));
      if (!(shift - shift == 0)) shift = 0;  // infinite
    }
    target.put(output, split, total_of<Op>(start, range, shift), shift);
  }
  template <typename Fold>
  TURNOUT_HD Total<W> total_of(std::int64_t start, const ReduceRange& range, W shift) const {
    W buffer[kBlockElements];
    auto total = Fold::template identity<Total<W>>();
    for (std::int64_t item = range.first; item < range.last; ++item) {
      for_rows(reduced, item, [&](const RowPlace<1>& place) {
        for (std::int64_t begin = 0; begin < place.length; begin += kBlockElements) {
          const std::int64_t rest = place.length - begin;
          const std::int64_t n = rest < kBlockElements ? rest : kBlockElements;
          const W* block = load_block(x, dtype, start + place.offsets[0] + begin, 1, n, buffer);
          total = Fold::combine(total, fold<Fold>(block, n, shift));
        }
      });
    }
    return total;
  }
};

inline constexpr int kReduceColumns = 64;

template <typename Op, typename W>
struct ReduceColumns {
  const void* x;
  DType dtype;
  ReduceTarget<W> target;
  Loops<1> kept, reduced;  // kept: its row has stride 1
  std::int64_t strips;     // of the row
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t split = item % target.splits, place = item / target.splits;
    const std::int64_t length = kept.length();
    const std::int64_t begin = place % strips * kReduceColumns;
    const auto width =
        static_cast<int>(length - begin < kReduceColumns ? length - begin : kReduceColumns);
    const std::int64_t output = place / strips * length + begin;
    const std::int64_t start = offset_of(kept, output);
    const ReduceRange range(reduced, split, target.splits);
    Total<W> totals[kReduceColumns];
    W shifts[kReduceColumns] = {};
    if constexpr (std::is_same_v<Op, SumExp>) {
      totals_of<Max>(start, width, range, shifts, totals);
      for (int c = 0; c < width; ++c) {
        const W shift = static_cast<W>(totals[c]);
        shifts[c] = shift - shift == 0 ? shift : W(0);
      }
    }
    totals_of<Op>(start, width, range, shifts, totals);
    for (int c = 0; c < width; ++c) target.put(output + c, split, totals[c], shifts[c]);
  }
  template <typename Fold>
  TURNOUT_HD void totals_of(std::int64_t start, int width, const ReduceRange& range,
                            const W* shifts, Total<W>* totals) const {
    constexpr std::int64_t kRows = 512;  // summed in W before they go to the totals
    W buffer[kReduceColumns];
    W sums[kReduceColumns];
    for (int c = 0; c < width; ++c) totals[c] = Fold::template identity<Total<W>>();
    const std::int64_t stride = reduced.row_stride(0);
    for (std::int64_t item = range.first; item < range.last; ++item) {
      for_rows(reduced, item, [&](const RowPlace<1>& place) {
        for (std::int64_t begin = 0; begin < place.length; begin += kRows) {
          const std::int64_t end = begin + kRows < place.length ? begin + kRows : place.length;
          for (int c = 0; c < width; ++c) sums[c] = Fold::template identity<W>();
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t offset = start + place.offsets[0] + i * stride;
            const W* row = load_block(x, dtype, offset, 1, width, buffer);
            for (int c = 0; c < width; ++c) {
              sums[c] = Fold::combine(sums[c], Fold::map(row[c], shifts[c]));
            }
          }
          for (int c = 0; c < width; ++c) {
            totals[c] = Fold::combine(totals[c], static_cast<Total<W>>(sums[c]));
          }
        }
      });
    }
  }
};

/// Second loop of a split reduction. Item: one output.
template <typename Op, typename W>
struct ReducePartials {
  ReduceTarget<W> target;  // partial: null, so that y is written
  const Total<W>* partial;
  TURNOUT_HD void operator()(std::int64_t output) const {
    auto total = partial[output];
    for (std::int64_t split = 1; split < target.splits; ++split) {
      total = Op::combine(total, partial[split * target.outputs + output]);
    }
    target.put(output, 0, total, W(0));
  }
};

template <typename Op, typename W>
void run_reduce(const Launch& launch, const ReducePlan& plan) {
  auto* partial = plan.splits > 1 ? static_cast<Total<W>*>(launch.workspace()) : nullptr;
  const void* x = launch.input<std::byte>(0);
  ReduceTarget<W> target{launch.output<std::byte>(0),
                         plan.dtype,
                         plan.finish,
                         partial,
                         plan.outputs,
                         plan.count,
                         plan.splits,
                         plan.limits};
  const double reduced_ns =
      0.08 * static_cast<double>(plan.count) / static_cast<double>(plan.splits);
  if (plan.columns) {
    const std::int64_t length = plan.kept.length();
    const std::int64_t strips = (length + kReduceColumns - 1) / kReduceColumns;
    const double item_ns = reduced_ns * static_cast<double>(std::min<std::int64_t>(length, 64));
    parallel_for(launch, plan.kept.rows * strips * plan.splits, 20 + item_ns,
                 ReduceColumns<Op, W>{x, plan.dtype, target, plan.kept, plan.reduced, strips});
  } else {
    parallel_for(launch, plan.outputs * plan.splits, 20 + reduced_ns,
                 ReduceRows<Op, W>{x, plan.dtype, target, plan.kept, plan.reduced});
  }
  if (partial == nullptr) return;
  target.partial = nullptr;
  parallel_for(launch, plan.outputs, 2.0 * static_cast<double>(plan.splits),
               ReducePartials<Op, W>{target, partial});
}

/// How to reduce input 0 of a reduce_* node.
ReducePlan plan_reduce(const PrepareContext& context, Finish finish, bool may_split);

template <typename Op, typename W>
std::unique_ptr<PreparedKernel> prepare_reduce(const PrepareContext& context, Finish finish) {
  const ReducePlan plan = plan_reduce(context, finish, !std::is_same_v<Op, SumExp>);
  const auto run = [plan](const Launch& launch) { run_reduce<Op, W>(launch, plan); };
  const std::int64_t partials = plan.splits > 1 ? plan.splits * plan.outputs : 0;
  return make_kernel(context, run, plan.columns ? "reduce:columns" : "reduce:rows",
                     static_cast<std::size_t>(partials) * 8);
}

}  // namespace turnout::kokkos
