#include "runtime/cost/history.hpp"

#include <algorithm>
#include <filesystem>

#include "generated/build_id.hpp"
#include "generated/turnout_config.hpp"
#include "runtime/cost/calibration.hpp"
#include "runtime/cost/sampling.hpp"
#include "runtime/io/file.hpp"
#include "runtime/io/json_fields.hpp"

namespace turnout {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{32} << 20;
constexpr std::string_view kFormat = "turnout-history-1";
constexpr std::int64_t kMaxRows = std::int64_t{1} << 48;
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6;

bool is_enough(const std::vector<double>& seconds) {
  if (seconds.size() >= CostHistory::kMinSamples) return true;
  double sum = 0;
  for (const double sample : seconds) sum += sample;
  return seconds.size() >= CostHistory::kMinLong && sum >= CostHistory::kLongSeconds;
}

CostHistory::Known known_of(const std::vector<double>& seconds) {
  const Sample sample = summarize(seconds);
  return {sample.seconds, sample.spread, seconds.size(), true};
}

}  // namespace

CostKey cost_key(const NodeInfo& info, std::string_view provider, const DeviceSlot& slot) {
  const DeviceInfo& device = slot.info();
  CostKey key;
  key.family = fmt::format("{}|{}|{}|{}", device.is_host ? device.name : device.title, slot.threads,
                           provider, info.op->name);
  for (const auto& [name, value] : *info.attrs) {
    key.family += fmt::format("|{}={}", name, to_string(value));
  }
  bool has_rows = false;
  for (int i = 0; i < info.input_count(); ++i) {
    if (!info.has_input(i)) {
      key.family += "|-";
      continue;
    }
    TensorSpec spec = info.input(i);
    if (info.constant(i) != nullptr) {
      key.family += "|" + to_string(spec) + "c";
      continue;
    }
    if (!has_rows && spec.shape.rank() > 0) {
      has_rows = true;
      key.rows = spec.shape[0];
    }
    const bool is_data = spec.shape.rank() > 0 && spec.shape[0] == key.rows;
    if (is_data) spec.shape.set(0, 0);
    key.family += fmt::format("|{}{}", to_string(spec), is_data ? "r" : "");
  }
  return key;
}

void CostHistory::insert(const CostKey& key, double seconds) {
  Family& family = families_[key.family];
  const auto [at, is_new] = family.try_emplace(key.rows);
  nodes_ += is_new ? 1 : 0;
  Samples& samples = at->second;
  if (samples.seconds.size() >= kMaxSamples) samples.seconds.erase(samples.seconds.begin());
  samples.seconds.push_back(seconds);
  samples.used = ++clock_;
  if (nodes_ > kMaxNodes) drop_oldest();
}

void CostHistory::drop_oldest() {
  auto oldest = families_.end();
  std::uint64_t used = clock_;
  std::int64_t rows = 0;
  for (auto family = families_.begin(); family != families_.end(); ++family) {
    for (const auto& [size, samples] : family->second) {
      if (samples.used >= used) continue;
      used = samples.used;
      oldest = family;
      rows = size;
    }
  }
  if (oldest == families_.end()) return;
  oldest->second.erase(rows);
  if (oldest->second.empty()) families_.erase(oldest);
  --nodes_;
}

void CostHistory::add(const CostKey& key, double seconds, bool keep) {
  if (!(seconds >= kLeastSeconds && seconds <= kMostSeconds)) return;  // a clock that stood still
  const std::lock_guard lock(mutex_);
  insert(key, seconds);
  if (keep) new_.emplace_back(key, seconds);
}

