// Reads profiles of devices that need not be in the machine. A profile is hostile input: it may
// come from anyone.
//
// parse_profile() reads the text once into a JSON tree, refusing depth and repeated keys on the
// way, then takes every known key out of the tree. What is left over is an unknown key. Example of
// one figure:
//   "boost_clock_hz": {"value": 1.53e9, "evidence": "spec", "source": "whitepaper, table 1"}
#include "backends/gpu/profile.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 4;  // root, link, figure; one to spare
constexpr std::size_t kMaxText = 1000;
constexpr std::size_t kMaxName = 64;

constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kAliases = {
    {{"h100", "h100-pcie"}}};

/// Text from outside, fit for a message: control and non-ASCII bytes escaped, long text cut.
std::string printable(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string out;
  for (unsigned char c : text.substr(0, kShown)) {
    if (c < 0x20 || c >= 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return text.size() > kShown ? out + "..." : out;
}

[[noreturn]] void refuse(std::string_view where, std::string_view problem) {
  fail(ErrorCode::invalid_model, "[profile] {}: {}", printable(where), problem);
}

/// Refuses depth and repeated keys while the tree is built.
class Guard {
 public:
  explicit Guard(std::string_view where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using E = Json::parse_event_t;
    if (event == E::object_start || event == E::array_start) {
      if (depth >= kMaxDepth)
        refuse(where_, fmt::format("nested deeper than {} levels", kMaxDepth));
      keys_.emplace_back();
    } else if (event == E::object_end || event == E::array_end) {
      keys_.pop_back();
    } else if (event == E::key && !keys_.back().insert(value.get<std::string>()).second) {
      refuse(where_, fmt::format("key '{}' is there twice", printable(value.get<std::string>())));
    }
    return true;
  }

 private:
  std::string_view where_;
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(std::string_view text, std::string_view where) {
  if (text.size() > kMaxProfileBytes)
    refuse(where, fmt::format("{} bytes; a profile has at most {}", text.size(), kMaxProfileBytes));
  try {
    Guard guard(where);
    return Json::parse(text, [&guard](int depth, Json::parse_event_t event, Json& value) {
      return guard(depth, event, value);
    });
  } catch (const Json::exception& error) {
    refuse(where, fmt::format("not valid JSON: {}", printable(error.what())));
  }
}

/// What a number may be. The lower bounds keep divisions by a figure finite.
struct Range {
  double low;
  double high;
  bool whole = false;
};

constexpr Range kCount{1, 65536, true};
constexpr Range kClock{1e6, 1e11};
constexpr Range kPower{1, 1e5};
constexpr Range kBytes{1, 1.125899906842624e15, true};  // 2^50
constexpr Range kBandwidth{1, 1e15};
constexpr Range kRate{1, 1e19};
constexpr Range kSeconds{1e-9, 10};

/// Takes the keys of one JSON object out of it, and names each problem with its place.
class Reader {
 public:
  Reader(Json object, std::string_view where, std::string path)
      : object_(std::move(object)), where_(where), path_(std::move(path)) {
    if (!object_.is_object())
      refuse(where_, fmt::format("{} must be an object, not {}",
                                 path_.empty() ? "the profile" : path_, object_.type_name()));
  }

  bool has(std::string_view key) const { return object_.contains(key); }

  std::string text(std::string_view key, std::size_t longest = kMaxText) {
    const Json value = take(key);
    if (!value.is_string())
      refuse(where_, fmt::format("{} must be a string, not {}", at(key), value.type_name()));
    auto text = value.get<std::string>();
    if (text.empty() || text.size() > longest)
      refuse(where_,
             fmt::format("{} must have 1 to {} bytes, not {}", at(key), longest, text.size()));
    // Text of a profile reaches the user's terminal.
    const bool control = std::any_of(text.begin(), text.end(),
                                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (control || text.find("\xc2\x80") != std::string::npos || has_c1_control(text))
      refuse(where_, fmt::format("{} has a control character", at(key)));
    return text;
  }

  std::string one_of(std::string_view key, std::initializer_list<std::string_view> allowed) {
    auto value = text(key);
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
    refuse(where_, fmt::format("{} must be one of {}, not '{}'", at(key), fmt::join(allowed, ", "),
                               printable(value)));
  }

  Figure figure(std::string_view key, Range range) {
    Reader reader = object(key);
    Figure figure;
    figure.value = reader.number("value", range);
    figure.evidence = reader.one_of("evidence", {"spec", "measured", "default"});
    figure.source = reader.text("source");
    reader.finish();
    return figure;
  }

  std::optional<Figure> optional_figure(std::string_view key, Range range) {
    if (!has(key)) return std::nullopt;
    return figure(key, range);
  }

  Reader object(std::string_view key) { return Reader(take(key), where_, at(key)); }

  /// To be called last: what nobody took is unknown.
  void finish() const {
    if (!object_.empty())
      refuse(where_, fmt::format("unknown key '{}'{}", printable(object_.begin().key()),
                                 path_.empty() ? "" : " in " + path_));
  }

 private:
  std::string at(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  Json take(std::string_view key) {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(where_, fmt::format("{} is missing", at(key)));
    Json value = std::move(*found);
    object_.erase(found);
    return value;
  }

  double number(std::string_view key, Range range) {
    const Json json = take(key);
    if (!json.is_number())
      refuse(where_, fmt::format("{} must be a number, not {}", at(key), json.type_name()));
    const auto value = json.get<double>();
    if (!std::isfinite(value) || value < range.low || value > range.high)
      refuse(where_, fmt::format("{} must be from {} to {}, not {}", at(key), range.low, range.high,
                                 value));
    if (range.whole && value != std::floor(value))
      refuse(where_, fmt::format("{} must be a whole number, not {}", at(key), value));
    return value;
  }

  /// U+0080 to U+009F, which terminals take for control characters too.
  static bool has_c1_control(std::string_view text) {
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      const auto next = static_cast<unsigned char>(text[i + 1]);
      if (static_cast<unsigned char>(text[i]) == 0xc2 && next >= 0x80 && next <= 0x9f) return true;
    }
    return false;
  }

  Json object_;
  std::string_view where_;
  std::string path_;
};

PeakRates read_rates(Reader reader) {
  PeakRates rates;
  rates.f64 = reader.optional_figure("f64", kRate);
  rates.f32 = reader.optional_figure("f32", kRate);
  rates.tf32 = reader.optional_figure("tf32", kRate);
  rates.f16 = reader.optional_figure("f16", kRate);
  rates.bf16 = reader.optional_figure("bf16", kRate);
  rates.int8 = reader.optional_figure("int8", kRate);
  reader.finish();
  return rates;
}

LinkProfile read_link(Reader reader) {
  LinkProfile link;
  link.name = reader.text("name", kMaxName);
  link.h2d_bytes_per_s = reader.figure("h2d_bytes_per_s", kBandwidth);
  link.d2h_bytes_per_s = reader.figure("d2h_bytes_per_s", kBandwidth);
  link.pageable_h2d_bytes_per_s = reader.figure("pageable_h2d_bytes_per_s", kBandwidth);
  link.pageable_d2h_bytes_per_s = reader.figure("pageable_d2h_bytes_per_s", kBandwidth);
  link.latency_s = reader.figure("latency_s", kSeconds);
  reader.finish();
  return link;
}

bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

const Figure* pointer(const std::optional<Figure>& figure) { return figure ? &*figure : nullptr; }

const Figure* rate_of(const PeakRates& rates, RateClass rate) {
  switch (rate) {
    case RateClass::f64:
      return pointer(rates.f64);
    case RateClass::f32:
      return pointer(rates.f32);
    case RateClass::tf32:
      return pointer(rates.tf32);
    case RateClass::f16:
      return pointer(rates.f16);
    case RateClass::bf16:
      return pointer(rates.bf16);
    case RateClass::int8:
      return pointer(rates.int8);
  }
  return nullptr;
}

/// Number of single-character changes that turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

[[noreturn]] void unknown_profile(std::string_view name) {
  const auto known = shipped_profiles();
  std::string hint;
  if (!known.empty() && name.size() <= kMaxName) {
    const auto closest =
        std::min_element(known.begin(), known.end(), [name](const auto& a, const auto& b) {
          return edit_distance(name, a) < edit_distance(name, b);
        });
    hint = fmt::format("did you mean '{}'? ", *closest);
  }
  fail(ErrorCode::not_found,
       "[profile] unknown profile '{}'; {}known: {}; or give the path of a .json file",
       printable(name), hint, fmt::join(known, ", "));
}

std::string read_file(std::string_view path) {
  namespace fs = std::filesystem;
  const auto shown = printable(path);
  if (path.find('\0') != std::string_view::npos)
    fail(ErrorCode::invalid_argument, "[profile] {}: a path can't hold a zero byte", shown);
  std::error_code error;
  const auto status = fs::status(fs::path(path), error);
  if (status.type() == fs::file_type::not_found)
    fail(ErrorCode::not_found, "[profile] {}: no such file", shown);
  if (error) fail(ErrorCode::io, "[profile] {}: {}", shown, error.message());
  if (fs::is_directory(status))
    fail(ErrorCode::io, "[profile] {}: is a directory, not a file", shown);
  if (!fs::is_regular_file(status)) fail(ErrorCode::io, "[profile] {}: not a regular file", shown);
  errno = 0;
  std::ifstream file{fs::path(path), std::ios::binary};
  if (!file) fail(ErrorCode::io, "[profile] {}: can't be opened: {}", shown, std::strerror(errno));
  // One byte over the limit is enough to see that a file is too long, however long it is.
  std::string text(kMaxProfileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) fail(ErrorCode::io, "[profile] {}: reading failed", shown);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxProfileBytes)
    refuse(path, fmt::format("larger than {} bytes", kMaxProfileBytes));
  return text;
}

GpuProfile load_shipped(std::string_view name) {
  for (const auto& [alias, target] : kAliases)
    if (name == alias) name = target;
  for (const auto& profile : embedded_profiles())
    if (profile.name == name) return parse_profile(profile.json, name);
  unknown_profile(name);
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json");
}

int read_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

Figure assumed(double value, std::string source) { return {value, "default", std::move(source)}; }

}  // namespace

const Figure* GpuProfile::best_flops_per_s(RateClass rate) const {
  const Figure* vector = rate_of(vector_flops_per_s, rate);
  const Figure* matrix = rate_of(matrix_flops_per_s, rate);
  if (!vector || !matrix) return matrix ? matrix : vector;
  return matrix->value >= vector->value ? matrix : vector;
}

const Figure* GpuProfile::vector_rate(RateClass rate) const {
  return rate_of(vector_flops_per_s, rate);
}

GpuProfile parse_profile(std::string_view json, std::string_view where) {
  Reader reader(parse_json(json, where), where, "");
  GpuProfile profile;
  profile.name = reader.text("name", kMaxName);
  if (!is_name(profile.name))
    refuse(where, "name may have lower-case letters, digits and -._ alone");
  profile.title = reader.text("title");
  profile.vendor = reader.one_of("vendor", {"NVIDIA", "AMD"});
  profile.generation = reader.text("generation");
  if (reader.has("note")) profile.note = reader.text("note");
  profile.compute_units = reader.figure("compute_units", kCount);
  profile.warp_size = reader.figure("warp_size", kCount);
  profile.base_clock_hz = reader.figure("base_clock_hz", kClock);
  profile.boost_clock_hz = reader.figure("boost_clock_hz", kClock);
  profile.tdp_w = reader.figure("tdp_w", kPower);
  profile.memory_bytes = reader.figure("memory_bytes", kBytes);
  profile.memory_bandwidth_bytes_per_s = reader.figure("memory_bandwidth_bytes_per_s", kBandwidth);
  profile.l2_bytes = reader.figure("l2_bytes", kBytes);
  profile.shared_memory_per_unit_bytes = reader.figure("shared_memory_per_unit_bytes", kBytes);
  profile.vector_flops_per_s = read_rates(reader.object("vector_flops_per_s"));
  profile.matrix_flops_per_s = read_rates(reader.object("matrix_flops_per_s"));
  profile.launch_overhead_s = reader.figure("launch_overhead_s", kSeconds);
  profile.synchronize_s = reader.figure("synchronize_s", kSeconds);
  profile.link = read_link(reader.object("link"));
  reader.finish();
  if (!profile.vector_flops_per_s.f32) refuse(where, "vector_flops_per_s.f32 is missing");
  if (profile.warp_size.value != 32 && profile.warp_size.value != 64)
    refuse(where, fmt::format("warp_size.value must be 32 or 64, not {}", profile.warp_size.value));
  if (profile.base_clock_hz.value > profile.boost_clock_hz.value)
    refuse(where, "base_clock_hz is above boost_clock_hz");
  return profile;
}

GpuProfile load_profile(std::string_view name_or_path) {
  std::string_view name = name_or_path;
  std::optional<LinkProfile> link;
  const auto at = name.rfind('@');
  // A path may have an '@' of its own; only a link begins with "pcie" and has no '/' or '.' after
  // it.
  if (at != std::string_view::npos) {
    const auto tail = name.substr(at + 1);
    if (!is_path(name) ||
        (tail.starts_with("pcie") && tail.find_first_of("/.") == std::string_view::npos)) {
      link = pcie_link(tail);
      name = name.substr(0, at);
    }
  }
  GpuProfile profile = is_path(name) ? parse_profile(read_file(name), name) : load_shipped(name);
  if (link) profile.link = *std::move(link);
  return profile;
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const auto& profile : embedded_profiles()) names.emplace_back(profile.name);
  std::sort(names.begin(), names.end());
  return names;
}

LinkProfile pcie_link(std::string_view spec) {
  constexpr double kEfficiency = 0.82;
  constexpr double kHostCopyBytesPerS = 12e9;
  constexpr double kStep = 1e6;  // figures are rounded to 1 MB/s
  const auto numbers = spec.starts_with("pcie") ? spec.substr(4) : std::string_view();
  const auto cross = numbers.find('x');
  const int generation = read_int(numbers.substr(0, cross));
  const int lanes = cross == std::string_view::npos ? 16 : read_int(numbers.substr(cross + 1));
  constexpr std::array kLanes = {1, 2, 4, 8, 16};
  if (generation < 3 || generation > 5 ||
      std::find(kLanes.begin(), kLanes.end(), lanes) == kLanes.end())
    fail(ErrorCode::invalid_argument,
         "[profile] unknown link '{}'; known: pcie3, pcie4, pcie5, with x1, x2, x4, x8 or x16 "
         "after it (without: x16)",
         printable(spec));
  // 8, 16 and 32 GT/s a lane, 128 bits of payload in 130 (PCI Express Base Specification,
  // generations 3 to 5).
  const double rate = 8e9 * (1 << (generation - 3)) * lanes * 128 / 130 / 8;
  const double pinned = std::round(rate * kEfficiency / kStep) * kStep;
  const double pageable = std::round(1 / (1 / pinned + 1 / kHostCopyBytesPerS) / kStep) * kStep;
  const Figure pinned_figure = assumed(pinned,
                                       "82 % of the link's rate after encoding: common for large "
                                       "pinned copies, packet headers and flow control "
                                       "taken off");
  const Figure pageable_figure = assumed(
      pageable, "pinned rate in series with a 12 GB/s host copy into the driver's pinned buffer");
  LinkProfile link;
  link.name = fmt::format("pcie{}x{}", generation, lanes);
  link.h2d_bytes_per_s = link.d2h_bytes_per_s = pinned_figure;
  link.pageable_h2d_bytes_per_s = link.pageable_d2h_bytes_per_s = pageable_figure;
  link.latency_s = assumed(8e-6,
                           "a small pinned copy commonly takes 5 to 10 us from submission to "
                           "completion; no sheet states it");
  return link;
}

}  // namespace turnout
