// reverse_sequence.

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/indices.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

/// x [first, second, inner], one of the first two being time. Item: one [inner]; on devices one
/// element.
template <typename T>
struct ReverseSequence {
  const T* x;
  T* y;
  Indices lengths;
  std::int64_t first, second, inner;
  bool time_first;
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      y[item] = x[source_of(item / inner) * inner + item % inner];
    } else {
      copy_dense(x + source_of(item) * inner, y + item * inner, inner);
    }
  }
  TURNOUT_HD std::int64_t source_of(std::int64_t row) const {
    const std::int64_t i = row / second, j = row % second;
    const std::int64_t time = time_first ? i : j, batch = time_first ? j : i;
    const std::int64_t limit = (time_first ? first : second) + 1;
    const std::int64_t length =
        lengths.raw(batch) < 0 ? lengths.note_fault() : lengths.get(batch, limit);
    const std::int64_t from = time < length ? length - 1 - time : time;
    return time_first ? from * second + j : i * second + from;
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
  const auto run = [=](const Launch& launch) {
    const Indices lengths = indices_of(launch, 1, index_dtype, IndexedOp::reverse_sequence);
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      parallel_for(launch, first * second * (kDevice ? inner : 1),
                   10 + 0.1 * static_cast<double>(inner),
                   ReverseSequence<T>{launch.input<T>(0), launch.output<T>(0), lengths, first,
                                      second, inner, time_first});
    });
    check_indices(launch);
  };
  return make_kernel(context, run, "reverse_sequence");
}

}  // namespace

void register_reverse_kernels(KernelRegistry& registry) {
  add_kernel(
      registry, "reverse_sequence", [](const NodeInfo& info) { return accept_indices(info, 1); },
      prepare_reverse_sequence);
}

}  // namespace turnout::kokkos