std::optional<CostHistory::Known> CostHistory::find(const CostKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = families_.find(key.family);
  if (found == families_.end()) return std::nullopt;
  const Family& family = found->second;
  const auto exact = family.find(key.rows);
  if (exact != family.end() && is_enough(exact->second.seconds)) {
    return known_of(exact->second.seconds);
  }
  // The nearest measured number of rows above, and the two below.
  const std::pair<const std::int64_t, Samples>*above = nullptr, *below = nullptr, *before = nullptr;
  for (const auto& entry : family) {
    if (!is_enough(entry.second.seconds)) continue;
    if (entry.first > key.rows) {
      above = &entry;
      break;
    }
    before = below;
    below = &entry;
  }
  if (above == nullptr) std::swap(above, before);  // beyond the largest: the last two's line
  if (above == nullptr || below == nullptr) return std::nullopt;
  const auto [smallest, largest] = std::minmax({above->first, below->first, key.rows});
  if (smallest < 1 || largest > kMaxRatio * smallest) return std::nullopt;
  const Known a = known_of(below->second.seconds), b = known_of(above->second.seconds);
  const double slope = (b.seconds - a.seconds) / static_cast<double>(above->first - below->first);
  const double seconds = a.seconds + slope * static_cast<double>(key.rows - below->first);
  // More rows never take less time than fewer.
  const double least = above->first > key.rows ? std::min(a.seconds, b.seconds) : a.seconds;
  return Known{std::max(seconds, least), std::max(a.spread, b.spread),
               std::min(a.samples, b.samples), false};
}

bool CostHistory::empty() const {
  const std::lock_guard lock(mutex_);
  return families_.empty();
}

std::size_t CostHistory::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::vector<std::pair<CostKey, double>> CostHistory::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

std::string CostHistory::to_json(std::string_view machine) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::uint64_t, nlohmann::json>> nodes;
  for (const auto& [name, family] : families_) {
    for (const auto& [rows, samples] : family) {
      nodes.emplace_back(
          samples.used,
          nlohmann::json{{"node", name}, {"rows", rows}, {"seconds", samples.seconds}});
    }
  }
  // Oldest first, which is how parse() gets them back.
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  nlohmann::json list = nlohmann::json::array();
  for (auto& [used, node] : nodes) list.push_back(std::move(node));
  const nlohmann::json json = {
      {"format", kFormat}, {"machine", machine}, {"nodes", std::move(list)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void CostHistory::parse(std::string_view text, std::string_view machine, const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  const JsonFields fields(json, where);
  if (fields.text("format") != kFormat) fields.refuse("of another format");
  if (fields.text("machine") != machine) fields.refuse("of another machine or build");
  const nlohmann::json& nodes = fields.list("nodes");
  if (nodes.size() > kMaxNodes) fields.refuse(fmt::format("more than {} nodes", kMaxNodes));
  std::vector<std::pair<CostKey, double>> read;
  for (const nlohmann::json& node : nodes) {
    const JsonFields entry(node, where + ": a node");
    const CostKey key{entry.text("node"), entry.integer("rows", 0, kMaxRows)};
    const nlohmann::json& samples = entry.list("seconds");
    if (samples.size() > kMaxSamples) entry.refuse("too many samples");
    for (const nlohmann::json& sample : samples) {
      const double seconds = sample.is_number() ? sample.get<double>() : 0;
      if (!(seconds >= kLeastSeconds && seconds <= kMostSeconds)) {
        entry.refuse("a sample is no time");
      }
      read.emplace_back(key, seconds);
    }
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [key, seconds] : read) insert(key, seconds);
}

std::string history_key(System& system) {
  const KernelRegistry& kernels = system.kernels(*system.backends()[0]);
  std::string key = fmt::format("node history 1|{}|{}|{}|{}", config::kVersion, config::kCpuArch,
                                kBuildId, system.open("cpu").info().title);
  for (const std::string& name : kernels.providers()) {
    key += fmt::format("|{}={}", name, kernels.kernel_count(name));
  }
  return key;
}

std::string history_path(std::string_view key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  return fmt::format("{}/history-{:016x}.json", folder, std::hash<std::string_view>()(key));
}

std::shared_ptr<CostHistory> kept_history(System& system) {
  const std::string key = history_key(system);
  const std::string path = history_path(key);
  auto history = std::make_shared<CostHistory>();
  if (path.empty()) return history;
  try {
    history->parse(read_file(path, kMaxBytes), key, path);
  } catch (const Error&) {  // measured anew
  }
  return history;
}

bool keep_history(System& system, CostHistory& history) {
  const std::string key = history_key(system);
  const std::filesystem::path path = history_path(key);
  if (path.empty()) return false;
  const auto added = history.take_new();
  if (added.empty()) return true;
  const std::shared_ptr<CostHistory> whole = kept_history(system);
  for (const auto& [node, seconds] : added) whole->add(node, seconds);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  try {
    const std::string text = whole->to_json(key);
    const std::string_view parts[] = {text};
    write_file(path, parts);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace turnout
