#include "backends/kokkos/host/reduce.hpp"

#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

ReducePlan plan_reduce(const PrepareContext& context, Finish finish, bool may_split) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  std::vector<std::int64_t> axes;
  if (info.has_input(1)) axes = info.constant_integers(1);
  const bool all = axes.empty() && info.attrs->integer("noop_with_empty_axes") == 0;
  Shape kept = shape, reduced = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) (all ? kept : reduced).set(axis, 1);
  for (std::int64_t chosen : axes) {
    const int axis = normalize_axis(chosen, shape.rank(), info.op->name);
    reduced.set(axis, shape[axis]);
    kept.set(axis, 1);
  }
  ReducePlan plan;
  plan.kept = make_loops<1>(kept, {shape.strides()});
  plan.reduced = make_loops<1>(reduced, {shape.strides()});
  plan.outputs = kept.elements();
  plan.count = reduced.elements();
  plan.finish = finish;
  plan.dtype = info.input(0).dtype;
  plan.limits = integer_limits(plan.dtype);
  plan.columns = plan.kept.row_stride(0) == 1 && plan.kept.length() > 1;
  set_items(plan.reduced, 1024);  // so that there is something to split
  const std::int64_t outputs =
      plan.columns ? (plan.outputs + kReduceColumns - 1) / kReduceColumns : plan.outputs;
  const bool large = plan.outputs * plan.count > 32768;
  if (may_split && large && outputs < 2 * context.threads && context.threads > 1) {
    plan.splits = std::clamp<std::int64_t>(plan.reduced.items, 1, context.threads);
  }
  return plan;
}

namespace {

Acceptance accept_sum(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return dtype == DType::boolean ? refuse_dtype(dtype) : Acceptance::yes();
}

template <typename Op, Finish finish>
std::unique_ptr<PreparedKernel> prepare_sum(const PrepareContext& context) {
  return dispatch_wide(context.info.input(0).dtype, [&]<typename W>(std::type_identity<W>) {
    return prepare_reduce<Op, W>(context, finish);
  });
}

std::unique_ptr<PreparedKernel> prepare_log_sum_exp(const PrepareContext& context) {
  const bool wide = context.info.input(0).dtype == DType::f64;
  return wide ? prepare_reduce<SumExp, double>(context, Finish::log_shifted)
              : prepare_reduce<SumExp, float>(context, Finish::log_shifted);
}

template <typename Op>
std::unique_ptr<PreparedKernel> prepare_extreme(const PrepareContext& context) {
  return dispatch_wide(context.info.input(0).dtype, [&]<typename W>(std::type_identity<W>) {
    return prepare_reduce<Op, W>(context, Finish::none);
  });
}

}  // namespace

void register_reduce_kernels(KernelRegistry& registry) {
  add_kernel(registry, "reduce_sum", accept_sum, prepare_sum<Sum, Finish::none>);
  add_kernel(registry, "reduce_mean", accept_sum, prepare_sum<Sum, Finish::mean>);
  add_kernel(registry, "reduce_log_sum", accept_sum, prepare_sum<Sum, Finish::log>);
  add_kernel(registry, "reduce_l1", accept_sum, prepare_sum<SumAbs, Finish::none>);
  add_kernel(registry, "reduce_l2", accept_sum, prepare_sum<SumSquare, Finish::root>);
  add_kernel(registry, "reduce_sum_square", accept_sum, prepare_sum<SumSquare, Finish::none>);
  add_kernel(registry, "reduce_prod", accept_sum, prepare_sum<Product, Finish::none>);
  add_kernel(registry, "reduce_log_sum_exp", accept_floating, prepare_log_sum_exp);
  add_kernel(registry, "reduce_max", accept_any, prepare_extreme<Max>);
  add_kernel(registry, "reduce_min", accept_any, prepare_extreme<Min>);
}

}  // namespace turnout::kokkos
