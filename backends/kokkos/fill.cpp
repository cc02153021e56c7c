// one_hot, trilu, and ops whose result follows from shapes and known numbers.

#include <cstring>
#include <vector>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/convert.hpp"

namespace turnout::kokkos {

namespace {

// ------------------------------------------------- known before a run

/// The result is computed once; running copies it. Such nodes are mostly folded away before.
std::unique_ptr<PreparedKernel> prepare_known(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  std::vector<const Tensor*> inputs(info.constants);
  inputs.resize(static_cast<std::size_t>(info.input_count()), nullptr);
  std::vector<Tensor> outputs{Tensor::zeros(info.output(0))};
  info.op->reference(info, inputs, outputs);
  const Shape flat{info.output(0).elements()};
  const CopyPlan plan = plan_gather_copy(flat, flat.strides(), 0, info.output(0).dtype);
  const Constant known(context, outputs[0].address(), outputs[0].bytes());
  const auto run = [=](const Launch& launch) {
    run_copy(launch, plan, known.address(), launch.output<std::byte>(0));
  };
  return make_kernel(context, run, "known");
}

Acceptance accept_known(const NodeInfo& info) {
  for (int i = 0; i < info.input_count(); ++i) {
    if (info.op->is_shape_input(i) && info.has_input(i) && info.constant(i) == nullptr) {
      return Acceptance::no(fmt::format("input {} isn't known", i));
    }
  }
  return Acceptance::yes();
}

// ------------------------------------------------- one_hot

/// indices [outer, inner] -> [outer, depth, inner]. Item: one index; on devices one element of y.
template <typename T, typename W>
struct OneHot {
  const void* indices;
  const T* values;  // off, on
  T* y;
  DType dtype;
  std::int64_t depth, inner;
  TURNOUT_HD std::int64_t wanted_of(std::int64_t item) const {
    const auto index = convert<std::int64_t>(load_element<W>(indices, dtype, item));
    return index < 0 ? index + depth : index;
  }
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      const std::int64_t line = item / inner;
      const std::int64_t wanted = wanted_of(line / depth * inner + item % inner);
      y[item] = values[line % depth == wanted ? 1 : 0];
      return;
    }
    const std::int64_t wanted = wanted_of(item);
    T* to = y + item / inner * depth * inner + item % inner;
    const T off = values[0];
    for (std::int64_t i = 0; i < depth; ++i) to[i * inner] = off;
    if (wanted >= 0 && wanted < depth) to[wanted * inner] = values[1];
  }
};

std::unique_ptr<PreparedKernel> prepare_one_hot(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.output(0).shape;
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), "one_hot");
  const std::int64_t depth = shape[axis], inner = shape.elements(axis + 1, shape.rank());
  const std::int64_t items = kDevice ? shape.elements() : info.input(0).elements();
  const DType dtype = info.input(0).dtype;
  const auto bytes = static_cast<int>(size_of(info.output(0).dtype));
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
        parallel_for(launch, items, 5 + 0.3 * static_cast<double>(depth),
                     OneHot<T, W>{launch.input<std::byte>(0), launch.input<T>(2),
                                  launch.output<T>(0), dtype, depth, inner});
      });
    };
    return make_kernel(context, run, "one_hot");
  });
}

// ------------------------------------------------- trilu

/// Item: one row of a matrix; on devices one element.
template <typename T>
struct TriluRow {
  const T* x;
  T* y;
  std::int64_t rows, columns, diagonal;
  bool upper;
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      const std::int64_t distance = item % columns - item / columns % rows;
      const bool stays = upper ? distance >= diagonal : distance <= diagonal;
      y[item] = stays ? x[item] : T(0);
      return;
    }
    // Column c stays if c - row >= diagonal (upper), or <= diagonal.
    std::int64_t edge = item % rows + diagonal + (upper ? 0 : 1);
    edge = edge < 0 ? 0 : (edge > columns ? columns : edge);
    const T* from = x + item * columns;
    T* to = y + item * columns;
    for (std::int64_t c = 0; c < edge; ++c) to[c] = upper ? T(0) : from[c];
    for (std::int64_t c = edge; c < columns; ++c) to[c] = upper ? from[c] : T(0);
  }
};

std::unique_ptr<PreparedKernel> prepare_trilu(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const std::int64_t rows = shape.dim(-2), columns = shape.dim(-1);
  const std::int64_t given = info.has_input(1) ? info.constant_integers(1).at(0) : 0;
  const std::int64_t diagonal = std::clamp<std::int64_t>(given, -rows - 1, columns + 1);
  const bool upper = info.attrs->integer("upper") != 0;
  const std::int64_t items =
      columns == 0 || kDevice ? shape.elements() : shape.elements() / columns;
  const auto bytes = static_cast<int>(size_of(info.input(0).dtype));
  const auto run = [=](const Launch& launch) {
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      parallel_for(
          launch, items, 5 + 0.2 * static_cast<double>(columns),
          TriluRow<T>{launch.input<T>(0), launch.output<T>(0), rows, columns, diagonal, upper});
    });
  };
  return make_kernel(context, run, "trilu");
}

}  // namespace

void register_fill_kernels(KernelRegistry& registry) {
  for (const char* op : {"shape", "size", "range", "constant_of_shape", "eye_like"}) {
    add_kernel(registry, op, accept_known, prepare_known);
  }
  add_kernel(registry, "one_hot", accept_any, prepare_one_hot);
  add_kernel(registry, "trilu", accept_any, prepare_trilu);
}

}  // namespace turnout::kokkos
