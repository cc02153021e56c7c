#include "runtime/cost/cpu_probe.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "ops/all_ops.hpp"
#include "runtime/cost/device_probe.hpp"
#include "runtime/session.hpp"

namespace turnout {
namespace {

using Clock = std::chrono::steady_clock;

// Part of the fingerprint: changes when points of the same name mean something else.
constexpr std::string_view kFigures = "cpu figures 2";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Tensor random_tensor(const TensorSpec& spec) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor tensor = Tensor::empty(spec);
  for (float& value : tensor.values<float>()) value = uniform(engine);
  return tensor;
}

// Times of single runs of a graph with input "x".
Sample time_graph(const std::shared_ptr<System>& system, const Graph& graph,
                  const std::string& provider, int threads, double budget_seconds) {
  SessionOptions options;
  options.providers = {provider};
  options.threads = threads;
  options.fold = false;
  const Session session(system, graph, CostModel(), options);
  const std::vector<Tensor> inputs = {random_tensor(session.inputs()[0].spec)};
  std::vector<Tensor> outputs = session.run(inputs);
  return sample(
      [&] {
        const auto start = Clock::now();
        session.run(inputs, outputs);
        return seconds_since(start);
      },
      budget_seconds);
}

Graph product_graph(std::int64_t m, std::int64_t k, std::int64_t n) {
  GraphBuilder builder(all_ops(), "probe");
  const ValueId x = builder.input("x", DType::f32, {m, k});
  const ValueId w = builder.constant(random_tensor({DType::f32, {k, n}}));
  builder.output(builder.add("matmul", {x, w}));
  return builder.build();
}

Graph stream_graph(std::int64_t elements) {
  GraphBuilder builder(all_ops(), "probe");
  builder.output(builder.add("abs", {builder.input("x", DType::f32, {elements})}));
  return builder.build();
}

bool takes(const System& system, const DeviceSlot& slot, const Graph& graph,
           const std::string& provider) {
  const Graph bound = graph.bind({});
  const std::string names[] = {provider};
  return system.kernels(*system.backends()[0])
             .select(bound.info(NodeId{0}), slot.info(), names)
             .entry != nullptr;
}

// Who does elementwise passes; empty: nobody but the reference.
std::string pass_provider(const System& system, const DeviceSlot& slot) {
  for (const std::string& provider : slot.kernels->providers()) {
    if (provider != "reference" && takes(system, slot, stream_graph(8), provider)) return provider;
  }
  return "";
}

std::string fingerprint(const System& system, int threads) {
  const Backend& cpu = *system.backends()[0];
  const KernelRegistry& kernels = system.kernels(cpu);
  std::string text = fmt::format("{}|{} threads", kFigures, threads);
  for (const std::string& name : kernels.providers()) {
    text += fmt::format("|{}={}", name, kernels.kernel_count(name));
  }
  return text;
}

// The provider that a point's name ends in.
std::string provider_of(const ProbePoint& point) {
  return point.what.substr(point.what.find(' ') + 1);
}

Sample time_point(const std::shared_ptr<System>& system, const std::string& pass_provider,
                  int threads, const ProbePoint& point, double budget_seconds) {
  const std::int64_t n = point.size;
  if (point.what == "dispatch") {
    return time_graph(system, stream_graph(16), pass_provider, threads, budget_seconds);
  }
  if (point.what == "pass") {
    return time_graph(system, stream_graph(n / 8), pass_provider, threads, budget_seconds);
  }
  const bool one_row = point.what.starts_with("gemv ");
  return time_graph(system, product_graph(one_row ? 1 : n, n, n), provider_of(point), threads,
                    budget_seconds);
}

void add_point(std::vector<RatePoint>& curve, double size, double seconds) {
  const RatePoint point{size, size / seconds};
  const auto at = std::upper_bound(curve.begin(), curve.end(), point,
                                   [](const auto& a, const auto& b) { return a.size < b.size; });
  curve.insert(at, point);
}

// The machine may be shared, so the best time says most about what it can do.
CpuProfile profile_of(const DeviceCalibration& calibration, int threads) {
  CpuProfile profile;
  profile.threads = threads;
  for (const MeasuredPoint& measured : calibration.points) {
    const ProbePoint& point = measured.point;
    const Sample& sample = measured.sample;
    const double n = static_cast<double>(point.size);
    if (point.what == "dispatch") profile.dispatch_seconds = sample.best;
    if (point.what == "pass") add_point(profile.stream, n, sample.best);
    if (point.what.starts_with("gemm ")) {
      add_point(profile.gemm[provider_of(point)], 2 * n * n * n, sample.best);
    }
    if (point.what.starts_with("gemv ")) {
      add_point(profile.gemv[provider_of(point)], 4 * n * n, sample.best);
    }
  }
  profile.evidence = Evidence::calibrated;
  return profile;
}

// Several threads that are slower than one don't have the cores to themselves.
bool is_busy(const std::shared_ptr<System>& system, const CpuProfile& profile) {
  constexpr std::int64_t kSize = 512;
  constexpr double kSeconds = 0.02;
  if (profile.threads <= 1 || profile.gemm.empty()) return false;
  const auto& [provider, curve] = *profile.gemm.begin();
  const double alone =
      time_graph(system, product_graph(kSize, kSize, kSize), provider, 1, kSeconds).best;
  const double flops = 2.0 * kSize * kSize * kSize;
  for (const RatePoint& point : curve) {
    if (point.size == flops) return point.rate < 1.1 * flops / alone;
  }
  return false;
}

}  // namespace

