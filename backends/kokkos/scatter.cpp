// scatter_elements and scatter_nd: a copy of the data, some elements of which are replaced by, or
// combined with, updates at places that are data. Places may repeat, so work is divided over
// dimensions along which they can't meet, and updates to one place are made in order.

#include <optional>

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/indices.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

enum class Combine { replace, add, mul, max, min };

std::optional<Combine> parse_combine(const std::string& name) {
  constexpr std::string_view kNames[] = {"none", "add", "mul", "max", "min"};
  for (int i = 0; i < 5; ++i) {
    if (kNames[i] == name) return static_cast<Combine>(i);
  }
  return std::nullopt;
}

template <typename T>
TURNOUT_HD T combined(Combine combine, T old, T update) {
  const auto nan = [](T x) { return !(x == x); };
  switch (combine) {
    case Combine::replace:
      return update;
    case Combine::add:
      return static_cast<T>(old + update);
    case Combine::mul:
      return static_cast<T>(old * update);
    case Combine::max:
      return nan(old) || old > update ? old : update;
    case Combine::min:
      return nan(old) || old < update ? old : update;
  }
  return update;
}

/// Replacing goes by element size, arithmetic by type.
template <typename F>
void dispatch_combine(Combine combine, DType dtype, F&& f) {
  if (combine == Combine::replace) {
    dispatch_bytes(static_cast<int>(size_of(dtype)), f);
    return;
  }
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::f16:
      return f(std::type_identity<Half>{});
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    case DType::i32:
      return f(std::type_identity<std::int32_t>{});
    default:
      return f(std::type_identity<std::int64_t>{});
  }
}

Acceptance accept_scatter(const NodeInfo& info) {
  const std::optional<Combine> combine = parse_combine(info.attrs->text("reduction"));
  if (!combine) return Acceptance::no("reduction " + info.attrs->text("reduction"));
  const DType dtype = info.input(0).dtype;
  const bool arithmetic = is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64;
  if (*combine != Combine::replace && !arithmetic) return refuse_dtype(dtype);
  return accept_indices(info, 1);
}

/// Output 0 becomes input 0.
void copy_data(const Parallel& parallel, const CopyPlan& plan, const KernelArgs& args) {
  if (args.output<std::byte>(0) == args.input<std::byte>(0)) return;
  run_copy(parallel, plan, args.input<std::byte>(0), args.output<std::byte>(0));
}

CopyPlan plan_data(const NodeInfo& info) {
  const TensorSpec& data = info.input(0);
  return plan_gather_copy(data.shape, data.shape.strides(), 0, data.dtype);
}

