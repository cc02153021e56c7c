#include "backends/kokkos/copy.hpp"

#if TURNOUT_KOKKOS_DEVICE
#include "backends/kokkos/device/copy_tiles.hpp"
#endif

namespace turnout::kokkos {

namespace {

constexpr std::int64_t kBlock = 16;  ///< elements on a side: 16 cache lines are read, 16 written

template <typename T>
struct CopyRows {
  Loops<2> loops;
  const T* from;
  T* to;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t from_stride = loops.row_stride(0);
    const std::int64_t to_stride = loops.row_stride(1);
    for_rows(loops, item, [&](const RowPlace<2>& place) {
      const T* x = from + place.offsets[0];
      T* y = to + place.offsets[1];
      if (from_stride == 1 && to_stride == 1) {
        copy_dense(x, y, place.length);
      } else if (from_stride == 0 && to_stride == 1) {
        const T value = *x;
        for (std::int64_t i = 0; i < place.length; ++i) y[i] = value;
      } else if (to_stride == 1) {
        for (std::int64_t i = 0; i < place.length; ++i) y[i] = x[i * from_stride];
      } else if (from_stride == 1) {
        for (std::int64_t i = 0; i < place.length; ++i) y[i * to_stride] = x[i];
      } else {
        for (std::int64_t i = 0; i < place.length; ++i) y[i * to_stride] = x[i * from_stride];
      }
    });
  }
};

/// Item: a strip of kBlock rows of the block axis, at one place of the other dimensions.
template <typename T>
struct CopyBlocks {
  Loops<2> loops;  // dims[block_axis] was made 1
  const T* from;
  T* to;
  std::int64_t height;     // of the block axis, where `from` is dense
  std::int64_t to_stride;  // of the block axis
  std::int64_t strips;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t begin = item % strips * kBlock;
    const std::int64_t rows = height - begin < kBlock ? height - begin : kBlock;
    const std::int64_t stride = loops.row_stride(0);
    for_rows(loops, item / strips, [&](const RowPlace<2>& place) {
      const T* x = from + place.offsets[0] + begin;
      T* y = to + place.offsets[1] + begin * to_stride;
      for (std::int64_t left = 0; left < place.length; left += kBlock) {
        const std::int64_t width = place.length - left < kBlock ? place.length - left : kBlock;
        block(x + left * stride, y + left, rows, width, stride);
      }
    });
  }
  TURNOUT_HD void block(const T* x, T* y, std::int64_t rows, std::int64_t width,
                        std::int64_t stride) const {
    if (rows == kBlock && width == kBlock) {  // constant bounds, so that it is unrolled
      T tile[kBlock][kBlock];
      for (int j = 0; j < kBlock; ++j) {
        for (int i = 0; i < kBlock; ++i) tile[i][j] = x[j * stride + i];
      }
      for (int i = 0; i < kBlock; ++i) {
        for (int j = 0; j < kBlock; ++j) y[i * to_stride + j] = tile[i][j];
      }
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) y[i * to_stride + j] = x[j * stride + i];
    }
  }
};

template <typename T>
void run_rows(const Launch& launch, const CopyPlan& plan, const T* from, T* to) {
  const double elements = static_cast<double>(plan.loops.rows * plan.loops.length());
  const double element_ns = plan.loops.row_stride(0) == 1 ? 0.02 * sizeof(T) : 0.2;
  const double item_ns = elements * element_ns / static_cast<double>(plan.loops.items);
  parallel_for(launch, plan.loops.items, item_ns, CopyRows<T>{plan.loops, from, to});
}

template <typename T>
void run_blocks(const Launch& launch, const CopyPlan& plan, const T* from, T* to) {
  CopyBlocks<T> functor{plan.loops,
                        from,
                        to,
                        plan.loops.dims[plan.block_axis],
                        plan.loops.strides[1][plan.block_axis],
                        0};
  functor.strips = (functor.height + kBlock - 1) / kBlock;
  functor.loops.dims[plan.block_axis] = 1;
  set_items(functor.loops);
  const std::int64_t items = functor.loops.items * functor.strips;
  const std::int64_t elements = functor.loops.rows * functor.loops.length() * functor.height;
  parallel_for(launch, items, 0.25 * static_cast<double>(elements) / static_cast<double>(items),
               functor);
}

/// The axis to go along in blocks: dense in the source, long enough to fill a good part of one.
int find_block_axis(const Loops<2>& loops) {
  if (loops.row_stride(0) == 1 || loops.row_stride(0) == 0 || loops.row_stride(1) != 1) return -1;
  if (loops.length() < kBlock / 2) return -1;
  for (int axis = 0; axis + 1 < loops.rank; ++axis) {
    if (loops.strides[0][axis] == 1 && loops.dims[axis] >= kBlock / 2) return axis;
  }
  return -1;
}

/// Short rows from which the source jumps: makes the axis along which the source is dense the row
/// instead, so that loops are long. Writing has its stride then.
void lengthen_rows(Loops<2>& loops) {
  const int row = loops.rank - 1;
  if (loops.row_stride(0) == 1 || loops.length() >= kBlock / 2) return;
  for (int axis = 0; axis < row; ++axis) {
    if (loops.strides[0][axis] != 1 || loops.dims[axis] < kBlock) continue;
    std::swap(loops.dims[axis], loops.dims[row]);
    for (auto& strides : loops.strides) std::swap(strides[axis], strides[row]);
    set_items(loops);
    return;
  }
}

}  // namespace

CopyPlan plan_copy(const Shape& shape, const Strides& from, std::int64_t from_offset,
                   const Strides& to, std::int64_t to_offset, DType dtype) {
  CopyPlan plan;
  plan.loops = make_loops<2>(shape, {from, to});
  plan.from_offset = from_offset;
  plan.to_offset = to_offset;
  plan.element_bytes = static_cast<int>(size_of(dtype));
  plan.block_axis = find_block_axis(plan.loops);
  if (plan.block_axis < 0 && !kDevice) lengthen_rows(plan.loops);
  return plan;
}

CopyPlan plan_gather_copy(const Shape& shape, const Strides& from, std::int64_t from_offset,
                          DType dtype) {
  return plan_copy(shape, from, from_offset, dense_strides(shape), 0, dtype);
}

void run_copy(const Launch& launch, const CopyPlan& plan, const void* from, void* to) {
  if (plan.loops.items == 0) return;
  dispatch_bytes(plan.element_bytes, [&]<typename T>(std::type_identity<T>) {
    const T* x = static_cast<const T*>(from) + plan.from_offset;
    T* y = static_cast<T*>(to) + plan.to_offset;
    if (plan.block_axis >= 0) {
#if TURNOUT_KOKKOS_DEVICE
      copy_tiles(launch, plan, x, y);
#else
      run_blocks(launch, plan, x, y);
#endif
    } else {
      run_rows(launch, plan, x, y);
    }
  });
}

}  // namespace turnout::kokkos
