#pragma once

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/error.hpp"
#include "core/kernel.hpp"

// A device with memory of its own that isn't one: kernels of device mode, compiled for the host's
// threads, run on it. What it proves: their results, and that functors hold no address but of the
// device's memory (Addresses).
namespace turnout::test {

/// Live allocations of the stand-in.
class Addresses {
 public:
  void add(const void* address, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    live_[reinterpret_cast<std::uintptr_t>(address)] = bytes;
  }
  void remove(const void* address) {
    const std::scoped_lock lock(mutex_);
    live_.erase(reinterpret_cast<std::uintptr_t>(address));
  }
  std::size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [address, bytes] : live_) sum += bytes;
    return sum;
  }
  bool holds(std::uintptr_t address) const {
    const std::scoped_lock lock(mutex_);
    auto at = live_.upper_bound(address);
    return at != live_.begin() && address <= (--at)->first + at->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> live_;
};

/// Ranges of addresses that this process has mapped now.
class MappedRanges {
 public:
  MappedRanges() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const auto dash = line.find('-');
      ranges_[std::stoull(line.substr(0, dash), nullptr, 16)] =
          std::stoull(line.substr(dash + 1), nullptr, 16);
    }
  }
  bool hold(std::uintptr_t address) const {
    auto at = ranges_.upper_bound(address);
    return at != ranges_.begin() && address < (--at)->second;
  }

 private:
  std::map<std::uintptr_t, std::uintptr_t> ranges_;
};

class StandIn;

class StandInEvent final : public Event {
 public:
  void synchronize() override {}
  double seconds() const override { return 0; }
};

class StandInStream final : public Stream {
 public:
  explicit StandInStream(StandIn& device) : device_(device) {}
  ~StandInStream() override;
  Device& device() const override;
  void launch(const PreparedKernel& kernel, const KernelArgs& args) override {
    kernel.run(args, *this);
  }
  void copy(void* to, const Device*, const void* from, const Device*, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    std::memset(address, std::to_integer<int>(value), bytes);
  }
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override;
  void* native_handle() const override { return const_cast<char*>(&handle_); }

 private:
  StandIn& device_;
  char handle_ = 0;  // its address
};

class StandIn final : public Device {
 public:
  StandIn() {
    info_.name = "stand-in";
    info_.title = "the host's threads in the place of a device";
  }
  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind) override {
    constexpr std::align_val_t kAlignment{256};
    void* address = ::operator new(bytes == 0 ? 1 : bytes, kAlignment);
    std::memset(address, 0xff, bytes);
    addresses_.add(address, bytes);
    return std::make_shared<Buffer>(address, bytes, this, [this](void* released) {
      addresses_.remove(released);
      ::operator delete(released, kAlignment);
    });
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<StandInStream>(*this); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<StandInEvent>(); }
  MemoryUse memory_use() const override { return {addresses_.bytes(), 0}; }
  const Addresses& addresses() const { return addresses_; }

 private:
  DeviceInfo info_;
  Addresses addresses_;
};

inline Device& StandInStream::device() const { return device_; }

}  // namespace turnout::test
