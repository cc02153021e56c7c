// Ops of one operand: the functors of ops/functors_unary.hpp.

#include <limits>

#include "backends/kokkos/elementwise.hpp"
#include "backends/kokkos/fast_unary.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/functors.hpp"

namespace turnout::kokkos {

namespace {

template <typename Op, typename W, typename Function = FastOp<Op, W>>
struct UnaryLoop {
  Function op;
  TURNOUT_HD void operator()(const W* x, void* y, std::int64_t n) const {
    using Y = std::conditional_t<is_unary_predicate<Op>, bool, W>;
    Y* to = static_cast<Y*>(y);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Y>(op(x[i]));
  }
};

/// shrink saturates, so that results of narrow integers have to be limited before they are stored.
struct ShrinkLoop {
  Shrink op;
  std::int64_t low, high;
  TURNOUT_HD void operator()(const std::int64_t* x, void* y, std::int64_t n) const {
    auto* to = static_cast<std::int64_t*>(y);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t value = op(x[i]);
      to[i] = value < low ? low : (value > high ? high : value);
    }
  }
};

template <typename Op, typename W>
UnaryRow<W> make_row(const Op& op, DType dtype) {
  if constexpr (std::is_same_v<Op, Shrink> && std::is_same_v<W, std::int64_t>) {
    const auto [low, high] = integer_limits(dtype);
    return UnaryRow<W>::of(ShrinkLoop{op, low, high});
  } else if constexpr (std::is_same_v<Op, Gelu> && std::is_same_v<W, float>) {
    // One loop per form: a choice inside it would keep it from becoming vector code.
    return op.approximate ? UnaryRow<W>::of(UnaryLoop<Op, W, FastGeluTanh>{})
                          : UnaryRow<W>::of(UnaryLoop<Op, W, FastGelu>{});
  } else {
    return UnaryRow<W>::of(UnaryLoop<Op, W>{fast_op<Op, W>(op)});
  }
}

template <typename W>
std::unique_ptr<PreparedKernel> prepare_tiles(const PrepareContext& context, const UnaryRow<W>& row,
                                              bool predicate, double element_ns) {
  const DType dtype = context.info.input(0).dtype;
  const std::int64_t elements = context.info.input(0).elements();
  const std::int64_t items = (elements + kItemElements - 1) / kItemElements;
  const double item_ns =
      element_ns * static_cast<double>(std::min<std::int64_t>(elements, kItemElements));
  const auto run = [=, parallel = Parallel(context.threads)](const KernelArgs& args) {
    parallel_for(parallel, items, item_ns,
                 UnaryTiles<W, UnaryRow<W>>{args.input<std::byte>(0), args.output<std::byte>(0),
                                            dtype, predicate, elements, row});
  };
  return make_kernel(context, run, "elementwise");
}

/// Whether Op has elements of the wide type W.
template <typename Op, typename W>
constexpr bool takes_wide = std::is_floating_point_v<W>
                                ? (Op::types& kFloatingTypes) != 0
                                : (Op::types&(kIntegerTypes | kBooleanType)) != 0;

template <typename Op>
std::unique_ptr<PreparedKernel> prepare_unary(const PrepareContext& context) {
  const Op op = Op::make(*context.info.attrs);
  const DType dtype = context.info.input(0).dtype;
  return dispatch_wide(
      dtype, [&]<typename W>(std::type_identity<W>) -> std::unique_ptr<PreparedKernel> {
        if constexpr (takes_wide<Op, W>) {
          constexpr bool fast = !std::is_same_v<FastOp<Op, W>, Op>;
          return prepare_tiles<W>(context, make_row<Op, W>(op, dtype), is_unary_predicate<Op>,
                                  fast ? 0.3 : element_ns_of(Op::flops));
        } else {
          fail(ErrorCode::internal, "[{}] has no kernel for {}", Op::name, to_string(dtype));
        }
      });
}

template <typename Op>
Acceptance accept_unary(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return (Op::types & type_mask(dtype)) != 0 ? Acceptance::yes() : refuse_dtype(dtype);
}

}  // namespace

void register_unary_kernels(KernelRegistry& registry) {
  for_each_type(UnaryOps{}, [&]<typename Op>(std::type_identity<Op>) {
    add_kernel(registry, std::string(Op::name), accept_unary<Op>, prepare_unary<Op>);
  });
}

}  // namespace turnout::kokkos
