#pragma once

#include <memory>
#include <span>

#include "core/tensor.hpp"
#include "ops/convert.hpp"

// Reference arithmetic sees floating elements of every type as double and all others as they are:
// so a reference is compiled once for the floating types.
namespace turnout {

/// Elements of `tensor`, broadcast to `shape`, in row-major order. W is the WideType of its type.
template <typename W>
struct WideValues {
  WideValues(const Tensor& tensor, const Shape& shape);
  explicit WideValues(const Tensor& tensor) : WideValues(tensor, tensor.shape()) {}

  const W& operator[](std::size_t i) const { return values[i]; }

  std::size_t size;
  std::unique_ptr<W[]> values;
};

/// Rounds `values` to the type of `tensor`, whose WideType is W.
template <typename W>
void store_wide(std::span<const W> values, Tensor& tensor);

/// Calls f(std::type_identity<W>{}) with the WideType of `dtype`.
template <typename F>
decltype(auto) dispatch_wide(DType dtype, F&& f) {
  if (is_floating(dtype)) return f(std::type_identity<double>{});
  return dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
    return f(std::type_identity<WideType<T>>{});
  });
}

}  // namespace turnout