std::string cpu_key(System& system, int threads) {
  const DeviceSlot slot = system.open("cpu", {}, threads);
  return fingerprint(system, threads) + "|" + slot.info().title;
}

std::vector<ProbePoint> cpu_points(System& system, bool full) {
  std::vector<ProbePoint> points, more;
  const DeviceSlot slot = system.open("cpu");
  for (const std::string& provider : slot.kernels->providers()) {
    if (provider == "reference") continue;
    if (!takes(system, slot, product_graph(8, 8, 8), provider)) continue;
    for (const std::int64_t n : {16, 64, 128, 256, 512, 1024}) {
      points.push_back({"gemm " + provider, n});
    }
    for (const std::int64_t n : {64, 256, 512, 1024, 2048}) {
      points.push_back({"gemv " + provider, n});
    }
    for (const std::int64_t n : {32, 96, 192, 384, 768, 1536, 2048}) {
      more.push_back({"gemm " + provider, n});
    }
    for (const std::int64_t n : {128, 384, 768, 1536, 4096}) {
      more.push_back({"gemv " + provider, n});
    }
  }
  if (!pass_provider(system, slot).empty()) {
    points.push_back({"dispatch", 0});
    for (const int power : {17, 20, 23, 26}) points.push_back({"pass", std::int64_t{1} << power});
    for (const int power : {14, 16, 18, 19, 21, 22, 24, 25, 27, 28}) {
      more.push_back({"pass", std::int64_t{1} << power});
    }
  }
  if (full) points.insert(points.end(), more.begin(), more.end());
  return points;
}

DeviceCalibration calibrate_cpu(const std::shared_ptr<System>& system, int threads,
                                std::span<const ProbePoint> points, DeviceCalibration known,
                                const ProbeOptions& options) {
  known.device = "cpu";
  known.key = cpu_key(*system, threads);
  const std::string passes = pass_provider(*system, system->open("cpu"));
  const auto timer = [&](const ProbePoint& point, double budget_seconds) {
    return time_point(system, passes, threads, point, budget_seconds);
  };
  return measure_points(points, timer, std::move(known), options);
}

CpuProfile probe_cpu(const std::shared_ptr<System>& system, int threads, DeviceCalibration known) {
  const auto begin = Clock::now();
  const DeviceCalibration calibration =
      calibrate_cpu(system, threads, cpu_points(*system, false), std::move(known), {});
  CpuProfile profile = profile_of(calibration, threads);
  profile.busy = is_busy(system, profile);
  profile.source = profile.busy ? "quick probe on a busy machine, not kept" : "quick probe";
  profile.probe_seconds = seconds_since(begin);
  if (!profile.busy) keep_calibration(calibration);
  return profile;
}

CpuProfile cpu_profile(const std::shared_ptr<System>& system, int threads) {
  if (threads <= 0) threads = core_count();
  const std::string key = cpu_key(*system, threads);
  auto kept = kept_calibration(key);
  if (kept) {
    const double budget = ProbeOptions{}.budget_seconds;
    if (missing_points(*kept, cpu_points(*system, false), budget) == 0) {
      CpuProfile profile = profile_of(*kept, threads);
      const bool full = missing_points(*kept, cpu_points(*system, true)) == 0;
      profile.source = fmt::format("{}, kept in {}", full ? "full calibration" : "quick probe",
                                   calibration_path(key));
      return profile;
    }
  }
  return probe_cpu(system, threads, kept ? std::move(*kept) : DeviceCalibration{});
}

CostModel machine_costs(const std::shared_ptr<System>& system, std::span<const std::string> devices,
                        int threads, std::shared_ptr<const CostHistory> history) {
  for (const std::string& label : devices) use_calibration(*system, label);
  if (history == nullptr) history = kept_history(*system);
  return CostModel(cpu_profile(system, threads), std::move(history));
}

}  // namespace turnout
