// Address space of emulated devices.
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

}  // namespace

void* allocate_pinned(std::size_t bytes) {
  return ::operator new(std::max<std::size_t>(bytes, 1), kPinnedAlignment, std::nothrow);
}

void free_pinned(void* address) { ::operator delete(address, kPinnedAlignment); }

std::size_t Device::reserve(std::size_t bytes) {
  for (std::size_t wanted = bytes;; wanted /= 2) {
    const std::size_t whole = round_up(wanted, kChunkBytes);
    std::byte* address = reserve_range(whole);
    std::byte* access = address == nullptr ? nullptr : reserve_range(whole);
    if (access != nullptr) {
      address_ = address;
      access_ = access;
      reserved_bytes_ = whole;
      const Lock lock(driver_->mutex);
      driver_->ranges.push_back({this, address, address + whole});
      return std::min(wanted, bytes);
    }
    if (address != nullptr) munmap(address, whole);
    if (wanted <= kChunkBytes) {
      fail(ErrorCode::out_of_memory, "{}: this process may reserve no addresses for the device",
           info_.name);
    }
  }
}

void Device::release() {
  if (reserved_bytes_ == 0) return;
  munmap(address_, reserved_bytes_);
  munmap(access_, reserved_bytes_);
}

bool Device::map(std::size_t offset, std::size_t bytes) {
  return mprotect(access_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}

void Device::unmap(std::size_t offset, std::size_t bytes) {
  std::byte* begin = access_ + offset;
  // A mapping made anew has no pages and, unlike madvise, no charge for them either.
  void* mapped =
      mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) {  // too many mappings: the pages go, the range stays readable
    madvise(begin, bytes, MADV_DONTNEED);
  }
}

void Device::forbid(std::size_t offset, std::size_t bytes) {
  std::memset(access_ + offset, std::to_integer<int>(kPoison), bytes);
  ASAN_POISON_MEMORY_REGION(access_ + offset, bytes);
}

void Device::permit([[maybe_unused]] std::size_t offset, [[maybe_unused]] std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(access_ + offset, bytes);
}

void Device::poison(std::size_t offset, std::size_t bytes) {
  const std::size_t head = std::min(bytes, kPoisonBytes);
  const std::size_t tail = std::min(bytes - head, kPoisonBytes);
  std::memset(access_ + offset, std::to_integer<int>(kPoison), head);
  std::memset(access_ + offset + bytes - tail, std::to_integer<int>(kPoison), tail);
}

}  // namespace turnout::gpu::vendor
