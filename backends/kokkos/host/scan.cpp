// arg_max, arg_min, cum_sum and cum_prod: an item is one line along the axis.

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

/// NaN beats everything, as in NumPy.
template <typename W>
struct ArgExtreme {
  const void* x;
  std::int64_t* y;
  DType dtype;
  Lines lines;
  bool smallest, last;
  TURNOUT_HD void operator()(std::int64_t line) const {
    W buffer[kBlockElements];
    const std::int64_t start = lines.start(line);
    W best = W(0);
    std::int64_t at = -1;
    for (std::int64_t begin = 0; begin < lines.length; begin += kBlockElements) {
      const std::int64_t rest = lines.length - begin;
      const std::int64_t n = rest < kBlockElements ? rest : kBlockElements;
      const W* block = load_block(x, dtype, start + begin * lines.inner, lines.inner, n, buffer);
      for (std::int64_t i = 0; i < n; ++i) {
        if (at < 0 || beats(block[i], best)) {
          best = block[i];
          at = begin + i;
        }
      }
    }
    y[line] = at < 0 ? 0 : at;
  }
  TURNOUT_HD bool beats(W value, W best) const {
    if (best != best) return last && value != value;
    if (value != value) return true;
    if (value == best) return last;
    return smallest ? value < best : value > best;
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
  const bool last = info.attrs->integer("select_last_index") != 0;
  const DType dtype = info.input(0).dtype;
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, count, 5 + 1.0 * static_cast<double>(lines.length),
                   ArgExtreme<W>{launch.input<std::byte>(0), launch.output<std::int64_t>(0), dtype,
                                 lines, smallest, last});
    };
    return make_kernel(context, run, "arg");
  });
}

template <typename W>
struct Running {
  using Sum = std::conditional_t<std::is_floating_point_v<W>, double, std::uint64_t>;
  const void* x;
  void* y;
  DType dtype;
  Lines lines;
  bool exclusive, reverse, product;
  TURNOUT_HD void operator()(std::int64_t line) const {
    const std::int64_t start = lines.start(line);
    Sum sum = product ? 1 : 0;
    for (std::int64_t i = 0; i < lines.length; ++i) {
      const std::int64_t at = start + (reverse ? lines.length - 1 - i : i) * lines.inner;
      W value = 0;
      value = *load_block(x, dtype, at, 1, 1, &value);
      const Sum before = sum;
      sum = product ? sum * static_cast<Sum>(value) : sum + static_cast<Sum>(value);
      W result = 0;
      W* place = result_block(y, dtype, at, &result);
      *place = static_cast<W>(exclusive ? before : sum);
      store_block(y, dtype, at, 1, place);
    }
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
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, count, 5 + 2.0 * static_cast<double>(lines.length),
                   Running<W>{launch.input<std::byte>(0), launch.output<std::byte>(0), dtype, lines,
                              exclusive, reverse, product});
    };
    return make_kernel(context, run, "running");
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
