// where, clip and cast.

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/elementwise.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/convert.hpp"

namespace turnout::kokkos {

namespace {

template <typename T>
struct Where {
  const bool* condition;
  const T* a;
  const T* b;
  T* y;
  Loops<3> loops;
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t c_stride = loops.row_stride(0);
    const std::int64_t a_stride = loops.row_stride(1), b_stride = loops.row_stride(2);
    for_rows(loops, item, [&](const RowPlace<3>& place) {
      const bool* c = condition + place.offsets[0];
      const T* x0 = a + place.offsets[1];
      const T* x1 = b + place.offsets[2];
      T* to = y + place.dense;
      if (c_stride == 1 && a_stride == 1 && b_stride == 1) {
        for (std::int64_t i = 0; i < place.length; ++i) {
          const T value0 = x0[i], value1 = x1[i];
          to[i] = c[i] ? value0 : value1;
        }
      } else if (c_stride == 1 && a_stride == 1 && b_stride == 0) {
        const T value1 = *x1;
        for (std::int64_t i = 0; i < place.length; ++i) {
          const T value0 = x0[i];
          to[i] = c[i] ? value0 : value1;
        }
      } else if (c_stride == 1 && a_stride == 0 && b_stride == 1) {
        const T value0 = *x0;
        for (std::int64_t i = 0; i < place.length; ++i) {
          const T value1 = x1[i];
          to[i] = c[i] ? value0 : value1;
        }
      } else {
        for (std::int64_t i = 0; i < place.length; ++i) {
          to[i] = c[i * c_stride] ? x0[i * a_stride] : x1[i * b_stride];
        }
      }
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_where(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.output(0).shape;
  const Loops<3> loops = make_loops<3>(shape, {broadcast_strides(info.input(0).shape, shape),
                                               broadcast_strides(info.input(1).shape, shape),
                                               broadcast_strides(info.input(2).shape, shape)});
  const double item_ns = 0.1 * static_cast<double>(shape.elements()) /
                         static_cast<double>(std::max<std::int64_t>(loops.items, 1));
  const auto bytes = static_cast<int>(size_of(info.output(0).dtype));
  const auto run = [=](const Launch& launch) {
    dispatch_bytes(bytes, [&]<typename T>(std::type_identity<T>) {
      parallel_for(launch, loops.items, item_ns,
                   Where<T>{launch.input<bool>(0), launch.input<T>(1), launch.input<T>(2),
                            launch.output<T>(0), loops});
    });
  };
  return make_kernel(context, run, "where");
}

/// min(max(x, low), high): NaN stays, and the upper bound wins. Bounds are read on the device.
template <typename W>
struct ClipTiles {
  const void* x;
  const void* low;   // null: none
  const void* high;  // null: none
  void* y;
  DType dtype;
  std::int64_t elements;
  TURNOUT_HD void operator()(std::int64_t item) const {
    W x_buffer[kBlockElements], y_buffer[kBlockElements], bound = W(0);
    W least = std::numeric_limits<W>::lowest(), most = std::numeric_limits<W>::max();
    if constexpr (std::is_floating_point_v<W>) {
      least = -std::numeric_limits<W>::infinity();
      most = std::numeric_limits<W>::infinity();
    }
    if (low != nullptr) least = *load_block(low, dtype, 0, 1, 1, &bound);
    if (high != nullptr) most = *load_block(high, dtype, 0, 1, 1, &bound);
    const std::int64_t first = item * kItemElements;
    const std::int64_t last = first + kItemElements < elements ? first + kItemElements : elements;
    for (std::int64_t at = first; at < last; at += kBlockElements) {
      const std::int64_t n = last - at < kBlockElements ? last - at : kBlockElements;
      const W* from = load_block(x, dtype, at, 1, n, x_buffer);
      W* to = result_block(y, dtype, at, y_buffer);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const W raised = from[i] < least ? least : from[i];
        to[i] = raised > most ? most : raised;
      }
      store_block(y, dtype, at, n, to);
    }
  }
};

/// The same for one element, on devices.
template <typename W>
struct ClipElement {
  const void* x;
  const void* low;   // null: none
  const void* high;  // null: none
  void* y;
  DType dtype;
  TURNOUT_HD void operator()(std::int64_t i) const {
    W value = load_element<W>(x, dtype, i);
    if (low != nullptr) {
      const W least = load_element<W>(low, dtype, 0);
      value = value < least ? least : value;
    }
    if (high != nullptr) {
      const W most = load_element<W>(high, dtype, 0);
      value = value > most ? most : value;
    }
    store_element<W>(y, dtype, i, value);
  }
};

Acceptance accept_numbers(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return dtype == DType::boolean ? refuse_dtype(dtype) : Acceptance::yes();
}

std::unique_ptr<PreparedKernel> prepare_clip(const PrepareContext& context) {
  const DType dtype = context.info.input(0).dtype;
  const std::int64_t elements = context.info.input(0).elements();
  const std::int64_t items = (elements + kItemElements - 1) / kItemElements;
  const double item_ns = 0.06 * static_cast<double>(std::min(elements, kItemElements));
  return dispatch_wide(dtype, [&]<typename W>(std::type_identity<W>) {
    const auto run = [=](const Launch& launch) {
      const void* x = launch.input<std::byte>(0);
      const void* low = launch.input<std::byte>(1);
      const void* high = launch.input<std::byte>(2);
      void* y = launch.output<std::byte>(0);
      if constexpr (kDevice) {
        parallel_for(launch, items, item_ns, ClipElement<W>{x, low, high, y, dtype});
      } else {
        parallel_for(launch, items, item_ns, ClipTiles<W>{x, low, high, y, dtype, elements});
      }
    };
    return make_kernel(context, run, "clip");
  });
}

/// Item: kItemElements elements. Integers of all widths but u64 come as int64_t: what they are cast
/// to is the same.
template <typename W, typename To>
struct CastTiles {
  const void* x;
  To* y;
  DType dtype;
  std::int64_t elements;
  TURNOUT_HD void operator()(std::int64_t item) const {
    W buffer[kBlockElements];
    const std::int64_t first = item * kItemElements;
    const std::int64_t last = first + kItemElements < elements ? first + kItemElements : elements;
    for (std::int64_t at = first; at < last; at += kBlockElements) {
      const std::int64_t n = last - at < kBlockElements ? last - at : kBlockElements;
      const W* from = load_block(x, dtype, at, 1, n, buffer);
      To* to = y + at;
      for (std::int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
    }
  }
};

/// One element on devices, by way of the wide type that `to` belongs to, so that there is one such
/// functor per pair of wide types.
template <typename W, typename V>
struct CastElement {
  const void* x;
  void* y;
  DType dtype, to;
  IntegerLimits limits;  // of `to`
  TURNOUT_HD void operator()(std::int64_t i) const {
    const W from = load_element<W>(x, dtype, i);
    if constexpr (std::is_same_v<V, std::int64_t>) {
      if (to == DType::boolean) {
        static_cast<bool*>(y)[i] = convert<bool>(from);
        return;
      }
    }
    if constexpr (std::is_same_v<V, float> && !std::is_same_v<W, float>) {
      if (to != DType::f32) {
        store_element<V>(y, to, i, round_to_odd(static_cast<double>(from)));
        return;
      }
    }
    V value = convert<V>(from);
    if constexpr (std::is_same_v<V, std::int64_t> && std::is_floating_point_v<W>) {
      value = value < limits.low ? limits.low : (value > limits.high ? limits.high : value);
    }
    store_element<V>(y, to, i, value);
  }
};

template <typename W>
std::unique_ptr<PreparedKernel> prepare_cast_from(const PrepareContext& context) {
  const DType dtype = context.info.input(0).dtype, to_dtype = context.info.output(0).dtype;
  const std::int64_t elements = context.info.input(0).elements();
  const std::int64_t items = (elements + kItemElements - 1) / kItemElements;
  const double item_ns = 0.2 * static_cast<double>(std::min(elements, kItemElements));
  if constexpr (kDevice) {
    return dispatch_wide(to_dtype, [&]<typename V>(std::type_identity<V>) {
      const IntegerLimits limits = integer_limits(to_dtype);
      const auto run = [=](const Launch& launch) {
        parallel_for(launch, items, item_ns,
                     CastElement<W, V>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                                       dtype, to_dtype, limits});
      };
      return make_kernel(context, run, "cast");
    });
  } else {
    return dispatch(to_dtype, [&]<typename To>(std::type_identity<To>) {
      const auto run = [=](const Launch& launch) {
        parallel_for(
            launch, items, item_ns,
            CastTiles<W, To>{launch.input<std::byte>(0), launch.output<To>(0), dtype, elements});
      };
      return make_kernel(context, run, "cast");
    });
  }
}

std::unique_ptr<PreparedKernel> prepare_cast(const PrepareContext& context) {
  const TensorSpec& from = context.info.input(0);
  if (from.dtype == context.info.output(0).dtype) {
    const CopyPlan plan = plan_gather_copy(from.shape, from.shape.strides(), 0, from.dtype);
    return make_kernel(
        context,
        [=](const Launch& launch) {
          run_copy(launch, plan, launch.input<std::byte>(0), launch.output<std::byte>(0));
        },
        "copy");
  }
  return dispatch_wide(
      from.dtype, [&]<typename W>(std::type_identity<W>) { return prepare_cast_from<W>(context); });
}

}  // namespace

void register_select_kernels(KernelRegistry& registry) {
  add_kernel(registry, "where", accept_any, prepare_where);
  add_kernel(registry, "clip", accept_numbers, prepare_clip);
  add_kernel(registry, "cast", accept_any, prepare_cast);
}

}  // namespace turnout::kokkos
