#include "runtime/cost/device_probe.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "ops/all_ops.hpp"
#include "ops/convert.hpp"
#include "runtime/session.hpp"

namespace turnout {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Random numbers that repeat after a while: filling memory must not take longer than the probe.
Tensor random_tensor(const TensorSpec& spec) {
  constexpr std::size_t kPeriod = 65521;  // prime, so that rows of a matrix differ
  Tensor tensor = Tensor::empty(spec);
  std::minstd_rand engine(1);
  dispatch(spec.dtype, [&]<typename T>(std::type_identity<T>) {
    const std::span<T> values = tensor.values<T>();
    const std::size_t first = std::min(kPeriod, values.size());
    for (T& value : values.first(first)) {
      value = convert<T>(static_cast<double>(engine() % 255) / 127.0 - 1);
    }
    for (std::size_t done = first; done < values.size(); done += first) {
      const std::size_t count = std::min(first, values.size() - done);
      std::copy_n(values.data(), count, values.data() + done);
    }
  });
  return tensor;
}

Graph stream_graph(std::int64_t elements) {
  GraphBuilder builder(all_ops(), "probe");
  builder.output(builder.add("abs", {builder.input("x", DType::f32, {elements})}));
  return builder.build().bind({});
}

Graph product_graph(DType dtype, std::int64_t n) {
  GraphBuilder builder(all_ops(), "probe");
  const ValueId a = builder.input("a", dtype, {n, n});
  builder.output(builder.add("matmul", {a, builder.input("b", dtype, {n, n})}));
  return builder.build().bind({});
}

// A node made ready on a device, with operands there.
class ReadyNode {
 public:
  ReadyNode(const DeviceSlot& slot, const Graph& graph, Stream& stream) {
    const NodeInfo info = graph.info(NodeId{0});
    const auto selection = slot.kernels->select(info, slot.device->info(), slot.providers);
    if (selection.entry == nullptr) {
      std::string why = "no kernel";
      for (const auto& refusal : selection.refusals) why = refusal.reason;
      fail(ErrorCode::unsupported, "{}", why);
    }
    Device& device = *slot.device;
    kernel_ = selection.entry->prepare({info, device, slot.threads, {}, false});
    kernel_->cost = cost_of(info);
    kernel_->dtype = info.output(0).dtype;
    for (int i = 0; i < info.input_count(); ++i) {
      const Tensor data = random_tensor(info.input(i));
      add(inputs_, device, data.bytes());
      stream.copy(inputs_.back().address, &device, data.address(), nullptr, data.bytes());
      stream.synchronize();
    }
    for (const TensorSpec* output : info.outputs) {
      add(outputs_, device, static_cast<std::size_t>(output->bytes()));
    }
    std::vector<Operand> workspace;
    if (kernel_->workspace_bytes() > 0) add(workspace, device, kernel_->workspace_bytes());
    args_ = KernelArgs(inputs_, outputs_, workspace.empty() ? Operand{} : workspace[0], &device);
  }
  void launch(Stream& stream) const { stream.launch(*kernel_, args_); }

 private:
  void add(std::vector<Operand>& operands, Device& device, std::size_t bytes) {
    buffers_.push_back(device.allocate(std::max<std::size_t>(bytes, 1), MemoryKind::device));
    operands.push_back({buffers_.back()->address(), &device});
  }

  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::unique_ptr<PreparedKernel> kernel_;
  std::vector<Operand> inputs_, outputs_;
  KernelArgs args_;
};

// A copy of some bytes that can be repeated.
class ReadyCopy {
 public:
  ReadyCopy(Device& device, std::int64_t bytes, bool to_device, bool pinned)
      : device_(device), bytes_(static_cast<std::size_t>(bytes)), to_device_(to_device) {
    there_ = device.allocate(bytes_, MemoryKind::device);
    here_ = pinned ? device.allocate(bytes_, MemoryKind::pinned_host) : allocate_host(bytes_);
    std::fill_n(static_cast<std::byte*>(here_->address()), bytes_,
                std::byte{1});  // pages are there
    if (!to_device) {
      const auto stream = device.make_stream();
      stream->fill(there_->address(), std::byte{1}, bytes_);
      stream->synchronize();
    }
  }
  void launch(Stream& stream) const {
    if (to_device_) {
      stream.copy(there_->address(), &device_, here_->address(), nullptr, bytes_);
    } else {
      stream.copy(here_->address(), nullptr, there_->address(), &device_, bytes_);
    }
  }

