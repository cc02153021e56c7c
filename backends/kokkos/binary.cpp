// Ops of two operands that are broadcast to each other: the functors of ops/functors_binary.hpp.

#include "backends/kokkos/elementwise.hpp"
#include "backends/kokkos/kernels.hpp"
#include "ops/functors.hpp"

namespace turnout::kokkos {

namespace {

template <typename Op, typename W>
struct BinaryLoop {
  using Y = std::conditional_t<is_binary_predicate<Op>, bool, W>;
  static constexpr bool kPredicate = is_binary_predicate<Op>;
  static constexpr int kFlops = Op::flops;
  Op op;
  TURNOUT_HD Y at(W x0, W x1) const { return static_cast<Y>(op(x0, x1)); }
  TURNOUT_HD void operator()(const W* a, bool a_scalar, const W* b, bool b_scalar, void* y,
                             std::int64_t n) const {
    binary_loop(a, a_scalar, b, b_scalar, static_cast<Y*>(y), n,
                [this](W x0, W x1) { return at(x0, x1); });
  }
};

/// pow takes an exponent of another type. Results that went through double saturate.
template <typename A, typename B>
struct PowLoop {
  static constexpr bool kPredicate = false;
  static constexpr int kFlops = Pow::flops;
  Pow op;
  std::int64_t low, high;
  TURNOUT_HD void operator()(const A* a, bool a_scalar, const B* b, bool b_scalar, void* y,
                             std::int64_t n) const {
    A* to = static_cast<A*>(y);
    if constexpr (std::is_floating_point_v<A>) {
      if (b_scalar && *b == B(2)) {
        for (std::int64_t i = 0; i < n; ++i) to[i] = a[a_scalar ? 0 : i] * a[a_scalar ? 0 : i];
        return;
      }
    }
    binary_loop(a, a_scalar, b, b_scalar, to, n, [this](A x0, B x1) { return at(x0, x1); });
  }
  TURNOUT_HD A at(A x0, B x1) const {
    A value = op(x0, x1);
    if constexpr (std::is_same_v<A, std::int64_t>) {
      if (std::is_floating_point_v<B> || x1 < B(0)) {
        value = value < low ? low : (value > high ? high : value);
      }
    }
    return value;
  }
};

/// Rows up to this length are worth being strung together.
constexpr std::int64_t kLongestPeriod = 64;

/// Whether an operand is the same dense row for every row of two-dimensional loops.
bool repeats(const Loops<2>& loops, int operand) {
  return loops.strides[operand][0] == 0 && loops.row_stride(operand) == 1;
}

bool is_periodic(const Loops<2>& loops) {
  const auto dense = [&](int operand) {
    return loops.strides[operand][0] == loops.length() && loops.row_stride(operand) == 1;
  };
  return (repeats(loops, 0) && dense(1)) || (repeats(loops, 1) && dense(0));
}

template <typename A, typename B>
std::unique_ptr<PreparedKernel> prepare_tiles(const PrepareContext& context, const Loops<2>& loops,
                                              const BinaryRow<A, B>& row, bool predicate,
                                              int flops) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.output(0).shape;
  const DType a_dtype = info.input(0).dtype, b_dtype = info.input(1).dtype;
  const double element_ns = element_ns_of(flops);
  const double item_ns = element_ns * static_cast<double>(shape.elements()) /
                         static_cast<double>(std::max<std::int64_t>(loops.items, 1));
  const std::int64_t period = loops.length(), elements = shape.elements();
  if (loops.rank == 2 && period <= kLongestPeriod && is_periodic(loops)) {
    using Tiles = PeriodicTiles<A, B, BinaryRow<A, B>>;
    const std::int64_t size = Tiles::item_elements(period);
    const bool a_repeats = repeats(loops, 0);
    const auto run = [=](const Launch& launch) {
      parallel_for(
          launch, (elements + size - 1) / size,
          element_ns * static_cast<double>(std::min(size, elements)),
          Tiles{launch.input<std::byte>(0), launch.input<std::byte>(1), launch.output<std::byte>(0),
                a_dtype, b_dtype, predicate, a_repeats, elements, period, row});
    };
    return make_kernel(context, run, "elementwise:periodic");
  }
  const auto run = [=](const Launch& launch) {
    parallel_for(launch, loops.items, item_ns,
                 BinaryTiles<A, B, BinaryRow<A, B>>{
                     launch.input<std::byte>(0), launch.input<std::byte>(1),
                     launch.output<std::byte>(0), a_dtype, b_dtype, predicate, loops, row});
  };
  const std::string path = loops.rank == 1 ? "row" : std::to_string(loops.rank) + "d";
  return make_kernel(context, run, "elementwise:" + path);
}

template <typename A, typename B, typename Row>
std::unique_ptr<PreparedKernel> prepare_row(const PrepareContext& context, const Row& row) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.output(0).shape;
  const Loops<2> loops = make_loops<2>(shape, {broadcast_strides(info.input(0).shape, shape),
                                               broadcast_strides(info.input(1).shape, shape)});
  if constexpr (kDevice) {
    const DType a_dtype = info.input(0).dtype, b_dtype = info.input(1).dtype;
    const std::int64_t elements = shape.elements();
    const auto run = [=](const Launch& launch) {
      parallel_for(
          launch, elements, 0,
          BinaryElement<A, B, Row>{launch.input<std::byte>(0), launch.input<std::byte>(1),
                                   launch.output<std::byte>(0), a_dtype, b_dtype, loops, row});
    };
    return make_kernel(context, run, "elementwise");
  } else {
    return prepare_tiles<A, B>(context, loops, BinaryRow<A, B>::of(row), Row::kPredicate,
                               Row::kFlops);
  }
}

