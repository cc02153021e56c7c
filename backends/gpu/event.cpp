#include "backends/gpu/event.hpp"

#include "core/error.hpp"

namespace turnout::gpu {

GpuEvent::GpuEvent(GpuDevice& device) : device_(device) {
  vendor::make_current(device.native());
  native_ = vendor::make_event(device.native());
}

GpuEvent::~GpuEvent() { vendor::destroy_event(native_); }

void GpuEvent::synchronize() {
  require_recorded();
  device_.count_synchronize();
  vendor::synchronize_event(native_);
}

void GpuEvent::require_recorded() const {
  if (recorded_) return;
  fail(ErrorCode::internal, "{}: an event is waited for that was never recorded",
       device_.info().name);
}

}  // namespace turnout::gpu