 private:
  Device& device_;
  std::size_t bytes_;
  bool to_device_;
  std::shared_ptr<Buffer> there_, here_;
};

// Products on the host's cores for as long as it lives.
class HostWork {
 public:
  HostWork() : thread_([this] { work(); }) {
    while (!started_.load()) std::this_thread::yield();
  }
  ~HostWork() {
    stop_.store(true);
    thread_.join();
  }
  bool failed() const { return failed_.load(); }

 private:
  void work() {
    try {
      const Session session(std::make_shared<System>(), product_graph(DType::f32, 512), CostModel(),
                            {});
      const Tensor a = random_tensor(session.inputs()[0].spec);
      const std::vector<Tensor> inputs{a, a};
      std::vector<Tensor> outputs = session.run(inputs);
      started_.store(true);
      while (!stop_.load()) session.run(inputs, outputs);
    } catch (const Error&) {  // said by the point that wanted it
      failed_.store(true);
      started_.store(true);
    }
  }

  std::atomic<bool> started_ = false, stop_ = false, failed_ = false;
  std::thread thread_;
};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Times points on one device.
class Prober {
 public:
  explicit Prober(const DeviceSlot& slot) : slot_(slot), device_(*slot.device) {
    for (auto& stream : streams_) stream = device_.make_stream();
    begin_ = device_.make_event();
    end_ = device_.make_event();
  }

  Sample measure(const ProbePoint& point, double budget_seconds) {
    budget_seconds_ = budget_seconds;
    std::string_view what = point.what;
    if (what == "synchronize") return synchronize();
    if (what == "launch") {
      const ReadyNode node(slot_, stream_graph(16), stream());
      return repeated([&] { node.launch(stream()); }, kLaunches);
    }
    if (what == "stream") {
      const ReadyNode node(slot_, stream_graph(point.size / 8), stream());
      return repeated([&] { node.launch(stream()); }, 1);
    }
    if (take_prefix(what, "product ")) {
      const std::optional<DType> dtype = parse_dtype(what);
      if (!dtype) fail(ErrorCode::invalid_argument, "there is no element type '{}'", what);
      const ReadyNode node(slot_, product_graph(*dtype, point.size), stream());
      return repeated([&] { node.launch(stream()); }, 1);
    }
    return copies(point);
  }

 private:
  static constexpr int kLaunches = 64;

  Stream& stream() { return *streams_[0]; }

  // Time of one of `count` in a row, by the device's clock.
  Sample repeated(const std::function<void()>& launch, int count) {
    return sample(
        [&] {
          stream().record(*begin_);
          for (int i = 0; i < count; ++i) launch();
          stream().record(*end_);
          stream().synchronize();
          return (end_->seconds() - begin_->seconds()) / count;
        },
        budget_seconds_);
  }

  Sample synchronize() {
    if (device_.info().is_virtual) {
      fail(ErrorCode::unsupported, "the host's time says nothing of an emulated device");
    }
    stream().synchronize();
    return sample(
        [&] {
          const auto begin = Clock::now();
          stream().synchronize();
          return seconds_since(begin);
        },
        budget_seconds_);
  }

