#include "backends/gpu/device.hpp"

#include "backends/gpu/event.hpp"
#include "backends/gpu/stream.hpp"
#include "core/error.hpp"

namespace turnout::gpu {
namespace {

/// Calls f(begin, end) for the parts of `range` that aren't in `hole`.
template <typename F>
void for_parts_outside(Pool::Range range, Pool::Range hole, F f) {
  if (hole.empty()) return f(range.begin, range.end);
  if (range.begin < hole.begin) f(range.begin, std::min(range.end, hole.begin));
  if (hole.end < range.end) f(std::max(range.begin, hole.end), range.end);
}

}  // namespace

GpuDevice::GpuDevice(std::shared_ptr<vendor::Driver> driver, DeviceInfo info)
    : info_(std::move(info)), driver_(driver), native_(std::move(driver), info_) {
  native_.set_liveness_check(
      [this](const void* address, std::size_t bytes) { return is_live(address, bytes); });
}

GpuDevice::~GpuDevice() = default;

Pool& GpuDevice::pool() const {
  if (!pool_) {
    const auto wanted = static_cast<std::size_t>(info_.memory_bytes.value);
    pool_.emplace(native_.reserve(wanted), vendor::kChunkBytes);
  }
  return *pool_;
}

std::ptrdiff_t GpuDevice::access_offset() const {
  const std::scoped_lock lock(mutex_);
  pool();
  return native_.access_offset();
}

void GpuDevice::fail_out_of_memory(std::size_t bytes, std::string_view why) const {
  const std::size_t left = pool_->bytes() - pool_->bytes_in_use();
  fail(ErrorCode::out_of_memory, "{}: {} bytes asked for, {} of {} left{}", info_.name, bytes, left,
       pool_->bytes(), why);
}

void* GpuDevice::allocate_device(std::size_t bytes) {
  native_.check_lost();
  const std::scoped_lock lock(mutex_);
  Pool& pool = this->pool();
  if (faults_.fail_allocation >= 0 && allocations_++ == faults_.fail_allocation) {
    fail_out_of_memory(bytes, " (injected fault)");
  }
  const auto block = pool.allocate(bytes);
  if (!block) {
    const auto memory = static_cast<std::size_t>(info_.memory_bytes.value);
    if (pool.bytes() + Pool::kAlignment <= memory) {
      fail_out_of_memory(bytes, fmt::format(": this process may not reserve more addresses for the "
                                            "device's {} bytes",
                                            memory));
    }
    fail_out_of_memory(bytes,
                       fmt::format(", the largest free block has {}", pool.largest_free_bytes()));
  }
  const Pool::Range range{block->offset, block->offset + pool.taken_bytes(block->offset)};
  if (!block->map.empty() && !native_.map(block->map.begin, block->map.end - block->map.begin)) {
    pool.release(block->offset);
    fail_out_of_memory(bytes, ": the system gives this process no more memory");
  }
  const auto permit = [this](std::size_t begin, std::size_t end) {
    native_.permit(begin, end - begin);
  };
  const auto forbid = [this](std::size_t begin, std::size_t end) {
    native_.forbid(begin, end - begin);
  };
  for_parts_outside(range, block->map, permit);
  if (!block->map.empty()) for_parts_outside(block->map, range, forbid);
  native_.poison(range.begin, bytes);
  forbid(range.begin + bytes, range.end);
  return native_.address() + block->offset;
}

void GpuDevice::release_device(void* address, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto offset =
      static_cast<std::size_t>(static_cast<std::byte*>(address) - native_.address());
  const Pool::Range range{offset, offset + pool_->taken_bytes(offset)};
  const Pool::Range unmap = pool_->release(offset);
  // Nothing forbidden is left behind in what is unmapped: another block may be put there.
  native_.permit(range.begin + bytes, range.end - range.begin - bytes);
  for_parts_outside(range, unmap, [this](std::size_t begin, std::size_t end) {
    native_.forbid(begin, end - begin);
  });
  if (unmap.empty()) return;
  for_parts_outside(unmap, range, [this](std::size_t begin, std::size_t end) {
    native_.permit(begin, end - begin);
  });
  native_.unmap(unmap.begin, unmap.end - unmap.begin);
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

Device::MemoryUse GpuDevice::memory_use() const {
  const std::scoped_lock lock(mutex_);
  if (!pool_) return {};
  return {pool_->bytes_in_use(), pool_->peak_bytes()};
}

bool GpuDevice::is_live(const void* address, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(native_.address());
  return pool_ && at >= begin && at - begin <= pool_->bytes() && pool_->is_live(at - begin, bytes);
}

void GpuDevice::require_live(const void* address, std::size_t bytes, std::string_view what) const {
  if (is_live(address, bytes)) return;
  fail(ErrorCode::internal, "{}: {}: {} bytes at {} aren't inside one allocation of this device",
       info_.name, what, bytes, address);
}

void GpuDevice::require_host(const void* address, std::string_view what) const {
  if (!vendor::is_device_address(*driver_, address)) return;
  fail(ErrorCode::internal, "{}: {}: {} is said to be of the host, but is a device's address",
       info_.name, what, address);
}

void GpuDevice::set_faults(const Faults& faults) {
  const std::scoped_lock lock(mutex_);
  faults_ = faults;
  allocations_ = 0;
  native_.set_faults(faults);
}

}  // namespace turnout::gpu
