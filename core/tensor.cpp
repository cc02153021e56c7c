#include "core/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace turnout {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

std::shared_ptr<Buffer> allocate_host(std::size_t bytes) {
  void* address = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow);
  if (address == nullptr) fail(ErrorCode::out_of_memory, "[host] no memory for {} bytes", bytes);
  return std::make_shared<Buffer>(address, bytes, nullptr,
                                  [](void* p) { ::operator delete(p, kAlignment); });
}

std::shared_ptr<Buffer> borrow_host(void* address, std::size_t bytes) {
  return std::make_shared<Buffer>(address, bytes, nullptr, nullptr);
}

Tensor::Tensor(TensorSpec spec, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes)
    : spec_(spec), buffer_(std::move(buffer)), offset_bytes_(offset_bytes) {
  if (buffer_ == nullptr || offset_bytes > buffer_->bytes() ||
      bytes() > buffer_->bytes() - offset_bytes) {
    fail(ErrorCode::invalid_argument, "[tensor] {} at offset {} doesn't fit a buffer of {} bytes",
         to_string(spec_), offset_bytes, buffer_ ? buffer_->bytes() : 0);
  }
}

Tensor Tensor::empty(const TensorSpec& spec) {
  return {spec, allocate_host(static_cast<std::size_t>(spec.bytes()))};
}

Tensor Tensor::zeros(const TensorSpec& spec) {
  Tensor tensor = empty(spec);
  std::memset(tensor.address(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.elements() != elements()) {
    fail(ErrorCode::invalid_argument, "[tensor] {} can't be seen as {}", to_string(spec_),
         to_string(shape));
  }
  return {{dtype(), shape}, buffer_, offset_bytes_};
}

void Tensor::check_access(DType wanted) const {
  if (!defined()) fail(ErrorCode::internal, "[tensor] access to an undefined tensor");
  if (device() != nullptr) {
    fail(ErrorCode::invalid_argument, "[tensor] {} is not in host memory", to_string(spec_));
  }
  if (wanted != dtype()) {
    fail(ErrorCode::invalid_argument, "[tensor] {} read as {}", to_string(spec_),
         to_string(wanted));
  }
}

void Tensor::assign(std::span<const std::byte> source) {
  if (source.size() != bytes()) {
    fail(ErrorCode::invalid_argument, "[tensor] {} bytes given for {}", source.size(),
         to_string(spec_));
  }
  if (!source.empty()) std::memcpy(address(), source.data(), source.size());
}

std::vector<std::int64_t> to_int64(const Tensor& tensor) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(tensor.elements()));
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      std::transform(tensor.values<const T>().begin(), tensor.values<const T>().end(),
                     result.begin(), [](T value) { return static_cast<std::int64_t>(value); });
    } else {
      fail(ErrorCode::invalid_argument, "[tensor] {} where integers are needed",
           to_string(tensor.spec()));
    }
  });
  return result;
}

std::vector<double> to_double(const Tensor& tensor) {
  std::vector<double> result(static_cast<std::size_t>(tensor.elements()));
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    const std::span<const T> values = tensor.values<const T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        result[i] = static_cast<double>(values[i]);
      } else {
        result[i] = static_cast<double>(static_cast<float>(values[i]));
      }
    }
  });
  return result;
}

}  // namespace turnout
