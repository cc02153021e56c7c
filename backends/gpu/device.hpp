#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "backends/gpu/faults.hpp"
#include "backends/gpu/pool.hpp"
#include "backends/gpu/vendor/vendor.hpp"
#include "core/device.hpp"

namespace turnout::gpu {

/// A device with memory of its own. Memory comes from a pool over one reserved range of addresses,
/// as large as the device's memory; it is reserved when first needed, and mapped chunk by chunk.
class GpuDevice final : public Device {
 public:
  GpuDevice(std::shared_ptr<vendor::Driver> driver, DeviceInfo info);
  ~GpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  MemoryUse memory_use() const override;
  std::ptrdiff_t access_offset() const override;

  /// Errors unless [address, address + bytes) lies inside one allocation of this device.
  void require_live(const void* address, std::size_t bytes, std::string_view what) const;
  /// Errors if the address belongs to some device.
  void require_host(const void* address, std::string_view what) const;

  /// For tests: faults that happen from now on. Emulated devices only.
  void set_faults(const Faults& faults);
  vendor::Device& native() { return native_; }
  /// Events of devices that do can be waited for by their streams.
  bool shares_driver(const GpuDevice& other) const { return driver_ == other.driver_; }

 private:
  Pool& pool() const;
  bool is_live(const void* address, std::size_t bytes) const;
  void* allocate_device(std::size_t bytes);
  void release_device(void* address, std::size_t bytes);
  [[noreturn]] void fail_out_of_memory(std::size_t bytes, std::string_view why) const;

  DeviceInfo info_;
  std::shared_ptr<vendor::Driver> driver_;
  mutable std::mutex mutex_;  // guards the members below
  mutable vendor::Device native_;
  mutable std::optional<Pool> pool_;  // once addresses are reserved
  Faults faults_;
  std::int64_t allocations_ = 0;
};

}  // namespace turnout::gpu