  Sample copies(const ProbePoint& point) {
    std::string_view what = point.what;
    const bool up = take_prefix(what, "h2d");
    if (!up && !take_prefix(what, "d2h")) {
      fail(ErrorCode::invalid_argument, "there is no probe '{}'", point.what);
    }
    const bool pageable = take_prefix(what, " pageable");
    const ReadyCopy copy(device_, point.size, up, !pageable);
    const auto launch = [&] { copy.launch(stream()); };
    if (what.empty()) return repeated(launch, 1);
    if (!take_prefix(what, " during ")) {
      fail(ErrorCode::invalid_argument, "there is no probe '{}'", point.what);
    }
    if (what == "host product") {
      const HostWork work;
      if (work.failed()) fail(ErrorCode::unsupported, "the host has no kernel for the product");
      return repeated(launch, 1);
    }
    const double alone = repeated(launch, 1).seconds;
    if (what == "product") {
      const ReadyNode node(slot_, product_graph(DType::f32, kBusyRows), stream());
      return during(launch, alone, [&] { node.launch(*streams_[1]); });
    }
    if (what != "h2d" && what != "d2h") {
      fail(ErrorCode::invalid_argument, "there is no probe '{}'", point.what);
    }
    const ReadyCopy other(device_, point.size, what == "h2d", true);
    return during(launch, alone, [&] { other.launch(*streams_[1]); });
  }

  static constexpr std::int64_t kBusyRows = 1024;

  // The same while the second stream has work for at least twice as long.
  Sample during(const std::function<void()>& launch, double alone,
                const std::function<void()>& other) {
    constexpr double kMost = 4096;
    streams_[1]->record(*begin_);
    other();
    streams_[1]->record(*end_);
    streams_[1]->synchronize();
    const double each = std::max(1e-9, end_->seconds() - begin_->seconds());
    const int count = static_cast<int>(std::min(kMost, std::ceil(2 * alone / each) + 1));
    return sample(
        [&] {
          for (int i = 0; i < count; ++i) other();
          stream().record(*begin_);
          launch();
          stream().record(*end_);
          stream().synchronize();
          streams_[1]->synchronize();
          return end_->seconds() - begin_->seconds();
        },
        budget_seconds_);
  }

  const DeviceSlot& slot_;
  double budget_seconds_ = 0;
  Device& device_;
  std::unique_ptr<Stream> streams_[2];
  std::unique_ptr<Event> begin_, end_;
};

Figure figure(double value, std::string source) {
  return {value, Evidence::calibrated, std::move(source)};
}

void set_transfer(const DeviceCalibration& calibration, std::string_view what, Figure& rate,
                  Figure* latency) {
  const TransferFit fit = calibration.transfer(what);
  if (fit.points == 0) return;
  const std::string source = fmt::format("measured: {} of {} sizes, fitted within {:.0f} %", what,
                                         fit.points, fit.worst_error * 100);
  rate = figure(fit.bytes_per_s, source);
  if (latency != nullptr) *latency = figure(fit.latency_seconds, source);
}

void add_sizes(std::vector<ProbePoint>& points, std::string_view what, std::int64_t first,
               std::int64_t factor, std::int64_t last) {
  for (std::int64_t size = first; size <= last; size *= factor) {
    points.push_back({std::string(what), size});
  }
}

// Part of the fingerprint: changes when points of the same name mean something else.
constexpr std::string_view kFigures = "device figures 3";
constexpr std::int64_t kKiB = 1024, kMiB = kKiB * kKiB;

}  // namespace

std::vector<ProbePoint> quick_points(const ProbeLimits& limits) {
  std::vector<ProbePoint> points{{"launch", 0}, {"synchronize", 0}};
  for (const char* what : {"h2d", "d2h"}) {
    add_sizes(points, what, 4 * kKiB, 16, std::min(limits.copy_bytes, 64 * kMiB));
  }
  const std::int64_t pass = std::min(limits.stream_bytes, 256 * kMiB);
  if (pass > 4 * kMiB) points.push_back({"stream", 4 * kMiB});
  points.push_back({"stream", pass});
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    for (const std::int64_t rows : {128, 1024, 4096}) {
      if (rows <= limits.product_rows) points.push_back({fmt::format("product {}", dtype), rows});
    }
  }
  for (const char* what : {"h2d pageable", "d2h pageable"}) {
    add_sizes(points, what, 64 * kKiB, 256, std::min(limits.copy_bytes, 16 * kMiB));
  }
  return points;
}

