#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/shape.hpp"

namespace turnout {

class Device;

/// Owned bytes on a device; freed with the last reference. Fixed in size and place.
/// `device()` is null for host memory (pinned or not); only then may `address()` be read through.
class Buffer {
 public:
  using Release = std::function<void(void*)>;
  Buffer(void* address, std::size_t bytes, Device* device, Release release)
      : address_(address), bytes_(bytes), device_(device), release_(std::move(release)) {}
  ~Buffer() {
    if (release_) release_(address_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  Device* device() const { return device_; }

 private:
  void* address_;
  std::size_t bytes_;
  Device* device_;
  Release release_;
};

/// 64-byte aligned host memory, not initialised. Error out_of_memory with the size asked for.
std::shared_ptr<Buffer> allocate_host(std::size_t bytes);
/// Host memory owned by someone else, who keeps it alive as long as the Buffer.
std::shared_ptr<Buffer> borrow_host(void* address, std::size_t bytes);

/// A spec plus shared bytes: dense, row-major. Copies share the bytes.
class Tensor {
 public:
  Tensor() = default;
  Tensor(TensorSpec spec, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes = 0);
  /// New host memory, not initialised.
  static Tensor empty(const TensorSpec& spec);
  static Tensor zeros(const TensorSpec& spec);
  template <typename T>
  static Tensor of(const Shape& shape, std::span<const T> values) {
    Tensor tensor = empty({dtype_of<T>, shape});
    tensor.assign(std::as_bytes(values));
    return tensor;
  }
  template <typename T>
  static Tensor of(const Shape& shape, const std::vector<T>& values) {
    return of(shape, std::span<const T>(values));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return of({}, std::span<const T>(&value, 1));
  }

  bool defined() const { return buffer_ != nullptr; }
  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  std::int64_t elements() const { return spec_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(spec_.bytes()); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  std::size_t offset_bytes() const { return offset_bytes_; }
  Device* device() const { return buffer_ ? buffer_->device() : nullptr; }

  /// First byte, as an address of its device.
  void* address() const { return static_cast<std::byte*>(buffer_->address()) + offset_bytes_; }
  /// Host elements. Error if the tensor isn't on the host or holds another type.
  template <typename T>
  T* data() const {
    check_access(dtype_of<T>);
    return static_cast<T*>(address());
  }
  template <typename T>
  std::span<T> values() const {
    return {data<T>(), static_cast<std::size_t>(elements())};
  }
  /// The same bytes under another shape with as many elements.
  Tensor reshaped(const Shape& shape) const;

 private:
  void check_access(DType wanted) const;
  void assign(std::span<const std::byte> bytes);

  TensorSpec spec_;
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_bytes_ = 0;
};

/// Elements of a host integer tensor (any integer dtype or boolean) as int64.
std::vector<std::int64_t> to_int64(const Tensor& tensor);
/// Elements of a host tensor of any dtype as double.
std::vector<double> to_double(const Tensor& tensor);

}  // namespace turnout
