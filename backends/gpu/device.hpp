#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backends/gpu/faults.hpp"
#include "backends/gpu/vendor/vendor.hpp"
#include "core/device.hpp"

namespace turnout::gpu {

/// A device with memory of its own, of whichever vendor this build is for.
///
/// Memory comes from the vendor's stream-ordered pool. When it is exhausted, what the pool keeps is
/// given back and the request made once more; only then is it an error.
class GpuDevice final : public Device {
 public:
  /// `index`: among the devices the driver found; emulated ones are opened by their figures alone.
  GpuDevice(std::shared_ptr<vendor::Driver> driver, int index, DeviceInfo info);
  ~GpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  MemoryUse memory_use() const override;
  std::ptrdiff_t access_offset() const override { return vendor::access_offset(native_); }

  /// Errors unless [address, address + bytes) lies inside one allocation of this device. Real
  /// devices aren't asked.
  void require_live(const void* address, std::size_t bytes, std::string_view what) const;
  /// Errors if the address belongs to some device.
  void require_host(const void* address, std::string_view what) const;
  /// True if streams of this device may read `from`'s memory without the host.
  bool reaches(const GpuDevice& from) const;

  /// For tests: faults that happen from now on. Emulated devices only.
  void set_faults(const Faults& faults);
  /// How often the host has waited for this device: by streams and by events.
  std::int64_t synchronize_count() const { return synchronizations_; }

  const vendor::DeviceHandle& native() const { return native_; }
  const vendor::EventHandle& origin() const { return origin_; }
  /// Events of devices that do can be waited for by their streams.
  bool shares_driver(const GpuDevice& other) const { return driver_ == other.driver_; }
  void count_synchronize() { ++synchronizations_; }

 private:
  void* allocate_device(std::size_t bytes);
  void release_device(void* address, std::size_t bytes);

  DeviceInfo info_;
  std::shared_ptr<vendor::Driver> driver_;
  vendor::DeviceHandle native_;
  vendor::PoolHandle pool_;
  vendor::StreamHandle memory_stream_;  // allocations and releases are in its order
  vendor::EventHandle origin_;
  std::atomic<std::int64_t> synchronizations_ = 0;
  std::mutex mutex_;  // guards the members below, and the memory stream
  std::int64_t fail_allocation_ = -1;
  std::int64_t allocations_ = 0;
};

}  // namespace turnout::gpu
