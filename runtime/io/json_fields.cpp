#include "runtime/io/json_fields.hpp"

#include <cmath>

#include "core/error.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 64 << 20;
constexpr int kMaxDepth = 64;

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  if (text.size() > kMaxBytes) {
    fail(ErrorCode::invalid_argument, "{}: larger than 64 MiB", where);
  }
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) {
      fail(ErrorCode::invalid_argument, "{}: nested more than {} levels", where, kMaxDepth);
    }
    return true;
  };
  Json json = Json::parse(text, limit, false);
  if (json.is_discarded()) fail(ErrorCode::invalid_argument, "{}: not valid JSON", where);
  return json;
}

JsonFields::JsonFields(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json_.is_object()) refuse("not a JSON object");
}

void JsonFields::refuse(const std::string& what) const {
  fail(ErrorCode::invalid_argument, "{}: {}", where_, what);
}

bool JsonFields::has(std::string_view key) const { return json_.contains(std::string(key)); }

bool JsonFields::is_null(std::string_view key) const { return has(key) && field(key).is_null(); }

const Json& JsonFields::field(std::string_view key) const {
  const auto at = json_.find(std::string(key));
  if (at == json_.end()) refuse(fmt::format("'{}' is missing", key));
  return *at;
}

std::string JsonFields::text(std::string_view key) const {
  const Json& json = field(key);
  if (!json.is_string()) refuse(fmt::format("'{}' isn't a text", key));
  return json.get<std::string>();
}

double JsonFields::number(std::string_view key) const {
  const Json& json = field(key);
  const double value = json.is_number() ? json.get<double>() : -1;
  if (!(value >= 0) || !std::isfinite(value)) {
    refuse(fmt::format("'{}' isn't a finite number >= 0", key));
  }
  return value;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const Json& json = field(key);
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                        : json.is_number_integer();
  const std::int64_t value = fits ? json.get<std::int64_t>() : low - 1;
  if (value < low || value > high) {
    refuse(fmt::format("'{}' isn't a whole number from {} to {}", key, low, high));
  }
  return value;
}

bool JsonFields::flag(std::string_view key) const {
  const Json& json = field(key);
  if (!json.is_boolean()) refuse(fmt::format("'{}' isn't true or false", key));
  return json.get<bool>();
}

Evidence JsonFields::evidence(std::string_view key) const {
  const std::string name = text(key);
  for (const Evidence evidence :
       {Evidence::measured, Evidence::calibrated, Evidence::predicted, Evidence::spec,
        Evidence::fallback, Evidence::mixed, Evidence::unprobed}) {
    if (to_string(evidence) == name) return evidence;
  }
  refuse(fmt::format("'{}' isn't an evidence: '{}'", key, name.substr(0, 40)));
}

const Json& JsonFields::list(std::string_view key) const {
  const Json& json = field(key);
  if (!json.is_array()) refuse(fmt::format("'{}' isn't a list", key));
  if (json.size() > kMaxElements) {
    refuse(fmt::format("'{}' has more than {} elements", key, kMaxElements));
  }
  return json;
}

const Json& JsonFields::object(std::string_view key) const {
  const Json& json = field(key);
  if (!json.is_object()) refuse(fmt::format("'{}' isn't an object", key));
  return json;
}

std::vector<std::string> JsonFields::texts(std::string_view key) const {
  std::vector<std::string> result;
  for (const Json& json : list(key)) {
    if (!json.is_string()) refuse(fmt::format("'{}' isn't a list of texts", key));
    result.push_back(json.get<std::string>());
  }
  return result;
}

}  // namespace turnout
