// Queues and clock of emulated devices.
//
// One lock guards all queues of a driver; it is dropped while a kernel or copy runs. A stream is
// worked on by one thread at a time; others that need its progress wait for that thread. Waits
// refer to earlier records, so threads can't wait for each other in a circle either.
#include "backends/gpu/vendor/host.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
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

}  // namespace

// ---- Driver ----------------------------------------------------------------------------------

std::shared_ptr<Driver> open_driver() { return std::make_shared<Driver>(); }

bool is_device_address(Driver& driver, const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const Lock lock(driver.mutex);
  return std::any_of(driver.ranges.begin(), driver.ranges.end(), [at](const AddressRange& range) {
    return at >= range.begin && at < range.end;
  });
}

void Driver::push(StreamState& stream, Op op) {
  if (stream.head == stream.queue.size()) {
    stream.queue.clear();
    stream.head = 0;
  } else if (stream.queue.size() == stream.queue.capacity() && stream.head > 0) {
    const auto first = stream.queue.begin();
    stream.queue.erase(first, first + static_cast<std::ptrdiff_t>(stream.head));
    stream.head = 0;
  }
  stream.queue.push_back(std::move(op));
}

void Driver::advance(StreamState& stream, double& engine_end, double seconds) const {
  const double start = std::max({stream.end_seconds, host_seconds, engine_end});
  stream.end_seconds = engine_end = start + seconds;
}

