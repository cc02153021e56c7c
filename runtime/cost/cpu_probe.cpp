#include "runtime/cost/cpu_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ops/all_ops.hpp"
#include "runtime/session.hpp"

namespace turnout {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr double kPointSeconds = 0.02;  // spent on one point of a curve
constexpr int kMinRuns = 3;
constexpr std::string_view kFormat = "turnout-cpu-profile-1";

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

// Best time of one run of a graph with input "x".
double time_graph(const std::shared_ptr<System>& system, const Graph& graph,
                  const std::string& provider, int threads) {
  SessionOptions options;
  options.providers = {provider};
  options.threads = threads;
  options.fold = false;
  const Session session(system, graph, CostModel(), options);
  const std::vector<Tensor> inputs = {random_tensor(session.inputs()[0].spec)};
  std::vector<Tensor> outputs = session.run(inputs);
  double best = 1e30;
  const auto begin = Clock::now();
  for (int run = 0; run < kMinRuns || seconds_since(begin) < kPointSeconds; ++run) {
    const auto start = Clock::now();
    session.run(inputs, outputs);
    best = std::min(best, seconds_since(start));
  }
  return std::max(best, 1e-9);
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

Json to_json(const std::vector<RatePoint>& curve) {
  Json points = Json::array();
  for (const RatePoint& point : curve) points.push_back({point.size, point.rate});
  return points;
}

std::vector<RatePoint> curve_from_json(const Json& json) {
  std::vector<RatePoint> curve;
  for (const Json& point : json) {
    const RatePoint read{point.at(0).get<double>(), point.at(1).get<double>()};
    const bool sane = read.size > 0 && read.rate > 0 && read.rate < 1e18 &&
                      (curve.empty() || read.size > curve.back().size);
    if (!sane) throw std::runtime_error("bad curve");
    curve.push_back(read);
  }
  return curve;
}

std::string fingerprint(const System& system, int threads) {
  const Backend& cpu = *system.backends()[0];
  const KernelRegistry& kernels = system.kernels(cpu);
  std::string text = fmt::format("{}|{} threads", kFormat, threads);
  for (const std::string& name : kernels.providers()) {
    text += fmt::format("|{}={}", name, kernels.kernel_count(name));
  }
  return text;
}

std::filesystem::path profile_path(const std::string& key) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  return folder / fmt::format("cpu-{:016x}.json", std::hash<std::string>()(key));
}

bool read_profile(const std::filesystem::path& path, const std::string& key, CpuProfile& profile) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code error;
  if (path.empty() || std::filesystem::file_size(path, error) > kMaxBytes || error) return false;
  try {
    std::ifstream file(path);
    const Json json = Json::parse(file);
    if (json.at("key").get<std::string>() != key) return false;
    for (const auto& [provider, curve] : json.at("gemm").items()) {
      profile.gemm[provider] = curve_from_json(curve);
    }
    for (const auto& [provider, curve] : json.at("gemv").items()) {
      profile.gemv[provider] = curve_from_json(curve);
    }
    profile.stream = curve_from_json(json.at("stream"));
    profile.dispatch_seconds = json.at("dispatch_seconds").get<double>();
    if (!(profile.dispatch_seconds >= 0 && profile.dispatch_seconds < 1)) return false;
    profile.evidence = Evidence::calibrated;
    profile.source = "quick probe, kept in " + path.string();
    return true;
  } catch (const std::exception&) {
    profile = CpuProfile{};
    return false;
  }
}

void write_profile(const std::filesystem::path& path, const std::string& key,
                   const CpuProfile& profile) {
  if (path.empty()) return;
  Json json = {{"key", key},
               {"stream", to_json(profile.stream)},
               {"dispatch_seconds", profile.dispatch_seconds},
               {"gemm", Json::object()},
               {"gemv", Json::object()}};
  for (const auto& [provider, curve] : profile.gemm) json["gemm"][provider] = to_json(curve);
  for (const auto& [provider, curve] : profile.gemv) json["gemv"][provider] = to_json(curve);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path part = path.string() + ".part";
  {
    std::ofstream file(part);
    file << json.dump(1) << "\n";
    if (!file.flush()) return;
  }
  std::filesystem::rename(part, path, error);
}

// Several threads that are slower than one don't have the cores to themselves.
bool is_busy(const std::shared_ptr<System>& system, const CpuProfile& profile) {
  constexpr std::int64_t kSize = 512;
  if (profile.threads <= 1 || profile.gemm.empty()) return false;
  const auto& [provider, curve] = *profile.gemm.begin();
  const double alone = time_graph(system, product_graph(kSize, kSize, kSize), provider, 1);
  const double flops = 2.0 * kSize * kSize * kSize;
  for (const RatePoint& point : curve) {
    if (point.size == flops) return point.rate < 1.1 * flops / alone;
  }
  return false;
}

}  // namespace

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string own = variable("TURNOUT_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/turnout";
  const std::string home = variable("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / ".cache/turnout";
}

CpuProfile probe_cpu(const std::shared_ptr<System>& system, int threads) {
  const auto begin = Clock::now();
  CpuProfile profile;
  profile.threads = threads;
  const DeviceSlot slot = system->open("cpu", {}, threads);
  for (const std::string& provider : slot.kernels->providers()) {
    if (provider == "reference") continue;
    if (!takes(*system, slot, product_graph(8, 8, 8), provider)) continue;
    for (const std::int64_t n : {16, 64, 128, 256, 512, 1024}) {
      const double flops = 2.0 * static_cast<double>(n * n * n);
      const double seconds = time_graph(system, product_graph(n, n, n), provider, threads);
      profile.gemm[provider].push_back({flops, flops / seconds});
    }
    for (const std::int64_t n : {64, 256, 512, 1024, 2048}) {
      const double bytes = 4.0 * static_cast<double>(n * n);
      const double seconds = time_graph(system, product_graph(1, n, n), provider, threads);
      profile.gemv[provider].push_back({bytes, bytes / seconds});
    }
  }
  for (const std::string& provider : slot.kernels->providers()) {
    if (!profile.stream.empty() || !takes(*system, slot, stream_graph(8), provider)) continue;
    profile.dispatch_seconds = time_graph(system, stream_graph(16), provider, threads);
    for (const std::int64_t elements : {1 << 14, 1 << 17, 1 << 20, 1 << 23}) {
      const double bytes = 8.0 * static_cast<double>(elements);
      const double seconds = time_graph(system, stream_graph(elements), provider, threads);
      profile.stream.push_back({bytes, bytes / seconds});
    }
  }
  profile.busy = is_busy(system, profile);
  profile.evidence = Evidence::calibrated;
  profile.source = profile.busy ? "quick probe on a busy machine, not kept" : "quick probe";
  profile.probe_seconds = seconds_since(begin);
  return profile;
}

CpuProfile cpu_profile(const std::shared_ptr<System>& system, int threads) {
  if (threads <= 0) threads = core_count();
  const DeviceSlot slot = system->open("cpu", {}, threads);
  const std::string key = fingerprint(*system, threads) + "|" + slot.info().title;
  const std::filesystem::path path = profile_path(key);
  CpuProfile profile;
  profile.threads = threads;
  if (read_profile(path, key, profile)) return profile;
  profile = probe_cpu(system, threads);
  if (!profile.busy) write_profile(path, key, profile);
  return profile;
}

}  // namespace turnout
