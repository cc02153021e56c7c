#include "core/attrs.hpp"

#include <algorithm>

namespace turnout {
namespace {

bool before(const std::pair<std::string, AttrValue>& entry, std::string_view name) {
  return entry.first < name;
}

}  // namespace

std::string to_string(const AttrValue& value) {
  return std::visit(
      []<typename T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::string>) {
          return fmt::format("\"{}\"", v);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return fmt::format("[\"{}\"]", fmt::join(v, "\",\""));
        } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
          return fmt::format("{}", v);
        } else {
          return fmt::format("[{}]", fmt::join(v, ","));
        }
      },
      value);
}

AttrMap::AttrMap(std::initializer_list<std::pair<std::string, AttrValue>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void AttrMap::set(std::string_view name, AttrValue value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::string(name), std::move(value));
  }
}

void AttrMap::erase(std::string_view name) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  if (at != entries_.end() && at->first == name) entries_.erase(at);
}

const AttrValue* AttrMap::find(std::string_view name) const {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

AttrDef required_attr(std::string name, AttrType type, std::string doc) {
  AttrDef def{std::move(name), type, std::move(doc)};
  def.required = true;
  return def;
}

AttrDef optional_attr(std::string name, AttrType type, std::string doc) {
  return {std::move(name), type, std::move(doc)};
}

AttrDef attr(std::string name, AttrValue default_value, std::string doc) {
  AttrDef def{std::move(name), static_cast<AttrType>(default_value.index()), std::move(doc)};
  def.has_default = true;
  def.default_value = std::move(default_value);
  return def;
}

}  // namespace turnout
