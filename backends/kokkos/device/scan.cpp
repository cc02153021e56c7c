// arg_max, arg_min, cum_sum and cum_prod, along one axis.
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {
namespace {

struct Lines {
  std::int64_t length, inner;  // elements of a line, and how far they are apart
  TURNOUT_HD std::int64_t start(std::int64_t line) const {
    return line / inner * length * inner + line % inner;
  }
};

// ------------------------------------------------- arg_max, arg_min

template <typename W>
struct Found {
  W value;
  std::int64_t index;  // -1: none
};

/// NaN beats everything, as in NumPy. Among equal ones the first or the last wins.
struct ExtremeOp {
  bool smallest, last;
  template <typename T>
  TURNOUT_HD T identity() const {
    return {0, -1};
  }
  template <typename T>
  TURNOUT_HD T combine(const T& a, const T& b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return (a.index < b.index) != last ? a : b;
    return (a.value < b.value) == smallest ? a : b;
  }
};

template <typename W>
struct ArgLine {
  const void* x;
  std::int64_t* y;
  DType dtype;
  Lines lines;
  ExtremeOp op;
  template <typename Group>
  TURNOUT_HD void operator()(const Group& group, std::int64_t line) const {
    const std::int64_t start = lines.start(line);
    auto best = op.template identity<Found<W>>();
    for (std::int64_t i = group.rank(); i < lines.length; i += group.size()) {
      best = op.combine(best, Found<W>{load_element<W>(x, dtype, start + i * lines.inner), i});
    }
    best = group.reduce(op, best);
    if (group.rank() == 0) y[line] = best.index < 0 ? 0 : best.index;
  }
};

std::unique_ptr<PreparedKernel> prepare_arg(const PrepareContext& context, bool smallest) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const bool scalar = shape.rank() == 0;
  const int axis =
      scalar ? 0 : normalize_axis(info.attrs->integer("axis"), shape.rank(), info.op->name);
  const Lines lines{scalar ? 1 : shape[axis], scalar ? 1 : shape.elements(axis + 1, shape.rank())};
  const std::int64_t count = info.output(0).elements();
  const ExtremeOp op{smallest, info.attrs->integer("select_last_index") != 0};
  const DType dtype = info.input(0).dtype;
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_lines(
          launch, count, lines.length, lines.inner,
          ArgLine<W>{launch.input<std::byte>(0), launch.output<std::int64_t>(0), dtype, lines, op});
    };
    return make_kernel(context, run, "arg");
  });
}

// ------------------------------------------------- cum_sum, cum_prod

/// Each thread of a team adds up a piece of the line, then writes it, beginning with what the
/// pieces before it come to.
template <typename W>
struct Running {
  using Sum = std::conditional_t<std::is_floating_point_v<W>, double, std::uint64_t>;
  const void* x;
  void* y;
  DType dtype;
  Lines lines;
  bool exclusive, reverse, product;

  TURNOUT_HD void operator()(const Member& member, std::int64_t line) const {
    const ScratchArray<Sum> totals(member, static_cast<std::size_t>(member.team_size()));
    const int rank = member.team_rank(), size = member.team_size();
    const std::int64_t start = lines.start(line);
    const std::int64_t first = lines.length * rank / size;
    const std::int64_t last = lines.length * (rank + 1) / size;
    totals[rank] = run(start, first, last, start_value(), false);
    member.team_barrier();
    Sum before = start_value();
    for (int other = 0; other < rank; ++other) before = combined(before, totals[other]);
    run(start, first, last, before, true);
    member.team_barrier();
  }
  /// A line a thread.
  TURNOUT_HD void operator()(std::int64_t line) const {
    run(lines.start(line), 0, lines.length, start_value(), true);
  }

 private:
  TURNOUT_HD Sum start_value() const { return product ? 1 : 0; }
  TURNOUT_HD Sum combined(Sum a, Sum b) const { return product ? a * b : a + b; }
  TURNOUT_HD Sum run(std::int64_t start, std::int64_t first, std::int64_t last, Sum sum,
                     bool write) const {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t at = start + (reverse ? lines.length - 1 - i : i) * lines.inner;
      const Sum before = sum;
      sum = combined(sum, static_cast<Sum>(load_element<W>(x, dtype, at)));
      if (write) store_element<W>(y, dtype, at, static_cast<W>(exclusive ? before : sum));
    }
    return sum;
  }
};

Acceptance accept_running(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return dtype == DType::boolean ? refuse_dtype(dtype) : Acceptance::yes();
}

std::unique_ptr<PreparedKernel> prepare_running(const PrepareContext& context, bool product) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = normalize_axis(info.constant_integers(1).at(0), shape.rank(), info.op->name);
  const Lines lines{shape[axis], shape.elements(axis + 1, shape.rank())};
  const std::int64_t count = shape.elements() == 0 ? 0 : shape.elements() / lines.length;
  const bool exclusive = info.attrs->integer("exclusive") != 0;
  const bool reverse = info.attrs->integer("reverse") != 0;
  const DType dtype = info.input(0).dtype;
  const bool teams = lines.length > 64 && count < 16384;
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      constexpr int kThreads = 256;
      const Running<W> functor{launch.input<std::byte>(0),
                               launch.output<std::byte>(0),
                               dtype,
                               lines,
                               exclusive,
                               reverse,
                               product};
      if (teams) {
        using Sums = ScratchArray<typename Running<W>::Sum>;
        parallel_teams(launch, count, kThreads, Sums::bytes(kThreads), functor);
      } else {
        parallel_for(launch, count, 0, functor);
      }
    };
    return make_kernel(context, run, teams ? "running:teams" : "running:threads");
  });
}

}  // namespace

void register_scan_kernels(KernelRegistry& registry) {
  add_kernel(registry, "arg_max", accept_any,
             [](const PrepareContext& context) { return prepare_arg(context, false); });
  add_kernel(registry, "arg_min", accept_any,
             [](const PrepareContext& context) { return prepare_arg(context, true); });
  add_kernel(registry, "cum_sum", accept_running,
             [](const PrepareContext& context) { return prepare_running(context, false); });
  add_kernel(registry, "cum_prod", accept_running,
             [](const PrepareContext& context) { return prepare_running(context, true); });
}

}  // namespace turnout::kokkos