template <typename Op, typename W>
constexpr bool takes_wide = std::is_floating_point_v<W>
                                ? (Op::types& kFloatingTypes) != 0
                                : (Op::types&(kIntegerTypes | kBooleanType)) != 0;

template <typename Op>
std::unique_ptr<PreparedKernel> prepare_binary(const PrepareContext& context) {
  const Op op = Op::make(*context.info.attrs);
  const DType dtype = context.info.input(0).dtype;
  return dispatch_wide(
      dtype, [&]<typename W>(std::type_identity<W>) -> std::unique_ptr<PreparedKernel> {
        if constexpr (takes_wide<Op, W>) {
          return prepare_row<W, W>(context, BinaryLoop<Op, W>{op});
        } else {
          fail(ErrorCode::internal, "[{}] has no kernel for {}", Op::name, to_string(dtype));
        }
      });
}

template <>
std::unique_ptr<PreparedKernel> prepare_binary<Pow>(const PrepareContext& context) {
  const DType dtype = context.info.input(0).dtype;
  const IntegerLimits limits = integer_limits(dtype);
  return dispatch_wide(dtype, [&]<typename A>(std::type_identity<A>) {
    return dispatch_wide(context.info.input(1).dtype, [&]<typename B>(std::type_identity<B>) {
      return prepare_row<A, B>(context, PowLoop<A, B>{Pow{}, limits.low, limits.high});
    });
  });
}

template <typename Op>
Acceptance accept_binary(const NodeInfo& info) {
  for (int i = 0; i < 2; ++i) {
    const DType dtype = info.input(i).dtype;
    if ((Op::types & type_mask(dtype)) == 0) return refuse_dtype(dtype);
  }
  return Acceptance::yes();
}

}  // namespace

void register_binary_kernels(KernelRegistry& registry) {
  for_each_type(BinaryOps{}, [&]<typename Op>(std::type_identity<Op>) {
    add_kernel(registry, std::string(Op::name), accept_binary<Op>, prepare_binary<Op>);
  });
}

}  // namespace turnout::kokkos
