// Reductions over any set of axes. A line is what goes into one element of the output. Few outputs
// with much to reduce are split: partial results go to the workspace, and a second loop puts them
// together.
#include "ops/reduce.hpp"

#include "backends/kokkos/device/split_loops.hpp"
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/convert.hpp"

namespace turnout::kokkos {
namespace {

/// Type of a result before it is finished.
template <typename W>
using Total = std::conditional_t<std::is_integral_v<W>, W, double>;

enum class Fold { sum, sum_abs, sum_square, sum_exp, product, max, min };

// Integers wrap.
template <typename T>
TURNOUT_HD T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <typename T>
TURNOUT_HD T product_of(T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// The fold is the same for all threads, so that one kernel a type serves all of them.
struct FoldOp {
  Fold fold;

  template <typename T>
  TURNOUT_HD T identity() const {
    switch (fold) {
      case Fold::product:
        return T(1);
      case Fold::max:
        if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
        return -std::numeric_limits<T>::infinity();
      case Fold::min:
        if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
        return std::numeric_limits<T>::infinity();
      default:
        return T(0);
    }
  }
  /// Extremes are NaN if any element is.
  template <typename T>
  TURNOUT_HD T combine(T a, T b) const {
    switch (fold) {
      case Fold::product:
        return product_of(a, b);
      case Fold::max:
        return b > a || b != b ? b : a;
      case Fold::min:
        return b < a || b != b ? b : a;
      default:
        return sum_of(a, b);
    }
  }
  template <typename T>
  TURNOUT_HD T map(T x, T shift) const {
    switch (fold) {
      case Fold::sum_abs:
        return x < T(0) ? T(0) - x : x;
      case Fold::sum_square:
        return product_of(x, x);
      case Fold::sum_exp:
        if constexpr (std::is_floating_point_v<T>) return std::exp(x - shift);
        return x;
      default:
        return x;
    }
  }
};

/// What happens to a total at last.
enum class Finish { none, mean, root, log };

template <typename T>
TURNOUT_HD T finished(Finish finish, T total, std::int64_t count, double shift) {
  switch (finish) {
    case Finish::mean:
      if constexpr (std::is_integral_v<T>) return count == 0 ? T(0) : total / static_cast<T>(count);
      return total / static_cast<T>(count);
    case Finish::root:
      return convert<T>(std::sqrt(static_cast<double>(total)));
    case Finish::log:
      return convert<T>(std::log(static_cast<double>(total)) + shift);
    default:
      return total;
  }
}

struct ReducePlan {
  SplitLoops loops;
  std::int64_t outputs = 1, count = 1;
  std::int64_t splits = 1;
  FoldOp op{Fold::sum};
  Finish finish = Finish::none;
  DType dtype = DType::f32;
  std::int64_t low = 0, high = 0;  ///< limits of dtype: what the extreme of nothing is
};

template <typename W>
struct ReduceTarget {
  void* y;
  Total<W>* partial;  ///< [splits, outputs]; null when there is one split

  TURNOUT_HD void put(const ReducePlan& plan, std::int64_t line, Total<W> total, W shift) const {
    if (partial != nullptr) {
      partial[line] = total;
      return;
    }
    W result = static_cast<W>(finished(plan.finish, total, plan.count, static_cast<double>(shift)));
    if constexpr (std::is_same_v<W, std::int64_t>) {
      if (plan.count == 0) {
        result = result < plan.low ? plan.low : (result > plan.high ? plan.high : result);
      }
    }
    store_element<W>(y, plan.dtype, line, result);
  }
};

/// Line: one split of one output; neighbours are neighbouring outputs.
template <typename W>
struct ReduceLine {
  const void* x;
  ReduceTarget<W> target;
  ReducePlan plan;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t output = line % plan.outputs, split = line / plan.outputs;
    const std::int64_t start = plan.loops.kept_offset(output);
    const std::int64_t first = plan.count * split / plan.splits;
    const std::int64_t last = plan.count * (split + 1) / plan.splits;
    W shift = W(0);
    if (plan.op.fold == Fold::sum_exp) {
      shift = static_cast<W>(total_of(group, FoldOp{Fold::max}, start, first, last, W(0)));
      if (!(shift - shift == 0)) shift = W(0);  // infinite
    }
    const Total<W> total = total_of(group, plan.op, start, first, last, shift);
    if (group.rank() == 0) target.put(plan, line, total, shift);
  }

  template <typename Group>
  TURNOUT_HD Total<W> total_of(const Group& group, const FoldOp& op, std::int64_t start,
                               std::int64_t first, std::int64_t last, W shift) const {
    constexpr int kRun = 32;  // summed in W before they go to the total
    auto total = op.template identity<Total<W>>();
    for (std::int64_t i = first + group.rank(); i < last;) {
      W sum = op.template identity<W>();
      for (int k = 0; k < kRun && i < last; ++k, i += group.size()) {
        const std::int64_t at = start + plan.loops.reduced_offset(i);
        sum = op.combine(sum, op.map(load_element<W>(x, plan.dtype, at), shift));
      }
      total = op.combine(total, static_cast<Total<W>>(sum));
    }
    return group.reduce(op, total);
  }
};

/// Second loop of a split reduction. Line: one output.
template <typename W>
struct ReducePartials {
  const Total<W>* partial;
  ReduceTarget<W> target;
  ReducePlan plan;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t output) const {
    auto total = plan.op.template identity<Total<W>>();
    for (std::int64_t split = group.rank(); split < plan.splits; split += group.size()) {
      total = plan.op.combine(total, partial[split * plan.outputs + output]);
    }
    total = group.reduce(plan.op, total);
    if (group.rank() == 0) target.put(plan, output, total, W(0));
  }
};

ReducePlan plan_reduce(const NodeInfo& info, Fold fold, Finish finish) {
  ReducePlan plan;
  plan.loops = make_split_loops(info.input(0).shape, reduced_axes(info));
  plan.outputs = plan.loops.kept_elements();
  plan.count = plan.loops.reduced_elements();
  plan.op.fold = fold;
  plan.finish = finish;
  plan.dtype = info.input(0).dtype;
  const IntegerLimits limits = integer_limits(plan.dtype);
  plan.low = limits.low;
  plan.high = limits.high;
  if (plan.outputs == 0 || fold == Fold::sum_exp) return plan;
  // Enough lines for all of a device, but no line too short: teams on dense ones, else threads.
  const bool dense = plan.loops.reduced_stride() == 1;
  const std::int64_t wanted = (dense ? 1024 : 65536) / plan.outputs;
  const std::int64_t most = plan.count / (dense ? 8192 : 32);
  plan.splits = std::max<std::int64_t>(std::min(wanted, most), 1);
  return plan;
}

template <typename W>
void run_reduce(const Launch& launch, const ReducePlan& plan) {
  auto* partial = plan.splits > 1 ? static_cast<Total<W>*>(launch.workspace()) : nullptr;
  const ReduceTarget<W> end{launch.output<std::byte>(0), nullptr};
  parallel_lines(launch, plan.outputs * plan.splits, plan.count / plan.splits,
                 plan.loops.reduced_stride(),
                 ReduceLine<W>{launch.input<std::byte>(0), {end.y, partial}, plan});
  if (partial == nullptr) return;
  parallel_lines(launch, plan.outputs, plan.splits, plan.outputs,
                 ReducePartials<W>{partial, end, plan});
}

template <Fold fold, Finish finish>
std::unique_ptr<PreparedKernel> prepare_reduce(const PrepareContext& context) {
  const ReducePlan plan = plan_reduce(context.info, fold, finish);
  const std::int64_t partials = plan.splits > 1 ? plan.splits * plan.outputs : 0;
  return dispatch_wide(plan.dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [plan](const Launch& launch) { run_reduce<W>(launch, plan); };
    return make_kernel(context, run, plan.splits > 1 ? "reduce:split" : "reduce:lines",
                       static_cast<std::size_t>(partials) * sizeof(Total<W>));
  });
}

