#pragma once

#include <memory>
#include <vector>

#include "core/kernel.hpp"

namespace turnout::kokkos {

/// Numbers that a kernel needs besides its operands, known when it is prepared, where its loops can
/// read them: in the memory of the device in device mode, else in the host's. Cheap to copy.
class Constant {
 public:
  Constant() = default;
  /// A copy of `bytes` bytes of host memory. Blocks until it has been made.
  Constant(const PrepareContext& context, const void* data, std::size_t bytes);

  /// Null when empty.
  const void* address() const { return address_; }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(address_);
  }

 private:
  std::shared_ptr<Buffer> buffer_;
  const void* address_ = nullptr;
};

template <typename T>
Constant constant_of(const PrepareContext& context, const std::vector<T>& values) {
  return Constant(context, values.data(), values.size() * sizeof(T));
}

}  // namespace turnout::kokkos
