#pragma once

#include "backends/gpu/device.hpp"
#include "core/kernel.hpp"

namespace turnout::gpu {

/// Work recorded by GpuStream::begin_capture(), as the vendor's graph.
class GpuGraph final : public CapturedWork {
 public:
  explicit GpuGraph(vendor::GraphHandle native) : native_(std::move(native)) {}
  ~GpuGraph() override { vendor::destroy_graph(native_); }

 private:
  friend class GpuStream;
  vendor::GraphHandle native_;
};

/// Checks what is asked for, then queues it. What is wrong with the request (an address that isn't
/// where it is said to be, an operand of another device) is thrown at once and nothing is queued;
/// what goes wrong in the work is thrown by synchronize().
class GpuStream final : public Stream {
 public:
  explicit GpuStream(GpuDevice& device);
  ~GpuStream() override;

  Device& device() const override { return device_; }
  void launch(const PreparedKernel& kernel, const KernelArgs& args) override;
  /// Also from and to a device that this one reaches directly.
  void copy(void* to, const Device* to_device, const void* from, const Device* from_device,
            std::size_t bytes) override;
  void fill(void* address, std::byte value, std::size_t bytes) override;
  void record(Event& event) override;
  /// Events of other backends are waited for by the host, at once.
  void wait(Event& event) override;
  void synchronize() override;
  void* native_handle() const override { return vendor::native_handle(native_); }

  bool can_capture() const override { return true; }
  void begin_capture() override;
  std::unique_ptr<CapturedWork> end_capture() override;
  void launch(const CapturedWork& work) override;

 private:
  const GpuDevice* place(const void* address, const Device* device, std::size_t bytes,
                         std::string_view what) const;
  void check_operand(const Operand& operand) const;

  GpuDevice& device_;
  vendor::StreamHandle native_;
};

}  // namespace turnout::gpu
