#include "runtime/cost/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runtime/io/file.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::string_view kFormat = "turnout-calibration-2";

std::string refusal_of(const ProbePoint& point) {
  return fmt::format("{} {}: ", point.what, point.size);
}

bool is_settled(const DeviceCalibration& calibration, const ProbePoint& point) {
  const std::string start = refusal_of(point);
  return calibration.find(point) != nullptr ||
         std::any_of(calibration.refused.begin(), calibration.refused.end(),
                     [&](const std::string& line) { return line.starts_with(start); });
}

bool is_first(std::span<const ProbePoint> points, const ProbePoint& point) {
  return *std::find_if(points.begin(), points.end(),
                       [&](const ProbePoint& p) { return p.what == point.what; }) == point;
}

// Work of one point relative to another one's of the same name.
double work_of(const ProbePoint& point) {
  const double size = static_cast<double>(std::max<std::int64_t>(1, point.size));
  const std::string_view what = point.what;
  if (what.starts_with("product ") || what.starts_with("gemm ")) return size * size * size;
  return what.starts_with("gemv ") ? size * size : size;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : where_(where) {
    if (text.size() > kMaxBytes) refuse("larger than 1 MiB");
    json_ = Json::parse(text, nullptr, false);
    if (!json_.is_object()) refuse("not a JSON object");
    if (this->text(json_, "format") != kFormat) refuse("of another format");
  }

  DeviceCalibration read() {
    DeviceCalibration result;
    result.device = text(json_, "device");
    result.key = text(json_, "key");
    for (const Json& line : list("refused")) {
      if (!line.is_string()) refuse("'refused' is no list of texts");
      result.refused.push_back(line.get<std::string>());
    }
    for (const Json& point : list("points")) {
      if (!point.is_object()) refuse("a point is no object");
      MeasuredPoint read;
      read.point = {text(point, "what"), static_cast<std::int64_t>(number(point, "size", 0, 1e15))};
      read.sample.seconds = number(point, "seconds", 1e-12, 1e6);
      read.sample.best = number(point, "best", 1e-12, 1e6);
      read.sample.spread = number(point, "spread", 0, 1e9);
      read.sample.count = static_cast<int>(number(point, "count", 1, 1e6));
      read.sample.rejected = static_cast<int>(number(point, "rejected", 0, 1e6));
      read.wall_seconds = number(point, "wall", 0, 1e6);
      result.points.push_back(std::move(read));
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorCode::invalid_argument, "calibration {}: {}", where_, why);
  }
  std::string text(const Json& json, const char* name) const {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_string()) refuse(fmt::format("'{}' is no text", name));
    return at->get<std::string>();
  }
  double number(const Json& json, const char* name, double least, double most) const {
    const auto at = json.find(name);
    const bool is_number = at != json.end() && at->is_number();
    const double value = is_number ? at->get<double>() : 0;
    if (!is_number || !(value >= least && value <= most)) {
      refuse(fmt::format("'{}' is no number from {} to {}", name, least, most));
    }
    return value;
  }
  const Json& list(const char* name) const {
    const auto at = json_.find(name);
    if (at == json_.end() || !at->is_array()) refuse(fmt::format("'{}' is no list", name));
    return *at;
  }

  std::string where_;
  Json json_;
};

}  // namespace

const MeasuredPoint* DeviceCalibration::find(const ProbePoint& point) const {
  const auto at = std::find_if(points.begin(), points.end(),
                               [&](const MeasuredPoint& p) { return p.point == point; });
  return at == points.end() ? nullptr : &*at;
}

TransferFit DeviceCalibration::transfer(std::string_view what) const {
  // Minimizes the sum of ((a + b n) / t - 1)^2: a straight line through (n, t) weighted by 1 / t^2.
  double w = 0, wn = 0, wnn = 0, wt = 0, wnt = 0;
  TransferFit fit;
  for (const MeasuredPoint& point : points) {
    if (point.point.what != what) continue;
    const double n = static_cast<double>(point.point.size), t = point.sample.seconds;
    const double weight = 1 / (t * t);
    w += weight;
    wn += weight * n;
    wnn += weight * n * n;
    wt += weight * t;
    wnt += weight * n * t;
    ++fit.points;
  }
  if (fit.points == 0) return fit;
  const double determinant = w * wnn - wn * wn;
  double per_byte = 0;
  if (fit.points > 1 && determinant > 1e-12 * w * wnn) {
    per_byte = (w * wnt - wn * wt) / determinant;
    fit.latency_seconds = (wt - per_byte * wn) / w;
  }
  if (per_byte <= 0 || fit.latency_seconds < 0) {  // one size, or noise: a rate alone
    fit.latency_seconds = 0;
    per_byte = wnt / wnn;
  }
  fit.bytes_per_s = 1 / per_byte;
  for (const MeasuredPoint& point : points) {
    if (point.point.what != what) continue;
    const double t = fit.latency_seconds + static_cast<double>(point.point.size) / fit.bytes_per_s;
    fit.worst_error = std::max(fit.worst_error, std::abs(t / point.sample.seconds - 1));
  }
  return fit;
}

