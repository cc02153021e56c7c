#pragma once

#include <atomic>
#include <string>

#include "core/device.hpp"
#include "core/kernel.hpp"

namespace turnout::cpu {

/// The machine's processors and main memory. Figures that need a measurement are left unprobed;
/// whoever measures them adds them to a copy of the info.
class CpuDevice final : public Device {
 public:
  CpuDevice();

  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  MemoryUse memory_use() const override;

 private:
  void count(std::size_t bytes);

  DeviceInfo info_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::size_t> peak_bytes_ = 0;
};

/// A time of the host's steady clock.
class HostEvent final : public Event {
 public:
  void synchronize() override {}
  double seconds() const override { return seconds_; }
  void record_now();

 private:
  double seconds_ = 0;
};

/// Works at once, on the calling thread: nothing is ever queued. Its kernels get a null device.
class HostStream final : public Stream {
 public:
  explicit HostStream(Device& device) : device_(&device) {}

  Device& device() const override { return *device_; }
  void launch(const PreparedKernel& kernel, const KernelArgs& args) override {
    kernel.run(args, *this);
  }
  void copy(void* to, const Device* to_device, const void* from, const Device* from_device,
            std::size_t bytes) override;
  void fill(void* address, std::byte value, std::size_t bytes) override;
  void record(Event& event) override;
  void wait(Event& event) override { event.synchronize(); }
  void synchronize() override {}

 private:
  void require_host(const Device* device) const;

  Device* device_;
};

}  // namespace turnout::cpu
