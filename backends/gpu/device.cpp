#include "backends/gpu/device.hpp"

#include "backends/gpu/event.hpp"
#include "backends/gpu/kernels.hpp"
#include "backends/gpu/stream.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

GpuDevice::GpuDevice(std::shared_ptr<vendor::Driver> driver, int index, DeviceInfo info)
    : info_(std::move(info)),
      driver_(std::move(driver)),
      native_(vendor::open_device(driver_, index, info_)) {
  vendor::make_current(native_);
  start_kernels(index);
  pool_ = vendor::make_pool(native_);
  memory_stream_ = vendor::make_stream(native_);
  origin_ = vendor::make_event(native_);
  vendor::record(memory_stream_, origin_);
}

GpuDevice::~GpuDevice() {
  vendor::make_current(native_);
  vendor::destroy_event(origin_);
  vendor::destroy_stream(memory_stream_);
  vendor::destroy_pool(pool_);
  vendor::close_device(native_);
}

void* GpuDevice::allocate_device(std::size_t bytes) {
  vendor::make_current(native_);
  vendor::check_lost(native_);
  const std::scoped_lock lock(mutex_);
  std::string why;
  void* address = nullptr;
  if (fail_allocation_ >= 0 && allocations_++ == fail_allocation_) {
    why = " (injected fault)";
  } else {
    address = vendor::allocate(pool_, memory_stream_, bytes, why);
    if (address == nullptr) {
      vendor::trim(pool_);
      address = vendor::allocate(pool_, memory_stream_, bytes, why);
    }
  }
  if (address != nullptr) return address;
  const auto [left, all] = vendor::memory_left(native_, pool_);
  fail(ErrorCode::out_of_memory, "{}: {} bytes asked for, {} of {} left{}", info_.name, bytes, left,
       all, why);
}

void GpuDevice::release_device(void* address, std::size_t bytes) {
  vendor::make_current(native_);
  const std::scoped_lock lock(mutex_);
  vendor::release(pool_, memory_stream_, address, bytes);
}

std::shared_ptr<Buffer> GpuDevice::allocate(std::size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::pinned_host) {
    void* address = vendor::allocate_pinned(bytes);
    if (address == nullptr) {
      fail(ErrorCode::out_of_memory, "{}: the host has no {} bytes of pinned memory", info_.name,
           bytes);
    }
    return std::make_shared<Buffer>(address, bytes, nullptr, vendor::free_pinned);
  }
  return std::make_shared<Buffer>(allocate_device(bytes), bytes, this,
                                  [this, bytes](void* address) { release_device(address, bytes); });
}

std::unique_ptr<Stream> GpuDevice::make_stream() { return std::make_unique<GpuStream>(*this); }

std::unique_ptr<Event> GpuDevice::make_event() { return std::make_unique<GpuEvent>(*this); }

Device::MemoryUse GpuDevice::memory_use() const { return vendor::memory_use(pool_); }

void GpuDevice::require_live(const void* address, std::size_t bytes, std::string_view what) const {
  if (vendor::is_live(pool_, address, bytes)) return;
  fail(ErrorCode::internal, "{}: {}: {} bytes at {} aren't inside one allocation of this device",
       info_.name, what, bytes, address);
}

void GpuDevice::require_host(const void* address, std::string_view what) const {
  if (!vendor::is_device_address(*driver_, address)) return;
  fail(ErrorCode::internal, "{}: {}: {} is said to be of the host, but is a device's address",
       info_.name, what, address);
}

bool GpuDevice::reaches(const GpuDevice& from) const {
  return shares_driver(from) && vendor::connect_peers(native_, from.native_);
}

void GpuDevice::set_faults(const Faults& faults) {
  const std::scoped_lock lock(mutex_);
  fail_allocation_ = faults.fail_allocation;
  allocations_ = 0;
  vendor::set_faults(native_, faults);
}

}  // namespace turnout::gpu