std::vector<ProbePoint> full_points(const ProbeLimits& limits) {
  std::vector<ProbePoint> points = quick_points(limits);
  std::vector<ProbePoint> more;
  for (const char* what : {"h2d", "d2h", "h2d pageable", "d2h pageable"}) {
    add_sizes(more, what, 4 * kKiB, 4, limits.copy_bytes);
  }
  for (const char* what : {"h2d during d2h", "d2h during h2d", "h2d during product",
                           "d2h during product", "h2d during host product"}) {
    more.push_back({what, std::min(limits.copy_bytes, 16 * kMiB)});
  }
  add_sizes(more, "stream", 64 * kKiB, 8, limits.stream_bytes);
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    add_sizes(more, fmt::format("product {}", dtype), 128, 2, limits.product_rows);
  }
  for (ProbePoint& point : more) {
    if (std::find(points.begin(), points.end(), point) == points.end()) {
      points.push_back(std::move(point));
    }
  }
  return points;
}

DeviceCalibration probe_device(const DeviceSlot& slot, std::span<const ProbePoint> points,
                               DeviceCalibration known, const ProbeOptions& options) {
  if (slot.info().is_host) {
    fail(ErrorCode::invalid_argument, "'{}' is the host: it has no link to measure", slot.label);
  }
  known.device = slot.device->info().name;
  known.key = device_key(slot.device->info());
  Prober prober(slot);
  const auto timer = [&](const ProbePoint& point, double budget_seconds) {
    return prober.measure(point, budget_seconds);
  };
  return measure_points(points, timer, std::move(known), options);
}

std::string device_key(const DeviceInfo& info) {
  return fmt::format("{}|{}|{}|{} units|{} bytes|{}", kFigures, info.name, info.title,
                     info.compute_units, info.memory_bytes.value, info.link.name);
}

DeviceInfo calibrated_info(const DeviceInfo& info, const DeviceCalibration& calibration) {
  DeviceInfo result = info;
  const auto set_rate = [&](Figure& to, std::string_view what) {
    if (const auto rate = calibration.best_rate(what)) {
      to = figure(*rate, fmt::format("measured: best of '{}'", what));
    }
  };
  set_rate(result.peak_f64, "product f64");
  set_rate(result.peak_f32, "product f32");
  set_rate(result.peak_f16, "product f16");
  set_rate(result.peak_bf16, "product bf16");
  set_rate(result.memory_bytes_per_s, "stream");
  if (const auto* launch = calibration.find({"launch", 0})) {
    result.launch_seconds = figure(launch->sample.seconds, "measured: small kernels in a row");
  }
  if (const auto* wait = calibration.find({"synchronize", 0})) {
    result.synchronize_seconds = figure(wait->sample.seconds, "measured: of a stream at rest");
  }
  LinkInfo& link = result.link;
  set_transfer(calibration, "h2d", link.h2d_bytes_per_s, &link.latency_seconds);
  set_transfer(calibration, "d2h", link.d2h_bytes_per_s, nullptr);
  set_transfer(calibration, "h2d pageable", link.pageable_h2d_bytes_per_s, nullptr);
  set_transfer(calibration, "d2h pageable", link.pageable_d2h_bytes_per_s, nullptr);
  return result;
}

std::string use_calibration(System& system, std::string_view label,
                            std::span<const ProbePoint> points) {
  const DeviceSlot slot = system.open(label);
  const DeviceInfo& info = slot.device->info();
  if (info.is_host || info.is_virtual) return "";
  std::optional<DeviceCalibration> kept = kept_calibration(device_key(info));
  std::string said = fmt::format("{}: figures of its calibration in {}", info.name,
                                 calibration_path(device_key(info)));
  const double budget = ProbeOptions{}.budget_seconds;
  if (!kept || missing_points(*kept, points, budget) > 0) {
    const auto begin = Clock::now();
    kept = probe_device(slot, points, kept.value_or(DeviceCalibration{}), {});
    const bool written = keep_calibration(*kept);
    const std::size_t missing = missing_points(*kept, points, budget);
    said = fmt::format("{}: calibrated in {:.1f} s{}{}", info.name, seconds_since(begin),
                       missing == 0 ? ""
                                    : fmt::format("; {} of {} points left to the next start",
                                                  missing, points.size()),
                       written ? "" : "; it can't be kept, so the next start measures again");
  }
  system.use_info(info.name, calibrated_info(info, *kept));
  return said;
}

}  // namespace turnout
