// Reads profiles of devices that need not be in the machine. A profile is hostile input: it may
// come from anyone.
//
// parse_profile() reads the text once into a JSON tree, refusing depth and repeated keys on the
// way, then takes every known key out of the tree. What is left over is an unknown key. Example of
// one figure:
//   "boost_clock_hz": {"value": 1.53e9, "evidence": "spec", "source": "whitepaper, table 1"}
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "backends/gpu/profile.hpp"
#include "backends/gpu/profile_detail.hpp"
#include "core/error.hpp"

namespace turnout {

using profile_detail::printable;
using profile_detail::refuse_profile;

namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 4;  // root, link, figure; one to spare
constexpr std::size_t kMaxText = 1000;

/// Refuses depth and repeated keys while the tree is built.
class Guard {
 public:
  explicit Guard(std::string_view where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using E = Json::parse_event_t;
    if (event == E::object_start || event == E::array_start) {
      if (depth >= kMaxDepth)
        refuse_profile(where_, fmt::format("nested deeper than {} levels", kMaxDepth));
      keys_.emplace_back();
    } else if (event == E::object_end || event == E::array_end) {
      keys_.pop_back();
    } else if (event == E::key && !keys_.back().insert(value.get<std::string>()).second) {
      refuse_profile(where_,
                     fmt::format("key '{}' is there twice", printable(value.get<std::string>())));
    }
    return true;
  }

 private:
  std::string_view where_;
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(std::string_view text, std::string_view where) {
  if (text.size() > kMaxProfileBytes)
    refuse_profile(
        where, fmt::format("{} bytes; a profile has at most {}", text.size(), kMaxProfileBytes));
  try {
    Guard guard(where);
    return Json::parse(text, [&guard](int depth, Json::parse_event_t event, Json& value) {
      return guard(depth, event, value);
    });
  } catch (const Json::exception& error) {
    refuse_profile(where, fmt::format("not valid JSON: {}", printable(error.what())));
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
      refuse_profile(
          where_, fmt::format("{} must be an object, not {}", path_.empty() ? "the profile" : path_,
                              object_.type_name()));
  }

  bool has(std::string_view key) const { return object_.contains(key); }

  std::string text(std::string_view key, std::size_t longest = kMaxText) {
    const Json value = take(key);
    if (!value.is_string())
      refuse_profile(where_,
                     fmt::format("{} must be a string, not {}", at(key), value.type_name()));
    auto text = value.get<std::string>();
    if (text.empty() || text.size() > longest)
      refuse_profile(
          where_, fmt::format("{} must have 1 to {} bytes, not {}", at(key), longest, text.size()));
    // Text of a profile reaches the user's terminal.
    if (has_control(text))
      refuse_profile(where_, fmt::format("{} has a control character", at(key)));
    return text;
  }

  std::string one_of(std::string_view key, std::initializer_list<std::string_view> allowed) {
    auto value = text(key);
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
    refuse_profile(where_, fmt::format("{} must be one of {}, not '{}'", at(key),
                                       fmt::join(allowed, ", "), printable(value)));
  }

  Figure figure(std::string_view key, Range range) {
    Reader reader = object(key);
    Figure figure;
    figure.value = reader.number("value", range);
    const auto evidence = reader.one_of("evidence", {"spec", "measured", "default"});
    figure.evidence = evidence == "spec"       ? Evidence::spec
                      : evidence == "measured" ? Evidence::measured
                                               : Evidence::fallback;
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
      refuse_profile(where_, fmt::format("unknown key '{}'{}", printable(object_.begin().key()),
                                         path_.empty() ? "" : " in " + path_));
  }

 private:
  std::string at(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  Json take(std::string_view key) {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse_profile(where_, fmt::format("{} is missing", at(key)));
    Json value = std::move(*found);
    object_.erase(found);
    return value;
  }

  double number(std::string_view key, Range range) {
    const Json json = take(key);
    if (!json.is_number())
      refuse_profile(where_, fmt::format("{} must be a number, not {}", at(key), json.type_name()));
    const auto value = json.get<double>();
    if (!std::isfinite(value) || value < range.low || value > range.high)
      refuse_profile(where_, fmt::format("{} must be from {} to {}, not {}", at(key), range.low,
                                         range.high, value));
    if (range.whole && value != std::floor(value))
      refuse_profile(where_, fmt::format("{} must be a whole number, not {}", at(key), value));
    return value;
  }

  /// ASCII control characters and U+0080 to U+009F, which terminals obey too. The text is valid
  /// UTF-8.
  static bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c < 0x20 || c == 0x7f) return true;
      if (c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
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
  link.name = reader.text("name", kMaxProfileName);
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

}  // namespace

std::string profile_detail::printable(std::string_view text) {
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

void profile_detail::refuse_profile(std::string_view where, std::string_view problem) {
  fail(ErrorCode::invalid_model, "[profile] {}: {}", printable(where), problem);
}

GpuProfile parse_profile(std::string_view json, std::string_view where) {
  Reader reader(parse_json(json, where), where, "");
  GpuProfile profile;
  profile.name = reader.text("name", kMaxProfileName);
  if (!is_name(profile.name))
    refuse_profile(where, "name may have lower-case letters, digits and -._ alone");
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
  if (!profile.vector_flops_per_s.f32) refuse_profile(where, "vector_flops_per_s.f32 is missing");
  if (profile.warp_size.value != 32 && profile.warp_size.value != 64)
    refuse_profile(
        where, fmt::format("warp_size.value must be 32 or 64, not {}", profile.warp_size.value));
  if (profile.base_clock_hz.value > profile.boost_clock_hz.value)
    refuse_profile(where, "base_clock_hz is above boost_clock_hz");
  return profile;
}

}  // namespace turnout
