#include "backends/kokkos/scatter.hpp"

#include "backends/kokkos/kernels.hpp"
#if TURNOUT_KOKKOS_DEVICE
#include "backends/kokkos/device/scatter_replace.hpp"
#endif

namespace turnout::kokkos {

ScatterElementsPlan plan_scatter_elements(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const Strides strides = info.input(1).shape.strides();
  const int axis = normalize_axis(info.attrs->integer("axis"), shape.rank(), "scatter_elements");
  const auto at = static_cast<std::size_t>(axis);
  Shape box = info.input(1).shape;
  ScatterElementsPlan plan;
  plan.combine = *parse_combine(info.attrs->text("reduction"));
  plan.length = box[axis];
  plan.step = strides[at];
  plan.dim = shape[axis];
  plan.axis_stride = shape.strides()[at];
  box.set(axis, 1);
  plan.loops = make_loops<2>(box, {shape.strides(), strides});
  return plan;
}

ScatterNdPlan plan_scatter_nd(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const Shape& index_shape = info.input(1).shape;
  ScatterNdPlan plan{};
  plan.combine = *parse_combine(info.attrs->text("reduction"));
  plan.depth = static_cast<int>(index_shape.dim(-1));
  plan.tuples = index_shape.elements(0, index_shape.rank() - 1);
  plan.inner = shape.elements(plan.depth, shape.rank());
  for (int i = 0; i < plan.depth; ++i) {
    plan.dims[i] = shape[i];
    plan.strides[i] = shape.strides()[static_cast<std::size_t>(i)];
  }
  return plan;
}

namespace {

// Work of a launch after the data was copied, in order.
template <typename T>
void update_in_order(const Launch& launch, const Indices& indices,
                     const ScatterElementsPlan& plan) {
  const Loops<2>& loops = plan.loops;
  const double item_ns = 2.0 * static_cast<double>(loops.rows * loops.length() * plan.length) /
                         static_cast<double>(loops.items);
  parallel_for(launch, loops.items, item_ns,
               ScatterElements<T>{launch.output<T>(0), launch.input<T>(2), indices, plan});
}
template <typename T>
void update_in_order(const Launch& launch, const Indices& indices, const ScatterNdPlan& plan) {
  constexpr std::int64_t kColumns = ScatterNd<T>::kColumns;
  parallel_for(launch, (plan.inner + kColumns - 1) / kColumns,
               static_cast<double>(plan.tuples) * kColumns * 0.5,
               ScatterNd<T>{launch.output<T>(0), launch.input<T>(2), indices, plan});
}

template <typename Plan>
void update(const Launch& launch, const Indices& indices, const Plan& plan, DType dtype,
            std::int64_t elements) {
#if TURNOUT_KOKKOS_DEVICE
  if (plan.combine == Combine::replace) {
    dispatch_bytes(static_cast<int>(size_of(dtype)), [&]<typename T>(std::type_identity<T>) {
      replace_by_last<T>(launch, indices, plan, elements);
    });
    return;
  }
#endif
  (void)elements;
  dispatch_combine(plan.combine, dtype, [&]<typename T>(std::type_identity<T>) {
    update_in_order<T>(launch, indices, plan);
  });
}

template <typename Plan>
std::unique_ptr<PreparedKernel> prepare_scatter(const PrepareContext& context, const Plan& plan,
                                                IndexedOp op) {
  const NodeInfo& info = context.info;
  const CopyPlan copy = plan_data(info);
  const bool no_updates = info.input(2).elements() == 0;
  const DType dtype = info.input(0).dtype, index_dtype = info.input(1).dtype;
  const std::int64_t elements = info.input(0).elements();
  const auto run = [=](const Launch& launch) {
    copy_data(launch, copy);
    if (no_updates) return;
    fail_if(elements == 0, op);
    update(launch, indices_of(launch, 1, index_dtype, op), plan, dtype, elements);
    check_indices(launch);
  };
  std::size_t workspace_bytes = 0;
#if TURNOUT_KOKKOS_DEVICE
  if (plan.combine == Combine::replace) workspace_bytes = replace_workspace_bytes(plan, elements);
#endif
  return make_kernel(context, run, info.op->name, workspace_bytes);
}

}  // namespace

void register_scatter_kernels(KernelRegistry& registry) {
  add_kernel(registry, "scatter_elements", accept_scatter, [](const PrepareContext& context) {
    return prepare_scatter(context, plan_scatter_elements(context.info),
                           IndexedOp::scatter_elements);
  });
  add_kernel(registry, "scatter_nd", accept_scatter, [](const PrepareContext& context) {
    return prepare_scatter(context, plan_scatter_nd(context.info), IndexedOp::scatter_nd);
  });
}

}  // namespace turnout::kokkos