void Driver::run_until(Lock& lock, StreamState& stream, std::uint64_t position) {
  while (stream.done < position && !stream.closed) {
    if (!stream.running) {
      run_next(lock, stream);
    } else if (stream.runner == std::this_thread::get_id()) {
      fail(ErrorCode::internal, "{}: a kernel waits for the stream that runs it",
           stream.device.info_.name);
    } else {
      progress.wait(lock);
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
  Device& device = stream.device;
  if (op.kind == Op::Kind::launch) ++device.launches_;
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

// ---- Device ----------------------------------------------------------------------------------

Device::Device(std::shared_ptr<Driver> driver, const DeviceInfo& info)
    : driver_(std::move(driver)), info_(info) {}

Device::~Device() {
  const Lock lock(driver_->mutex);
  std::erase_if(driver_->ranges, [this](const AddressRange& range) { return range.owner == this; });
  release();
}

void Device::set_faults(const Faults& faults) {
  const Lock lock(driver_->mutex);
  faults_ = faults;
  launches_ = 0;
}

void Device::check_lost() const { check_lost(Lock(driver_->mutex)); }

void Device::check_lost(const Lock&) const {
  if (faults_.lose_device_after < 0 || launches_ <= faults_.lose_device_after) return;
  fail(ErrorCode::device_lost, "{}: the device was lost", info_.name);
}

void Device::check_live(const void* address, std::size_t bytes, const char* what) const {
  if (!is_live_ || is_live_(address, bytes)) return;
  fail(ErrorCode::internal, "{}: {} at {}, which isn't allocated any more", info_.name, what,
       address);
}

void Device::execute(const Op& op) const {
  if (op.kind == Op::Kind::launch) {
    const auto check = [this](const Operand& operand) {
      if (operand.address != nullptr) check_live(operand.address, 0, "an operand lies");
    };
    std::for_each(op.args.inputs().begin(), op.args.inputs().end(), check);
    std::for_each(op.args.outputs().begin(), op.args.outputs().end(), check);
    check(op.args.workspace_operand());
    return op.kernel->run(op.args, *op.stream);
  }
  auto* to = static_cast<std::byte*>(op.to);
  if (op.to_is_device) {
    check_live(to, op.bytes, "a copy or fill goes to memory");
    to += access_offset();
  }
  if (op.kind == Op::Kind::fill) {
    std::memset(to, std::to_integer<int>(op.value), op.bytes);
    return;
  }
  const auto* from = static_cast<const std::byte*>(op.from);
  if (op.from_is_device) {
    check_live(from, op.bytes, "a copy reads memory");
    from += access_offset();
  }
  std::memmove(to, from, op.bytes);
}

// ---- Event -----------------------------------------------------------------------------------

Event::Event(Device& device) : driver_(device.driver_), state_(std::make_shared<EventState>()) {}

void Event::synchronize() {
  Lock lock(driver_->mutex);
  const std::shared_ptr<StreamState> stream = state_->stream;
  if (stream == nullptr) return;
  const std::uint64_t position = state_->position;
  if (stream->device.faults_.others_first) driver_->run_others(lock, *stream);
  driver_->run_until(lock, *stream, position);
  if (stream->done < position) fail(ErrorCode::internal, kDropped);
  driver_->host_seconds = std::max(driver_->host_seconds, state_->seconds);
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

double Event::seconds() const {
  const Lock lock(driver_->mutex);
  return state_->seconds;
}

// ---- Stream ----------------------------------------------------------------------------------

Stream::Stream(Device& device) : state_(std::make_shared<StreamState>(device)) {
  Driver& driver = *device.driver_;
  const Lock lock(driver.mutex);
  std::erase_if(driver.streams, [](const auto& stream) { return stream.expired(); });
  driver.streams.push_back(state_);
}

Stream::~Stream() {
  Driver& driver = *state_->device.driver_;
  const Lock lock(driver.mutex);
  state_->closed = true;
  state_->queue.clear();  // also ends the circle stream -> op -> event -> stream
  state_->head = 0;
  driver.progress.notify_all();
}

void Stream::launch(const PreparedKernel& kernel, const KernelArgs& args, turnout::Stream& stream) {
  Op op;
  op.kind = Op::Kind::launch;
  op.kernel = &kernel;
  op.args = args;
  op.stream = &stream;
  Device& device = state_->device;
  const double seconds = roofline_seconds(device.info_, kernel.cost, kernel.dtype);
  const Lock lock(device.driver_->mutex);
  device.driver_->advance(*state_, device.compute_end_, seconds);
  device.driver_->push(*state_, std::move(op));
}

void Stream::copy(void* to, bool to_is_device, const void* from, bool from_is_device,
                  std::size_t bytes) {
  Op op;
  op.kind = Op::Kind::copy;
  op.to = to;
  op.to_is_device = to_is_device;
  op.from = from;
  op.from_is_device = from_is_device;
  op.bytes = bytes;
  Device& device = state_->device;
  const bool over_link = to_is_device != from_is_device;
  const double seconds = over_link
                             ? copy_seconds(device.info_, static_cast<double>(bytes), to_is_device)
                             : (to_is_device ? move_seconds(device.info_, bytes, bytes) : 0);
  const Lock lock(device.driver_->mutex);
  double& engine = !over_link     ? device.compute_end_
                   : to_is_device ? device.upload_end_
                                  : device.download_end_;
  const double slowdown = over_link ? device.faults_.link_slowdown : 1;
  device.driver_->advance(*state_, engine, seconds * slowdown);
  device.driver_->push(*state_, std::move(op));
}

void Stream::fill(void* address, std::byte value, std::size_t bytes) {
  Op op;
  op.kind = Op::Kind::fill;
  op.to = address;
  op.to_is_device = true;
  op.value = value;
  op.bytes = bytes;
  Device& device = state_->device;
  const double seconds = move_seconds(device.info_, 0, bytes);
  const Lock lock(device.driver_->mutex);
  device.driver_->advance(*state_, device.compute_end_, seconds);
  device.driver_->push(*state_, std::move(op));
}

void Stream::record(Event& event) {
  Driver& driver = *state_->device.driver_;
  Op op;
  op.kind = Op::Kind::record;
  op.event = event.state_;
  const Lock lock(driver.mutex);
  op.position = state_->queued() + 1;
  state_->end_seconds = std::max(state_->end_seconds, driver.host_seconds);
  EventState& recorded = *event.state_;
  recorded.stream = state_;
  recorded.position = op.position;
  recorded.seconds = state_->end_seconds;
  recorded.error = nullptr;
  driver.push(*state_, std::move(op));
}

void Stream::wait(Event& event) {
  Driver& driver = *state_->device.driver_;
  Op op;
  op.kind = Op::Kind::wait;
  op.event = event.state_;
  const Lock lock(driver.mutex);
  op.other = event.state_->stream;
  op.position = event.state_->position;
  state_->end_seconds = std::max(state_->end_seconds, event.state_->seconds);
  driver.push(*state_, std::move(op));
}

void Stream::synchronize() {
  Driver& driver = *state_->device.driver_;
  Lock lock(driver.mutex);
  if (state_->device.faults_.others_first) driver.run_others(lock, *state_);
  driver.run_until(lock, *state_, state_->queued());
  driver.host_seconds = std::max(driver.host_seconds, state_->end_seconds);
  if (state_->error == nullptr) return;
  const std::exception_ptr error = std::exchange(state_->error, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

}  // namespace turnout::gpu::vendor