/// Item: all updates at one place of the other dimensions than the axis.
template <typename T>
struct ScatterElements {
  T* y;
  const T* updates;
  Indices indices;
  Loops<2> loops;  // over the updates without the axis; operand 0: data, 1: updates
  Combine combine;
  std::int64_t length, step;      // of the axis in the updates
  std::int64_t dim, axis_stride;  // of the axis in the data
  TURNOUT_HD void operator()(std::int64_t item) const {
    for_rows(loops, item, [&](const RowPlace<2>& place) {
      for (std::int64_t i = 0; i < place.length; ++i) {
        T* to = y + place.offsets[0] + i * loops.row_stride(0);
        const std::int64_t from = place.offsets[1] + i * loops.row_stride(1);
        for (std::int64_t k = 0; k < length; ++k) {
          T& target = to[indices.get(from + k * step, dim) * axis_stride];
          target = combined(combine, target, updates[from + k * step]);
        }
      }
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_scatter_elements(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const auto axis = static_cast<std::size_t>(
      normalize_axis(info.attrs->integer("axis"), shape.rank(), "scatter_elements"));
  const Combine combine = *parse_combine(info.attrs->text("reduction"));
  const CopyPlan copy = plan_data(info);
  Shape box = info.input(1).shape;
  const std::int64_t length = box[static_cast<int>(axis)];
  box.set(static_cast<int>(axis), 1);
  const std::int64_t step = info.input(1).shape.strides()[axis];
  const std::int64_t axis_stride = shape.strides()[axis];
  const std::int64_t dim = shape[static_cast<int>(axis)];
  const Loops<2> loops = make_loops<2>(box, {shape.strides(), info.input(1).shape.strides()});
  const bool no_updates = info.input(1).elements() == 0;
  const DType dtype = info.input(0).dtype, index_dtype = info.input(1).dtype;
  const Parallel parallel(context.threads);
  const auto run = [=](const KernelArgs& args) {
    copy_data(parallel, copy, args);
    if (no_updates) return;
    check_fault(dim == 0 ? 1 : 0, "scatter_elements");
    int fault = 0;
    const Indices indices = indices_of(args, 1, index_dtype, fault);
    dispatch_combine(combine, dtype, [&]<typename T>(std::type_identity<T>) {
      const double item_ns = 2.0 * static_cast<double>(loops.rows * loops.length() * length) /
                             static_cast<double>(loops.items);
      parallel_for(parallel, loops.items, item_ns,
                   ScatterElements<T>{args.output<T>(0), args.input<T>(2), indices, loops, combine,
                                      length, step, dim, axis_stride});
    });
    check_fault(fault, "scatter_elements");
  };
  return make_kernel(context, run, "scatter_elements");
}

/// Item: kColumns elements of every slice.
template <typename T>
struct ScatterNd {
  static constexpr std::int64_t kColumns = 256;
  T* y;
  const T* updates;
  Indices indices;
  Combine combine;
  int depth;
  std::int64_t tuples, inner;
  std::int64_t dims[Shape::kMaxRank], strides[Shape::kMaxRank];
  TURNOUT_HD void operator()(std::int64_t item) const {
    const std::int64_t begin = item * kColumns;
    const std::int64_t end = begin + kColumns < inner ? begin + kColumns : inner;
    for (std::int64_t tuple = 0; tuple < tuples; ++tuple) {
      std::int64_t at = 0;
      for (int i = 0; i < depth; ++i) {
        at += indices.get(tuple * depth + i, dims[i]) * strides[i];
      }
      for (std::int64_t i = begin; i < end; ++i) {
        y[at + i] = combined(combine, y[at + i], updates[tuple * inner + i]);
      }
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_scatter_nd(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape shape = info.input(0).shape;
  const Shape& index_shape = info.input(1).shape;
  const Combine combine = *parse_combine(info.attrs->text("reduction"));
  const CopyPlan copy = plan_data(info);
  const auto depth = static_cast<int>(index_shape.dim(-1));
  const std::int64_t tuples = index_shape.elements(0, index_shape.rank() - 1);
  const std::int64_t inner = shape.elements(depth, shape.rank());
  const DType dtype = info.input(0).dtype, index_dtype = info.input(1).dtype;
  const Parallel parallel(context.threads);
  const auto run = [=](const KernelArgs& args) {
    copy_data(parallel, copy, args);
    if (tuples * inner == 0) return;
    check_fault(shape.elements() == 0 ? 1 : 0, "scatter_nd");
    int fault = 0;
    const Indices indices = indices_of(args, 1, index_dtype, fault);
    dispatch_combine(combine, dtype, [&]<typename T>(std::type_identity<T>) {
      ScatterNd<T> functor{
          args.output<T>(0), args.input<T>(2), indices, combine, depth, tuples, inner, {}, {}};
      for (int i = 0; i < depth; ++i) {
        functor.dims[i] = shape[i];
        functor.strides[i] = shape.strides()[static_cast<std::size_t>(i)];
      }
      constexpr std::int64_t kColumns = ScatterNd<T>::kColumns;
      parallel_for(parallel, (inner + kColumns - 1) / kColumns,
                   static_cast<double>(tuples) * kColumns * 0.5, functor);
    });
    check_fault(fault, "scatter_nd");
  };
  return make_kernel(context, run, "scatter_nd");
}

}  // namespace

void register_scatter_kernels(KernelRegistry& registry) {
  add_kernel(registry, "scatter_elements", accept_scatter, prepare_scatter_elements);
  add_kernel(registry, "scatter_nd", accept_scatter, prepare_scatter_nd);
}

}  // namespace turnout::kokkos
