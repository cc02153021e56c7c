#pragma once

#include "backends/gpu/device.hpp"
#include "core/kernel.hpp"

namespace turnout::gpu {

/// Checks what is asked for, then queues it. What is wrong with the request (an address that isn't
/// where it is said to be, an operand of another device) is thrown at once and nothing is queued;
/// what goes wrong in the work is thrown by synchronize().
class GpuStream final : public Stream {
 public:
  explicit GpuStream(GpuDevice& device) : device_(device), native_(device.native()) {}

  Device& device() const override { return device_; }
  void launch(const PreparedKernel& kernel, const KernelArgs& args) override;
  void copy(void* to, const Device* to_device, const void* from, const Device* from_device,
            std::size_t bytes) override;
  void fill(void* address, std::byte value, std::size_t bytes) override;
  void record(Event& event) override;
  /// Events of other backends are waited for by the host, at once.
  void wait(Event& event) override;
  void synchronize() override { native_.synchronize(); }
  void* native_handle() const override { return native_.native_handle(); }

 private:
  bool check_place(const void* address, const Device* device, std::size_t bytes,
                   std::string_view what) const;
  void check_operand(const Operand& operand) const;

  GpuDevice& device_;
  vendor::Stream native_;
};

}  // namespace turnout::gpu
