// top_k and reverse_sequence.

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/indices.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

template <typename W>
struct Ranked {
  W value;
  std::int64_t index;
};

/// Lines share `lanes` pieces of scratch; item: every lanes-th line.
template <typename W>
struct TopK {
  const void* x;
  void* values;
  std::int64_t* indices;  // null: not asked for
  Ranked<W>* scratch;     // [lanes, length]
  DType dtype;
  std::int64_t length, k, inner, lines, lanes;
  bool largest;
  /// NaN is the largest; of equal ones the first comes first.
  TURNOUT_HD bool before(const Ranked<W>& a, const Ranked<W>& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return largest ? a_nan : b_nan;
    if (a_nan || a.value == b.value) return a.index < b.index;
    return largest ? a.value > b.value : a.value < b.value;
  }
  TURNOUT_HD void operator()(std::int64_t lane) const {
    for (std::int64_t line = lane; line < lines; line += lanes)
      select(line, scratch + lane * length);
  }
  TURNOUT_HD void select(std::int64_t line, Ranked<W>* ranked) const {
    const std::int64_t from = line / inner * inner * length + line % inner;
    for (std::int64_t i = 0; i < length; ++i) {
      W buffer = W(0);
      ranked[i] = {*load_block(x, dtype, from + i * inner, 1, 1, &buffer), i};
    }
    std::partial_sort(ranked, ranked + k, ranked + length,
                      [this](const Ranked<W>& a, const Ranked<W>& b) { return before(a, b); });
    const std::int64_t to = line / inner * inner * k + line % inner;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t at = to + i * inner;
      W value = ranked[i].value;
      W* place = result_block(values, dtype, at, &value);
      *place = ranked[i].value;
      store_block(values, dtype, at, 1, place);
      if (indices != nullptr) indices[at] = ranked[i].index;
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
  const std::int64_t lanes = std::min<std::int64_t>(lines, 4 * context.threads);
  const bool largest = info.attrs->integer("largest") != 0;
  const DType dtype = info.input(0).dtype;
  const Parallel parallel(context.threads);
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const KernelArgs& args) {
      auto* scratch = static_cast<Ranked<W>*>(args.workspace());
      const double lane_ns = 5.0 * static_cast<double>(length * lines) / static_cast<double>(lanes);
      parallel_for(
          parallel, lanes, lane_ns,
          TopK<W>{args.input<std::byte>(0), args.output<std::byte>(0), args.output<std::int64_t>(1),
                  scratch, dtype, length, k, inner, lines, lanes, largest});
    };
    return make_kernel(context, run, "top_k",
                       static_cast<std::size_t>(lanes * length) * sizeof(Ranked<W>));
  });
}

/// x [first, second, inner], one of the first two being time. Item: one [inner].
template <typename T>
struct ReverseSequence {
  const T* x;
  T* y;
  Indices lengths;
  std::int64_t first, second, inner;
  bool time_first;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t i = item / second, j = item % second;
    const std::int64_t time = time_first ? i : j, batch = time_first ? j : i;
    const std::int64_t limit = (time_first ? first : second) + 1;
    const std::int64_t length = lengths.raw(batch) < 0 ? fault() : lengths.get(batch, limit);
    const std::int64_t from = time < length ? length - 1 - time : time;
    const std::int64_t source = time_first ? from * second + j : i * second + from;
    copy_dense(x + source * inner, y + item * inner, inner);
  }
  TURNOUT_HD std::int64_t fault() const {
    std::atomic_ref<int>(*lengths.fault).store(1, std::memory_order_relaxed);
    return 0;
  }
};

std::unique_ptr<PreparedKernel> prepare_reverse_sequence(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const bool time_first = info.attrs->integer("time_axis") == 0;
  const std::int64_t first = shape[0], second = shape[1];
  const std::int64_t inner = shape.elements(2, shape.rank());
  const DType index_dtype = info.input(1).dtype;
  const auto bytes = static_cast<int>(size_of(info.input(0).dtype));
  const auto run = [=, parallel = Parallel(context.threads)](const KernelArgs& args) {
    int fault = 0;
    const Indices lengths = indices_of(args, 1, index_dtype, fault);
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      parallel_for(parallel, first * second, 10 + 0.1 * static_cast<double>(inner),
                   ReverseSequence<T>{args.input<T>(0), args.output<T>(0), lengths, first, second,
                                      inner, time_first});
    });
    check_fault(fault, "reverse_sequence");
  };
  return make_kernel(context, run, "reverse_sequence");
}

}  // namespace

void register_sort_kernels(KernelRegistry& registry) {
  add_kernel(registry, "top_k", accept_any, prepare_top_k);
  add_kernel(
      registry, "reverse_sequence", [](const NodeInfo& info) { return accept_indices(info, 1); },
      prepare_reverse_sequence);
}

}  // namespace turnout::kokkos