std::optional<double> DeviceCalibration::best_rate(std::string_view what) const {
  std::optional<double> best;
  for (const MeasuredPoint& point : points) {
    if (point.point.what != what) continue;
    const double size = static_cast<double>(point.point.size);
    const double work = what.starts_with("product ") ? 2 * size * size * size : size;
    best = std::max(best.value_or(0), work / point.sample.seconds);
  }
  return best;
}

int DeviceCalibration::noisy() const {
  return static_cast<int>(std::count_if(points.begin(), points.end(),
                                        [](const MeasuredPoint& p) { return p.sample.noisy(); }));
}

int DeviceCalibration::rejected() const {
  int sum = 0;
  for (const MeasuredPoint& point : points) sum += point.sample.rejected;
  return sum;
}

double DeviceCalibration::expected_seconds(const ProbePoint& point) const {
  constexpr double kSamples = 3;  // set-up, one to warm up and one that counts
  const MeasuredPoint* nearest = nullptr;
  for (const MeasuredPoint& known : points) {
    if (known.point.what != point.what || known.point.size > point.size) continue;
    if (nearest == nullptr || known.point.size > nearest->point.size) nearest = &known;
  }
  if (nearest == nullptr) return 0;
  return kSamples * nearest->wall_seconds * work_of(point) / work_of(nearest->point);
}

std::string to_json(const DeviceCalibration& calibration) {
  Json points = Json::array();
  for (const MeasuredPoint& p : calibration.points) {
    points.push_back({{"what", p.point.what},
                      {"size", p.point.size},
                      {"seconds", p.sample.seconds},
                      {"best", p.sample.best},
                      {"spread", p.sample.spread},
                      {"count", p.sample.count},
                      {"rejected", p.sample.rejected},
                      {"wall", p.wall_seconds}});
  }
  const Json json = {{"format", kFormat},
                     {"device", calibration.device},
                     {"key", calibration.key},
                     {"refused", calibration.refused},
                     {"points", std::move(points)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

DeviceCalibration parse_calibration(std::string_view json, std::string_view where) {
  return Reader(json, where).read();
}

DeviceCalibration measure_points(std::span<const ProbePoint> points, const PointTimer& timer,
                                 DeviceCalibration known, const ProbeOptions& options) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLeastPoint = 0.005, kMostPoint = 0.25;
  const auto begin = Clock::now();
  const auto used = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const double each = options.budget_seconds / static_cast<double>(points.size() + 1);
  const double point_seconds = std::clamp(each, kLeastPoint, kMostPoint);
  // The first of every name, then the others as far as the time goes.
  std::vector<ProbePoint> order(points.begin(), points.end());
  const auto rest = std::stable_partition(
      order.begin(), order.end(), [&](const ProbePoint& point) { return is_first(points, point); });
  const auto needed = static_cast<std::size_t>(rest - order.begin());
  std::size_t done = 0;
  for (const ProbePoint& point : order) {
    const bool is_needed = done < needed;
    const double share = static_cast<double>(done++) / static_cast<double>(points.size());
    if (is_settled(known, point)) continue;
    const double start = used();
    if (!is_needed && start + known.expected_seconds(point) > options.budget_seconds) continue;
    if (options.progress && !options.progress(share, point)) break;
    try {
      const Sample sample = timer(point, point_seconds);
      const int runs = 1 + sample.count + sample.rejected;
      known.points.push_back({point, sample, (used() - start) / runs});
    } catch (const Error& error) {
      const bool refusal =
          error.code() == ErrorCode::unsupported || error.code() == ErrorCode::out_of_memory;
      if (!refusal) throw;
      known.refused.push_back(refusal_of(point) + error.what());
    }
    if (options.keep) options.keep(known);
  }
  return known;
}

std::size_t missing_points(const DeviceCalibration& calibration, std::span<const ProbePoint> points,
                           double budget_seconds) {
  return static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [&](const ProbePoint& point) {
        return !is_settled(calibration, point) &&
               calibration.expected_seconds(point) <= budget_seconds;
      }));
}

std::string cache_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string own = variable("TURNOUT_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/turnout";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/turnout";
}

std::string calibration_path(std::string_view key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  return fmt::format("{}/calibration-{:016x}.json", folder, std::hash<std::string_view>()(key));
}

std::optional<DeviceCalibration> kept_calibration(const std::string& key) {
  const std::string path = calibration_path(key);
  if (path.empty()) return {};
  try {
    DeviceCalibration calibration = parse_calibration(read_file(path, kMaxBytes), path);
    if (calibration.key == key) return calibration;
  } catch (const Error&) {  // measured anew
  }
  return {};
}

bool keep_calibration(const DeviceCalibration& calibration) {
  const std::filesystem::path path = calibration_path(calibration.key);
  if (path.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  try {
    const std::string text = to_json(calibration);
    const std::string_view parts[] = {text};
    write_file(path, parts);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace turnout
