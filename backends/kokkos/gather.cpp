// gather, gather_elements, gather_nd: elements picked by indices that are data.

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/indices.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

/// data [outer, dim, inner], indices [count] -> [outer, count, inner]. Item: kRun of [inner]; on
/// devices one element.
template <typename T>
struct Gather {
  static constexpr std::int64_t kRun = 64;
  const T* data;
  T* y;
  Indices indices;
  std::int64_t dim, count, inner, total;  // total: outer * count
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      const std::int64_t at = item / inner;
      const std::int64_t from = at / count * dim + indices.get(at % count, dim);
      y[item] = data[from * inner + item % inner];
      return;
    }
    const std::int64_t end = (item + 1) * kRun < total ? (item + 1) * kRun : total;
    for (std::int64_t at = item * kRun; at < end; ++at) {
      const std::int64_t from = at / count * dim + indices.get(at % count, dim);
      copy_dense(data + from * inner, y + at * inner, inner);
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_gather(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), "gather");
  const std::int64_t dim = shape[axis], inner = shape.elements(axis + 1, shape.rank());
  const std::int64_t count = info.input(1).shape.elements();
  const std::int64_t total = inner == 0 ? 0 : shape.elements(0, axis) * count;
  const DType index_dtype = info.input(1).dtype;
  const auto bytes = static_cast<int>(size_of(info.input(0).dtype));
  const auto run = [=](const Launch& launch) {
    fail_if(dim == 0 && total > 0, IndexedOp::gather);
    const Indices indices = indices_of(launch, 1, index_dtype, IndexedOp::gather);
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      constexpr std::int64_t kRun = Gather<T>::kRun;
      parallel_for(
          launch, kDevice ? total * inner : (total + kRun - 1) / kRun,
          kRun * (5 + 0.1 * static_cast<double>(inner)),
          Gather<T>{launch.input<T>(0), launch.output<T>(0), indices, dim, count, inner, total});
    });
    check_indices(launch);
  };
  return make_kernel(context, run, "gather");
}

/// y[place] = data[place with indices[place] along the axis].
template <typename T>
struct GatherElements {
  const T* data;
  T* y;
  Indices indices;
  Loops<1> loops;  // over the indices; operand 0: data, where the axis has stride 0
  std::int64_t dim, axis_stride;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t stride = loops.row_stride(0);
    for_rows(loops, item, [&](const RowPlace<1>& place) {
      for (std::int64_t i = 0; i < place.length; ++i) {
        const std::int64_t index = indices.get(place.dense + i, dim);
        y[place.dense + i] = data[place.offsets[0] + i * stride + index * axis_stride];
      }
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_gather_elements(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), "gather_elements");
  Strides strides = shape.strides();
  const std::int64_t axis_stride = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  const Loops<1> loops = make_loops<1>(info.input(1).shape, {strides});
  const std::int64_t dim = shape[axis];
  const DType index_dtype = info.input(1).dtype;
  const auto bytes = static_cast<int>(size_of(info.input(0).dtype));
  const auto run = [=](const Launch& launch) {
    fail_if(dim == 0 && loops.items > 0, IndexedOp::gather_elements);
    const Indices indices = indices_of(launch, 1, index_dtype, IndexedOp::gather_elements);
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      parallel_for(launch, loops.items, 1.5 * kItemElements,
                   GatherElements<T>{launch.input<T>(0), launch.output<T>(0), indices, loops, dim,
                                     axis_stride});
    });
    check_indices(launch);
  };
  return make_kernel(context, run, "gather_elements");
}

/// Each index tuple names a dense piece of `inner` elements of its batch. Item: one piece; on
/// devices one element.
template <typename T>
struct GatherNd {
  const T* data;
  T* y;
  Indices indices;
  std::int64_t dims[Shape::kMaxRank], strides[Shape::kMaxRank];
  int depth;
  std::int64_t tuples, batch_stride, inner;  // tuples: per batch
  TURNOUT_HD void operator()(std::int64_t item) const {
    if constexpr (kDevice) {
      y[item] = data[offset_of(item / inner) + item % inner];
    } else {
      copy_dense(data + offset_of(item), y + item * inner, inner);
    }
  }
  TURNOUT_HD std::int64_t offset_of(std::int64_t tuple) const {
    std::int64_t from = tuple / tuples * batch_stride;
    for (int i = 0; i < depth; ++i) from += indices.get(tuple * depth + i, dims[i]) * strides[i];
    return from;
  }
};

std::unique_ptr<PreparedKernel> prepare_gather_nd(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const Shape& index_shape = info.input(1).shape;
  const auto batch = static_cast<int>(info.attrs->integer("batch_dims"));
  const auto depth = static_cast<int>(index_shape.dim(-1));
  const std::int64_t items = index_shape.elements(0, index_shape.rank() - 1);
  const std::int64_t batches = shape.elements(0, batch);
  const std::int64_t inner = shape.elements(batch + depth, shape.rank());
  const bool no_data = shape.elements() == 0 && items * inner > 0;
  const Strides strides = shape.strides();
  const DType index_dtype = info.input(1).dtype;
  const auto bytes = static_cast<int>(size_of(info.input(0).dtype));
  const auto run = [=, dims = shape](const Launch& launch) {
    fail_if(no_data, IndexedOp::gather_nd);
    const Indices indices = indices_of(launch, 1, index_dtype, IndexedOp::gather_nd);
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      GatherNd<T> functor{launch.input<T>(0),
                          launch.output<T>(0),
                          indices,
                          {},
                          {},
                          depth,
                          items / std::max<std::int64_t>(batches, 1),
                          dims.elements(batch, dims.rank()),
                          inner};
      for (int i = 0; i < depth; ++i) {
        functor.dims[i] = dims[batch + i];
        functor.strides[i] = strides[static_cast<std::size_t>(batch + i)];
      }
      parallel_for(launch, inner == 0 || kDevice ? items * inner : items,
                   5 + 0.1 * static_cast<double>(inner), functor);
    });
    check_indices(launch);
  };
  return make_kernel(context, run, "gather_nd");
}

Acceptance accept_gather(const NodeInfo& info) { return accept_indices(info, 1); }

}  // namespace

void register_gather_kernels(KernelRegistry& registry) {
  add_kernel(registry, "gather", accept_gather, prepare_gather);
  add_kernel(registry, "gather_elements", accept_gather, prepare_gather_elements);
  add_kernel(registry, "gather_nd", accept_gather, prepare_gather_nd);
}

}  // namespace turnout::kokkos
