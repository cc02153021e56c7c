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
  using Y = std::conditional_t<is_unary_predicate<Op>, bool, W>;
  Function op;
  TURNOUT_HD Y at(W x) const { return static_cast<Y>(op(x)); }
  TURNOUT_HD void operator()(const W* x, void* y, std::int64_t n) const {
    Y* to = static_cast<Y*>(y);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) to[i] = at(x[i]);
  }
};

/// shrink saturates, so that results of narrow integers have to be limited before they are stored.
struct ShrinkLoop {
  Shrink op;
  std::int64_t low, high;
  TURNOUT_HD std::int64_t at(std::int64_t x) const {
    const std::int64_t value = op(x);
    return value < low ? low : (value > high ? high : value);
  }
  TURNOUT_HD void operator()(const std::int64_t* x, void* y, std::int64_t n) const {
    auto* to = static_cast<std::int64_t*>(y);
    for (std::int64_t i = 0; i < n; ++i) to[i] = at(x[i]);
  }
};

template <typename W>
std::unique_ptr<PreparedKernel> prepare_tiles(const PrepareContext& context, const UnaryRow<W>& row,
                                              bool predicate, double element_ns) {
  const DType dtype = context.info.input(0).dtype;
  const std::int64_t elements = context.info.input(0).elements();
  const std::int64_t items = (elements + kItemElements - 1) / kItemElements;
  const double item_ns =
      element_ns * static_cast<double>(std::min<std::int64_t>(elements, kItemElements));
  const auto run = [=](const Launch& launch) {
    parallel_for(launch, items, item_ns,
                 UnaryTiles<W, UnaryRow<W>>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                                            dtype, predicate, elements, row});
  };
  return make_kernel(context, run, "elementwise");
}

template <typename Op, typename W, typename Row>
std::unique_ptr<PreparedKernel> prepare_row(const PrepareContext& context, const Row& row) {
  if constexpr (kDevice) {
    const DType dtype = context.info.input(0).dtype;
    const std::int64_t elements = context.info.input(0).elements();
    const auto run = [=](const Launch& launch) {
      parallel_for(launch, elements, 0,
                   UnaryElement<W, Row>{launch.input<std::byte>(0), launch.output<std::byte>(0),
                                        dtype, row});
    };
    return make_kernel(context, run, "elementwise");
  } else {
    constexpr bool fast = !std::is_same_v<FastOp<Op, W>, Op>;
    return prepare_tiles<W>(context, UnaryRow<W>::of(row), is_unary_predicate<Op>,
                            fast ? 0.3 : element_ns_of(Op::flops));
  }
}

template <typename Op, typename W>
std::unique_ptr<PreparedKernel> prepare_wide(const PrepareContext& context, const Op& op) {
  if constexpr (std::is_same_v<Op, Shrink> && std::is_same_v<W, std::int64_t>) {
    const auto [low, high] = integer_limits(context.info.input(0).dtype);
    return prepare_row<Op, W>(context, ShrinkLoop{op, low, high});
  } else if constexpr (std::is_same_v<Op, Gelu> && std::is_same_v<W, float>) {
    // One loop per form: a choice inside it would keep it from becoming vector code.
    return op.approximate ? prepare_row<Op, W>(context, UnaryLoop<Op, W, FastGeluTanh>{})
                          : prepare_row<Op, W>(context, UnaryLoop<Op, W, FastGelu>{});
  } else {
    return prepare_row<Op, W>(context, UnaryLoop<Op, W>{fast_op<Op, W>(op)});
  }
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
          return prepare_wide<Op, W>(context, op);
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
