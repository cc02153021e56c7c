#include "ops/wide.hpp"

#include "ops/support.hpp"

namespace turnout {

template <typename W>
WideValues<W>::WideValues(const Tensor& tensor, const Shape& shape)
    : size(static_cast<std::size_t>(shape.elements())), values(std::make_unique<W[]>(size)) {
  const Index steps = broadcast_steps(tensor.shape(), shape);
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<WideType<T>, W>) {
      const T* data = tensor.data<const T>();
      for_each_index(shape, [&](const Index& index, std::int64_t i) {
        values[static_cast<std::size_t>(i)] = convert<W>(data[offset_of(index, steps)]);
      });
    }
  });
}

template <typename W>
void store_wide(std::span<const W> values, Tensor& tensor) {
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<WideType<T>, W>) {
      T* data = tensor.data<T>();
      for (std::size_t i = 0; i < values.size(); ++i) data[i] = convert<T>(values[i]);
    }
  });
}

#define TURNOUT_WIDE(W)          \
  template struct WideValues<W>; \
  template void store_wide<W>(std::span<const W>, Tensor&);
TURNOUT_WIDE(double)
TURNOUT_WIDE(bool)
TURNOUT_WIDE(std::int8_t)
TURNOUT_WIDE(std::uint8_t)
TURNOUT_WIDE(std::int16_t)
TURNOUT_WIDE(std::uint16_t)
TURNOUT_WIDE(std::int32_t)
TURNOUT_WIDE(std::uint32_t)
TURNOUT_WIDE(std::int64_t)
TURNOUT_WIDE(std::uint64_t)
#undef TURNOUT_WIDE

}  // namespace turnout
