#pragma once

#include "backends/gpu/device.hpp"

namespace turnout::gpu {

class GpuEvent final : public Event {
 public:
  explicit GpuEvent(GpuDevice& device);
  ~GpuEvent() override;

  /// Error if the event was never recorded: waiting for nothing hides a missing record.
  void synchronize() override;
  double seconds() const override { return vendor::seconds(device_.origin(), native_); }

 private:
  friend class GpuStream;
  void require_recorded() const;

  GpuDevice& device_;
  vendor::EventHandle native_;
  bool recorded_ = false;
};

}  // namespace turnout::gpu
