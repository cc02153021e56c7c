#pragma once

#include "backends/kokkos/elements.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/rules.hpp"

namespace turnout::kokkos {

/// Element `at` as a term of a product: A is float (for f32, f16, bf16), double, or uint64_t for
/// integers, whose low bits are right whatever their size and sign.
template <typename A>
TURNOUT_HD A load_term(const void* data, DType dtype, std::int64_t at) {
  if constexpr (std::is_same_v<A, std::uint64_t>) {
    if (element_bytes(dtype) == 8) return static_cast<const std::uint64_t*>(data)[at];
    return static_cast<std::uint64_t>(load_element<std::int64_t>(data, dtype, at));
  } else {
    return load_element<A>(data, dtype, at);
  }
}

/// Calls f(std::type_identity<A>{}) with the type of sums.
template <typename F>
decltype(auto) dispatch_term(DType dtype, F&& f) {
  if (!is_floating(dtype)) return f(std::type_identity<std::uint64_t>{});
  return dtype == DType::f64 ? f(std::type_identity<double>{}) : f(std::type_identity<float>{});
}

/// What follows a product in the same pass: y = activation(alpha * sum + bias + residual).
template <typename A>
struct ProductEnd {
  void* y = nullptr;
  const void* bias = nullptr;      ///< null: none
  const void* residual = nullptr;  ///< where y is, in a tensor of its own; null: none
  DType dtype = DType::f32;
  Activation activation = Activation::none;
  A scale = A(1), alpha = A(0), beta = A(0);

  TURNOUT_HD void put(std::int64_t at, std::int64_t bias_at, A sum) const {
    sum *= scale;
    if (bias != nullptr) sum += load_term<A>(bias, dtype, bias_at);
    if (residual != nullptr) sum += load_term<A>(residual, dtype, at);
    if constexpr (std::is_same_v<A, std::uint64_t>) {
      if (element_bytes(dtype) == 8) {
        static_cast<std::uint64_t*>(y)[at] = sum;
      } else {
        static_cast<std::uint32_t*>(y)[at] = static_cast<std::uint32_t>(sum);
      }
    } else {
      store_element<A>(y, dtype, at, activate(activation, sum, alpha, beta));
    }
  }
};

/// The end of a matmul or conv node, without addresses.
template <typename A>
ProductEnd<A> product_end(const NodeInfo& info) {
  const FusedActivation act = fused_activation(info);
  ProductEnd<A> end;
  end.dtype = info.input(0).dtype;
  end.activation = act.kind;
  end.alpha = static_cast<A>(act.alpha);
  end.beta = static_cast<A>(act.beta);
  return end;
}

/// The same with those of a launch.
template <typename A>
ProductEnd<A> with_operands(ProductEnd<A> end, const Launch& launch) {
  end.y = launch.output<std::byte>(0);
  end.bias = launch.input<std::byte>(2);
  end.residual = launch.input<std::byte>(3);
  return end;
}

}  // namespace turnout::kokkos
