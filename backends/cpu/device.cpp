#include "backends/cpu/device.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>

#include "backends/cpu/threads.hpp"

namespace turnout::cpu {
namespace {

constexpr std::align_val_t kAlignment{256};

/// "model name" of /proc/cpuinfo, or its "vendor_id".
std::string cpuinfo_field(std::string_view key, std::string fallback) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      const auto start = line.find_first_not_of(" \t", colon + 1);
      if (start != std::string::npos) return line.substr(start);
    }
  }
  return fallback;
}

Figure physical_memory() {
  const auto pages = sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return {};
  return {static_cast<double>(pages) * static_cast<double>(page_bytes), Evidence::measured,
          "physical memory of this machine"};
}

}  // namespace

CpuDevice::CpuDevice() {
  info_.name = "cpu";
  info_.title = cpuinfo_field("model name", "unnamed processor");
  info_.vendor = cpuinfo_field("vendor_id", "");
  info_.is_host = true;
  info_.compute_units = available_processors();
  info_.threads = info_.compute_units;
  info_.memory_bytes = physical_memory();
}

void CpuDevice::count(std::size_t bytes) {
  const std::size_t now = bytes_.fetch_add(bytes) + bytes;
  std::size_t peak = peak_bytes_.load();
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
}

std::shared_ptr<Buffer> CpuDevice::allocate(std::size_t bytes, MemoryKind) {
  const double in_use = static_cast<double>(bytes_.load());
  const double left = info_.memory_bytes.value - in_use;
  void* address = nullptr;
  // Overcommitted memory would be granted here and end the process when it is touched.
  if (!info_.memory_bytes.known() || static_cast<double>(bytes) <= left) {
    address = ::operator new(bytes == 0 ? 1 : bytes, kAlignment, std::nothrow);
  }
  if (address == nullptr) {
    fail(ErrorCode::out_of_memory, "cpu: {} bytes asked for, {:.0f} of {:.0f} left", bytes,
         left > 0 ? left : 0, info_.memory_bytes.value);
  }
  count(bytes);
  return std::make_shared<Buffer>(address, bytes, nullptr, [this, bytes](void* released) {
    ::operator delete(released, kAlignment);
    bytes_.fetch_sub(bytes);
  });
}

std::unique_ptr<Stream> CpuDevice::make_stream() { return std::make_unique<HostStream>(*this); }

std::unique_ptr<Event> CpuDevice::make_event() { return std::make_unique<HostEvent>(); }

Device::MemoryUse CpuDevice::memory_use() const { return {bytes_.load(), peak_bytes_.load()}; }

void HostEvent::record_now() {
  seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void HostStream::require_host(const Device* device) const {
  if (device == nullptr || device->info().is_host) return;
  fail(ErrorCode::internal, "cpu: a copy of {} was given to the host's stream",
       device->info().name);
}

void HostStream::copy(void* to, const Device* to_device, const void* from,
                      const Device* from_device, std::size_t bytes) {
  require_host(to_device);
  require_host(from_device);
  if (bytes > 0) std::memmove(to, from, bytes);
}

void HostStream::fill(void* address, std::byte value, std::size_t bytes) {
  if (bytes > 0) std::memset(address, std::to_integer<int>(value), bytes);
}

void HostStream::record(Event& event) {
  auto* own = dynamic_cast<HostEvent*>(&event);
  if (own == nullptr) fail(ErrorCode::internal, "cpu: an event of another device was recorded");
  own->record_now();
}

}  // namespace turnout::cpu
