#include "backends/gpu/stream.hpp"

#include "backends/gpu/event.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

void GpuStream::check_operand(const Operand& operand) const {
  if (operand.address == nullptr) return;
  if (operand.device != &device_) {
    fail(ErrorCode::internal, "a kernel of {} was given memory of {}: a copy is missing",
         device_.info().name,
         operand.device == nullptr ? "the host" : std::string_view(operand.device->info().name));
  }
  device_.require_live(operand.address, 0, "operand of a kernel");
}

void GpuStream::launch(const PreparedKernel& kernel, const KernelArgs& args) {
  if (args.device() != &device_) {
    fail(ErrorCode::internal, "{}: a kernel was launched with operands for {}", device_.info().name,
         args.device() == nullptr ? "the host" : std::string_view(args.device()->info().name));
  }
  for (const Operand& operand : args.inputs()) check_operand(operand);
  for (const Operand& operand : args.outputs()) check_operand(operand);
  check_operand(args.workspace_operand());
  native_.launch(kernel, args, *this);
}

// True if the bytes are this device's, false if they are the host's.
bool GpuStream::check_place(const void* address, const Device* device, std::size_t bytes,
                            std::string_view what) const {
  if (device == nullptr || device->info().is_host) {
    device_.require_host(address, what);
    return false;
  }
  if (device != &device_) {
    fail(ErrorCode::internal, "{}: {}: memory of {}; copies between devices go through the host",
         device_.info().name, what, device->info().name);
  }
  device_.require_live(address, bytes, what);
  return true;
}

void GpuStream::copy(void* to, const Device* to_device, const void* from, const Device* from_device,
                     std::size_t bytes) {
  if (bytes == 0) return;
  const bool to_is_device = check_place(to, to_device, bytes, "target of a copy");
  const bool from_is_device = check_place(from, from_device, bytes, "source of a copy");
  native_.copy(to, to_is_device, from, from_is_device, bytes);
}

void GpuStream::fill(void* address, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  device_.require_live(address, bytes, "target of a fill");
  native_.fill(address, value, bytes);
}

void GpuStream::record(Event& event) {
  auto* own = dynamic_cast<GpuEvent*>(&event);
  if (own == nullptr || &own->device_ != &device_) {
    fail(ErrorCode::internal, "{}: an event of another device was recorded", device_.info().name);
  }
  native_.record(own->native_);
  own->recorded_ = true;
}

void GpuStream::wait(Event& event) {
  auto* own = dynamic_cast<GpuEvent*>(&event);
  if (own == nullptr) return event.synchronize();
  own->require_recorded();
  if (!own->device_.shares_driver(device_)) return event.synchronize();
  native_.wait(own->native_);
}

}  // namespace turnout::gpu
