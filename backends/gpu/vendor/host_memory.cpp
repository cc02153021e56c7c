// Address space of emulated devices, and the pool that divides it.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/gpu/vendor/host_driver.hpp"
#include "core/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#endif

namespace turnout::gpu::vendor {
namespace {

constexpr std::align_val_t kPinnedAlignment{256};

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Inaccessible address space that starts at a whole chunk; null when refused.
std::byte* reserve_range(std::size_t bytes) {
  const std::size_t with_slack = bytes + kChunkBytes;
  void* mapped =
      mmap(nullptr, with_slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t skip = round_up(reinterpret_cast<std::uintptr_t>(begin), kChunkBytes) -
                           reinterpret_cast<std::uintptr_t>(begin);
  if (skip > 0) munmap(begin, skip);
  if (skip < kChunkBytes) munmap(begin + skip + bytes, kChunkBytes - skip);
  return begin + skip;
}

/// Calls f(begin, end) for the parts of `range` that aren't in `hole`.
template <typename F>
void for_parts_outside(Pool::Range range, Pool::Range hole, F f) {
  if (hole.empty()) return f(range.begin, range.end);
  if (range.begin < hole.begin) f(range.begin, std::min(range.end, hole.begin));
  if (hole.end < range.end) f(std::max(range.begin, hole.end), range.end);
}

}  // namespace

// ---- The vendor's names ------------------------------------------------------------------------

void* allocate_pinned(std::size_t bytes) {
  return ::operator new(std::max<std::size_t>(bytes, 1), kPinnedAlignment, std::nothrow);
}

void free_pinned(void* address) { ::operator delete(address, kPinnedAlignment); }

PoolHandle make_pool(const DeviceHandle& device) { return device; }
void destroy_pool(const PoolHandle&) {}

void* allocate(const PoolHandle& pool, const StreamHandle&, std::size_t bytes, std::string& why) {
  return pool->allocate(bytes, why);
}

void release(const PoolHandle& pool, const StreamHandle&, void* address, std::size_t bytes) {
  pool->release(address, bytes);
}

// Nothing is kept; but a fault may say that something is.
void trim(const PoolHandle& pool) {
  const Lock lock(pool->driver->mutex);
  pool->faults.refuse_until_trim = false;
}

Device::MemoryUse memory_use(const PoolHandle& pool) {
  const std::scoped_lock lock(pool->memory_mutex);
  if (!pool->pool) return {};
  return {pool->pool->bytes_in_use(), pool->pool->peak_bytes()};
}

std::pair<std::size_t, std::size_t> memory_left(const DeviceHandle& device, const PoolHandle&) {
  const std::scoped_lock lock(device->memory_mutex);
  const Pool& pool = device->reserve();
  return {pool.bytes() - pool.bytes_in_use(), pool.bytes()};
}

std::ptrdiff_t access_offset(const DeviceHandle& device) {
  const std::scoped_lock lock(device->memory_mutex);
  device->reserve();
  return device->access - device->address;
}

bool is_live(const PoolHandle& pool, const void* address, std::size_t bytes) {
  return pool->is_live(address, bytes);
}

bool is_device_address(Driver& driver, const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const Lock lock(driver.mutex);
  return std::any_of(driver.ranges.begin(), driver.ranges.end(), [at](const AddressRange& range) {
    return at >= range.begin && at < range.end;
  });
}

// ---- EmulatedDevice ----------------------------------------------------------------------------

EmulatedDevice::~EmulatedDevice() {
  const Lock lock(driver->mutex);
  std::erase_if(driver->ranges, [this](const AddressRange& range) { return range.owner == this; });
  if (reserved_bytes == 0) return;
  munmap(address, reserved_bytes);
  munmap(access, reserved_bytes);
}

Pool& EmulatedDevice::reserve() {
  if (!pool) {
    const auto wanted = static_cast<std::size_t>(info.memory_bytes.value);
    pool.emplace(reserve_addresses(wanted), kChunkBytes);
  }
  return *pool;
}

std::size_t EmulatedDevice::reserve_addresses(std::size_t bytes) {
  for (std::size_t wanted = bytes;; wanted /= 2) {
    const std::size_t whole = round_up(wanted, kChunkBytes);
    std::byte* begin = reserve_range(whole);
    std::byte* second = begin == nullptr ? nullptr : reserve_range(whole);
    if (second != nullptr) {
      address = begin;
      access = second;
      reserved_bytes = whole;
      const Lock lock(driver->mutex);
      driver->ranges.push_back({this, begin, begin + whole});
      return std::min(wanted, bytes);
    }
    if (begin != nullptr) munmap(begin, whole);
    if (wanted <= kChunkBytes) {
      fail(ErrorCode::out_of_memory, "{}: this process may reserve no addresses for the device",
           info.name);
    }
  }
}

void* EmulatedDevice::allocate(std::size_t bytes, std::string& why) {
  const std::scoped_lock lock(memory_mutex);
  {
    const Lock faults_lock(driver->mutex);
    if (faults.refuse_until_trim) {
      why = " (injected fault: caches hold the rest)";
      return nullptr;
    }
  }
  Pool& blocks = reserve();
  const auto block = blocks.allocate(bytes);
  if (!block) {
    const auto memory = static_cast<std::size_t>(info.memory_bytes.value);
    why =
        blocks.bytes() + Pool::kAlignment <= memory
            ? fmt::format(": this process may not reserve more addresses for the device's {} bytes",
                          memory)
            : fmt::format(", the largest free block has {}", blocks.largest_free_bytes());
    return nullptr;
  }
  const Pool::Range range{block->offset, block->offset + blocks.taken_bytes(block->offset)};
  if (!block->map.empty() && !map(block->map.begin, block->map.end - block->map.begin)) {
    blocks.release(block->offset);
    why = ": the system gives this process no more memory";
    return nullptr;
  }
  for_parts_outside(range, block->map, [this](auto begin, auto end) { permit(begin, end); });
  if (!block->map.empty()) {
    for_parts_outside(block->map, range, [this](auto begin, auto end) { forbid(begin, end); });
  }
  poison(range.begin, bytes);
  forbid(range.begin + bytes, range.end);
  return address + block->offset;
}

void EmulatedDevice::release(void* block, std::size_t bytes) {
  const std::scoped_lock lock(memory_mutex);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(block) - address);
  const Pool::Range range{offset, offset + pool->taken_bytes(offset)};
  const Pool::Range holes = pool->release(offset);
  // Nothing forbidden is left behind in what is unmapped: another block may be put there.
  permit(range.begin + bytes, range.end);
  for_parts_outside(range, holes, [this](auto begin, auto end) { forbid(begin, end); });
  if (holes.empty()) return;
  for_parts_outside(holes, range, [this](auto begin, auto end) { permit(begin, end); });
  unmap(holes.begin, holes.end - holes.begin);
}

bool EmulatedDevice::is_live(const void* at, std::size_t bytes) const {
  const std::scoped_lock lock(memory_mutex);
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return pool && wanted >= begin && wanted - begin <= pool->bytes() &&
         pool->is_live(wanted - begin, bytes);
}

bool EmulatedDevice::map(std::size_t offset, std::size_t bytes) {
  return mprotect(access + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}

void EmulatedDevice::unmap(std::size_t offset, std::size_t bytes) {
  std::byte* begin = access + offset;
  // A mapping made anew has no pages and, unlike madvise, no charge for them either.
  void* mapped =
      mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) {  // too many mappings: the pages go, the range stays readable
    madvise(begin, bytes, MADV_DONTNEED);
  }
}

void EmulatedDevice::forbid(std::size_t begin, std::size_t end) {
  std::memset(access + begin, std::to_integer<int>(kPoison), end - begin);
  ASAN_POISON_MEMORY_REGION(access + begin, end - begin);
}

void EmulatedDevice::permit([[maybe_unused]] std::size_t begin, [[maybe_unused]] std::size_t end) {
  ASAN_UNPOISON_MEMORY_REGION(access + begin, end - begin);
}

void EmulatedDevice::poison(std::size_t offset, std::size_t bytes) {
  const std::size_t head = std::min(bytes, kPoisonBytes);
  const std::size_t tail = std::min(bytes - head, kPoisonBytes);
  std::memset(access + offset, std::to_integer<int>(kPoison), head);
  std::memset(access + offset + bytes - tail, std::to_integer<int>(kPoison), tail);
}

}  // namespace turnout::gpu::vendor