Acceptance accept_sum(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return dtype == DType::boolean ? refuse_dtype(dtype) : Acceptance::yes();
}

}  // namespace

void register_reduce_kernels(KernelRegistry& registry) {
  add_kernel(registry, "reduce_sum", accept_sum, prepare_reduce<Fold::sum, Finish::none>);
  add_kernel(registry, "reduce_mean", accept_sum, prepare_reduce<Fold::sum, Finish::mean>);
  add_kernel(registry, "reduce_log_sum", accept_sum, prepare_reduce<Fold::sum, Finish::log>);
  add_kernel(registry, "reduce_l1", accept_sum, prepare_reduce<Fold::sum_abs, Finish::none>);
  add_kernel(registry, "reduce_l2", accept_sum, prepare_reduce<Fold::sum_square, Finish::root>);
  add_kernel(registry, "reduce_sum_square", accept_sum,
             prepare_reduce<Fold::sum_square, Finish::none>);
  add_kernel(registry, "reduce_prod", accept_sum, prepare_reduce<Fold::product, Finish::none>);
  add_kernel(registry, "reduce_log_sum_exp", accept_floating,
             prepare_reduce<Fold::sum_exp, Finish::log>);
  add_kernel(registry, "reduce_max", accept_any, prepare_reduce<Fold::max, Finish::none>);
  add_kernel(registry, "reduce_min", accept_any, prepare_reduce<Fold::min, Finish::none>);
}

}  // namespace turnout::kokkos
