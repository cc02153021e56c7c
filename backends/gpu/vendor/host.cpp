// Queues and clock of emulated devices.
//
// One lock guards all queues of a driver; it is dropped while a kernel or copy runs. A stream is
// worked on by one thread at a time; others that need its progress wait for that thread. Waits
// refer to earlier records, so threads can't wait for each other in a circle either.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/gpu/vendor/host_driver.hpp"
#include "core/error.hpp"
#include "core/roofline.hpp"

namespace turnout::gpu::vendor {
namespace {

// The clock's price for work that only moves bytes inside a device.
double move_seconds(const DeviceInfo& info, std::size_t read, std::size_t written) {
  Cost cost;
  cost.bytes_read = static_cast<double>(read);
  cost.bytes_written = static_cast<double>(written);
  return roofline_seconds(info, cost, DType::u8);
}

void queue(const StreamHandle& stream, Op op) {
  const Lock lock(stream->device->driver->mutex);
  if (stream->capture != nullptr) {
    stream->capture->ops.push_back(std::move(op));
  } else {
    stream->device->driver->push(*stream, std::move(op));
  }
}

// Records and waits are of one run, so a graph can't hold them.
void refuse_in_capture(const StreamState& stream) {
  if (stream.capture == nullptr) return;
  fail(ErrorCode::internal, "{}: an event was used in work that is being captured",
       stream.device->info.name);
}

}  // namespace

// ---- Driver ----------------------------------------------------------------------------------

std::shared_ptr<Driver> open_driver(const DriverOptions& options) {
  return std::make_shared<Driver>(options);
}

Found find_devices(Driver& driver) {
  Found found{driver.options.devices, ""};
  if (found.devices.empty()) found.why_none = "no profiles were given";
  return found;
}

void Driver::push(StreamState& stream, Op op) {
  EmulatedDevice& device = *stream.device;
  if (op.engine != Engine::none) {
    const bool over_link = op.engine != Engine::compute;
    double& engine_end = device.engine_end(op.engine);
    const double start = std::max({stream.end_seconds, host_seconds, engine_end});
    const double slowdown = over_link ? device.faults.link_slowdown : 1;
    stream.end_seconds = engine_end = start + op.seconds * slowdown;
  }
  if (stream.head == stream.queue.size()) {
    stream.queue.clear();
    stream.head = 0;
  } else if (stream.queue.size() == stream.queue.capacity() && stream.head > 0) {
    const auto first = stream.queue.begin();
    stream.queue.erase(first, first + static_cast<std::ptrdiff_t>(stream.head));
    stream.head = 0;
  }
  stream.queue.push_back(std::move(op));
  if (options.threads) progress.notify_all();
}

void Driver::work(StreamState& stream) {
  Lock lock(mutex);
  while (true) {
    progress.wait(lock, [&] { return stream.closed || stream.head < stream.queue.size(); });
    if (stream.closed) return;
    run_next(lock, stream);
  }
}

void Driver::run_until(Lock& lock, StreamState& stream, std::uint64_t position) {
  while (stream.done < position && !stream.closed) {
    if (stream.running && stream.runner == std::this_thread::get_id()) {
      fail(ErrorCode::internal, "{}: a kernel waits for the stream that runs it",
           stream.device->info.name);
    }
    if (stream.running || options.threads) {
      progress.wait(lock);
    } else {
      run_next(lock, stream);
    }
  }
}

void Driver::run_next(Lock& lock, StreamState& stream) {
  const Op op = std::move(stream.queue[stream.head++]);
  stream.running = true;
  stream.runner = std::this_thread::get_id();
  try {
    run(lock, stream, op);
  } catch (...) {
    stream.error = std::current_exception();
  }
  ++stream.done;
  stream.running = false;
  progress.notify_all();
}

void Driver::run(Lock& lock, StreamState& stream, const Op& op) {
  if (op.kind == Op::Kind::record) {
    const bool newest = op.event->stream.get() == &stream && op.event->position == op.position;
    if (newest) op.event->error = stream.error;
    return;
  }
  if (stream.error != nullptr) return;
  if (op.kind == Op::Kind::wait) {
    const std::shared_ptr<StreamState> other = op.other;
    run_until(lock, *other, op.position);
    if (other->done < op.position) fail(ErrorCode::internal, kDropped);
    const bool newest = op.event->stream == other && op.event->position == op.position;
    if (newest && op.event->error != nullptr) std::rethrow_exception(op.event->error);
    return;
  }
  EmulatedDevice& device = *stream.device;
  if (op.kind == Op::Kind::launch) ++device.launches;
  device.check_lost(lock);
  lock.unlock();
  try {
    device.execute(op);
  } catch (...) {
    lock.lock();
    throw;
  }
  lock.lock();
}

// True if `stream` can't get to `position` unless `wanted` does some work.
bool Driver::needs(const StreamState& stream, std::uint64_t position,
                   const StreamState& wanted) const {
  if (stream.done >= position) return false;
  if (&stream == &wanted) return true;
  const std::uint64_t first = stream.queued() - (stream.queue.size() - stream.head);
  const auto count = static_cast<std::size_t>(position - first);
  for (std::size_t i = stream.head; i < std::min(stream.head + count, stream.queue.size()); ++i) {
    const Op& op = stream.queue[i];
    if (op.kind == Op::Kind::wait && needs(*op.other, op.position, wanted)) return true;
  }
  return false;
}

void Driver::run_others(Lock& lock, const StreamState& last) {
  if (options.threads) return;  // they run by themselves
  const std::vector<std::weak_ptr<StreamState>> now = streams;
  for (const auto& entry : now) {
    const std::shared_ptr<StreamState> stream = entry.lock();
    if (stream == nullptr || stream.get() == &last) continue;
    while (!stream->running && !stream->closed && stream->done < stream->queued() &&
           !needs(*stream, stream->done + 1, last)) {
      run_next(lock, *stream);
    }
  }
}

// ---- Devices ---------------------------------------------------------------------------------

DeviceHandle open_device(const std::shared_ptr<Driver>& driver, int /*index*/,
                         const DeviceInfo& info) {
  return std::make_shared<EmulatedDevice>(driver, info);
}

void close_device(const DeviceHandle&) {}
void make_current(const DeviceHandle&) {}

void set_faults(const DeviceHandle& device, const Faults& faults) {
  const Lock lock(device->driver->mutex);
  device->faults = faults;
  device->launches = 0;
}

void check_lost(const DeviceHandle& device) { device->check_lost(Lock(device->driver->mutex)); }

void EmulatedDevice::check_lost(const Lock&) const {
  if (faults.lose_device_after < 0 || launches <= faults.lose_device_after) return;
  fail(ErrorCode::device_lost, "{}: the device was lost", info.name);
}

double& EmulatedDevice::engine_end(Engine engine) {
  if (engine == Engine::upload) return upload_end;
  return engine == Engine::download ? download_end : compute_end;
}

namespace {

void require_live(const EmulatedDevice& device, const void* address, std::size_t bytes,
                  const char* what) {
  if (device.is_live(address, bytes)) return;
  fail(ErrorCode::internal, "{}: {} at {}, which isn't allocated any more", device.info.name, what,
       address);
}

}  // namespace

void EmulatedDevice::execute(const Op& op) const {
  if (op.kind == Op::Kind::launch) {
    const auto check = [this](const Operand& operand) {
      if (operand.address != nullptr) require_live(*this, operand.address, 0, "an operand lies");
    };
    std::for_each(op.args.inputs().begin(), op.args.inputs().end(), check);
    std::for_each(op.args.outputs().begin(), op.args.outputs().end(), check);
    check(op.args.workspace_operand());
    return op.kernel->run(op.args, *op.stream);
  }
  auto* to = static_cast<std::byte*>(op.to);
  if (op.to_device != nullptr) {
    require_live(*op.to_device, to, op.bytes, "a copy or fill goes to memory");
    to += op.to_device->access - op.to_device->address;
  }
  if (op.kind == Op::Kind::fill) {
    std::memset(to, std::to_integer<int>(op.value), op.bytes);
    return;
  }
  const auto* from = static_cast<const std::byte*>(op.from);
  if (op.from_device != nullptr) {
    require_live(*op.from_device, from, op.bytes, "a copy reads memory");
    from += op.from_device->access - op.from_device->address;
  }
  std::memmove(to, from, op.bytes);
}

// ---- Events ----------------------------------------------------------------------------------

EventHandle make_event(const DeviceHandle& device) {
  auto event = std::make_shared<EventState>();
  event->driver = device->driver;
  return event;
}

void destroy_event(const EventHandle&) {}

void synchronize_event(const EventHandle& event) {
  Driver& driver = *event->driver;
  Lock lock(driver.mutex);
  const std::shared_ptr<StreamState> stream = event->stream;
  if (stream == nullptr) return;
  const std::uint64_t position = event->position;
  if (stream->device->faults.others_first) driver.run_others(lock, *stream);
  driver.run_until(lock, *stream, position);
  if (stream->done < position) fail(ErrorCode::internal, kDropped);
  driver.host_seconds = std::max(driver.host_seconds, event->seconds);
  if (event->error != nullptr) std::rethrow_exception(event->error);
}

double seconds(const EventHandle&, const EventHandle& event) {
  const Lock lock(event->driver->mutex);
  return event->seconds;
}

// ---- Streams ---------------------------------------------------------------------------------

StreamHandle make_stream(const DeviceHandle& device) {
  auto stream = std::make_shared<StreamState>(device);
  Driver& driver = *device->driver;
  const Lock lock(driver.mutex);
  std::erase_if(driver.streams, [](const auto& other) { return other.expired(); });
  driver.streams.push_back(stream);
  if (driver.options.threads) {
    stream->worker = std::thread([&driver, state = stream.get()] { driver.work(*state); });
  }
  return stream;
}

void destroy_stream(const StreamHandle& stream) {
  {
    Driver& driver = *stream->device->driver;
    const Lock lock(driver.mutex);
    stream->closed = true;
    stream->queue.clear();  // also ends the circle stream -> op -> event -> stream
    stream->head = 0;
    driver.progress.notify_all();
  }
  if (stream->worker.joinable()) stream->worker.join();
}

void* native_handle(const StreamHandle& stream) { return stream.get(); }

void launch(const StreamHandle& stream, const PreparedKernel& kernel, const KernelArgs& args,
            turnout::Stream& owner) {
  Op op;
  op.kind = Op::Kind::launch;
  op.engine = Engine::compute;
  op.seconds = stream->device->times.kernel_seconds(kernel.cost, kernel.dtype);
  op.kernel = &kernel;
  op.args = args;
  op.stream = &owner;
  queue(stream, std::move(op));
}

void copy(const StreamHandle& stream, Direction direction, void* to, const void* from,
          std::size_t bytes) {
  EmulatedDevice& device = *stream->device;
  Op op;
  op.kind = Op::Kind::copy;
  op.to = to;
  op.from = from;
  op.bytes = bytes;
  const bool upload = direction == Direction::upload;
  const bool inside = direction == Direction::inside;
  if (upload || inside) op.to_device = &device;
  if (direction == Direction::download || inside) op.from_device = &device;
  if (inside) {
    op.engine = Engine::compute;
    op.seconds = move_seconds(device.info, bytes, bytes);
  } else if (direction != Direction::on_host) {
    op.engine = upload ? Engine::upload : Engine::download;
    op.seconds = copy_seconds(device.info, static_cast<double>(bytes), upload);
  }
  queue(stream, std::move(op));
}

bool connect_peers(const DeviceHandle& to, const DeviceHandle& from) {
  return to->driver == from->driver;
}

// Over both links, with one start: peers share the host's PCI Express here.
void copy_peer(const StreamHandle& stream, void* to, const DeviceHandle& to_device,
               const void* from, const DeviceHandle& from_device, std::size_t bytes) {
  Op op;
  op.kind = Op::Kind::copy;
  op.to = to;
  op.from = from;
  op.bytes = bytes;
  op.to_device = to_device.get();
  op.from_device = from_device.get();
  op.engine = to_device == stream->device ? Engine::upload : Engine::download;
  const auto size = static_cast<double>(bytes);
  op.seconds = std::max(copy_seconds(to_device->info, size, true),
                        copy_seconds(from_device->info, size, false));
  queue(stream, std::move(op));
}

void fill(const StreamHandle& stream, void* address, std::byte value, std::size_t bytes) {
  Op op;
  op.kind = Op::Kind::fill;
  op.engine = Engine::compute;
  op.seconds = move_seconds(stream->device->info, 0, bytes);
  op.to = address;
  op.to_device = stream->device.get();
  op.value = value;
  op.bytes = bytes;
  queue(stream, std::move(op));
}

void record(const StreamHandle& stream, const EventHandle& event) {
  Driver& driver = *stream->device->driver;
  Op op;
  op.kind = Op::Kind::record;
  op.event = event;
  const Lock lock(driver.mutex);
  refuse_in_capture(*stream);
  op.position = stream->queued() + 1;
  stream->end_seconds = std::max(stream->end_seconds, driver.host_seconds);
  event->stream = stream;
  event->position = op.position;
  event->seconds = stream->end_seconds;
  event->error = nullptr;
  driver.push(*stream, std::move(op));
}

void wait(const StreamHandle& stream, const EventHandle& event) {
  Driver& driver = *stream->device->driver;
  Op op;
  op.kind = Op::Kind::wait;
  op.event = event;
  const Lock lock(driver.mutex);
  refuse_in_capture(*stream);
  op.other = event->stream;
  op.position = event->position;
  stream->end_seconds = std::max(stream->end_seconds, event->seconds);
  driver.push(*stream, std::move(op));
}

void synchronize(const StreamHandle& stream) {
  Driver& driver = *stream->device->driver;
  Lock lock(driver.mutex);
  refuse_in_capture(*stream);
  if (stream->device->faults.others_first) driver.run_others(lock, *stream);
  driver.run_until(lock, *stream, stream->queued());
  driver.host_seconds = std::max(driver.host_seconds, stream->end_seconds);
  if (stream->error == nullptr) return;
  const std::exception_ptr error = std::exchange(stream->error, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

// ---- Graphs ----------------------------------------------------------------------------------

void begin_capture(const StreamHandle& stream) {
  const Lock lock(stream->device->driver->mutex);
  refuse_in_capture(*stream);
  stream->capture = std::make_shared<GraphState>();
}

GraphHandle end_capture(const StreamHandle& stream) {
  const Lock lock(stream->device->driver->mutex);
  return std::exchange(stream->capture, nullptr);
}

// Priced as its parts: what a graph saves in launches no sheet states.
void launch_graph(const StreamHandle& stream, const GraphHandle& graph) {
  Driver& driver = *stream->device->driver;
  const Lock lock(driver.mutex);
  for (const Op& op : graph->ops) driver.push(*stream, op);
}

void destroy_graph(const GraphHandle&) {}

}  // namespace turnout::gpu::vendor
