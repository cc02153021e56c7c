#include "backends/gpu/stream.hpp"

#include "backends/gpu/event.hpp"
#include "backends/gpu/kernels.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

GpuStream::GpuStream(GpuDevice& device) : device_(device) {
  vendor::make_current(device.native());
  native_ = vendor::make_stream(device.native());
}

GpuStream::~GpuStream() {
  forget_stream(native_handle());
  vendor::destroy_stream(native_);
}

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
  vendor::make_current(device_.native());
  vendor::launch(native_, kernel, args, *this);
}

// The device the bytes are on; null: the host.
const GpuDevice* GpuStream::place(const void* address, const Device* device, std::size_t bytes,
                                  std::string_view what) const {
  if (device == nullptr || device->info().is_host) {
    device_.require_host(address, what);
    return nullptr;
  }
  const auto* owner = device == &device_ ? &device_ : dynamic_cast<const GpuDevice*>(device);
  if (owner == nullptr || (owner != &device_ && !device_.reaches(*owner))) {
    fail(ErrorCode::internal,
         "{}: {}: memory of {}, which this device doesn't reach; such copies go through the host",
         device_.info().name, what, device->info().name);
  }
  owner->require_live(address, bytes, what);
  return owner;
}

void GpuStream::copy(void* to, const Device* to_device, const void* from, const Device* from_device,
                     std::size_t bytes) {
  if (bytes == 0) return;
  const GpuDevice* target = place(to, to_device, bytes, "target of a copy");
  const GpuDevice* source = place(from, from_device, bytes, "source of a copy");
  vendor::make_current(device_.native());
  if (target != nullptr && source != nullptr && target != source) {
    if (target != &device_ && source != &device_) {
      fail(ErrorCode::internal, "{}: a copy from {} to {} on a stream of neither",
           device_.info().name, source->info().name, target->info().name);
    }
    vendor::copy_peer(native_, to, target->native(), from, source->native(), bytes);
    return;
  }
  const GpuDevice* only = target != nullptr ? target : source;
  if (only != nullptr && only != &device_) {
    fail(ErrorCode::internal, "{}: a copy inside or from {} on a stream of another device",
         device_.info().name, only->info().name);
  }
  const auto direction =
      target != nullptr
          ? (source != nullptr ? vendor::Direction::inside : vendor::Direction::upload)
          : (source != nullptr ? vendor::Direction::download : vendor::Direction::on_host);
  vendor::copy(native_, direction, to, from, bytes);
}

void GpuStream::fill(void* address, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  device_.require_live(address, bytes, "target of a fill");
  vendor::make_current(device_.native());
  vendor::fill(native_, address, value, bytes);
}

void GpuStream::record(Event& event) {
  auto* own = dynamic_cast<GpuEvent*>(&event);
  if (own == nullptr || &own->device_ != &device_) {
    fail(ErrorCode::internal, "{}: an event of another device was recorded", device_.info().name);
  }
  vendor::make_current(device_.native());
  vendor::record(native_, own->native_);
  own->recorded_ = true;
}

void GpuStream::wait(Event& event) {
  auto* own = dynamic_cast<GpuEvent*>(&event);
  if (own == nullptr) return event.synchronize();
  own->require_recorded();
  if (!own->device_.shares_driver(device_)) return event.synchronize();
  vendor::make_current(device_.native());
  vendor::wait(native_, own->native_);
}

void GpuStream::synchronize() {
  device_.count_synchronize();
  vendor::make_current(device_.native());
  vendor::synchronize(native_);
  check_kernels(native_handle());
}

void GpuStream::begin_capture() {
  vendor::make_current(device_.native());
  vendor::begin_capture(native_);
}

std::unique_ptr<CapturedWork> GpuStream::end_capture() {
  return std::make_unique<GpuGraph>(vendor::end_capture(native_));
}

void GpuStream::launch(const CapturedWork& work) {
  const auto* graph = dynamic_cast<const GpuGraph*>(&work);
  if (graph == nullptr) {
    fail(ErrorCode::internal, "{}: captured work of another backend", device_.info().name);
  }
  vendor::make_current(device_.native());
  vendor::launch_graph(native_, graph->native_);
}

}  // namespace turnout::gpu
