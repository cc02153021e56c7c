#include "backends/gpu/event.hpp"

#include "core/error.hpp"

namespace turnout::gpu {

void GpuEvent::synchronize() {
  require_recorded();
  native_.synchronize();
}

void GpuEvent::require_recorded() const {
  if (recorded_) return;
  fail(ErrorCode::internal, "{}: an event is waited for that was never recorded",
       device_.info().name);
}

}  // namespace turnout::gpu
