#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace turnout {

/// Value of an attribute. Enumerations are strings, flags are integers 0 and 1.
using AttrValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

enum class AttrType { integer, real, text, integers, reals, texts };

std::string to_string(const AttrValue& value);

/// Attributes of a node, sorted by name. After GraphBuilder checked a node every attribute of its
/// op's schema is present (defaults filled in), but for optional ones without a default.
class AttrMap {
 public:
  AttrMap() = default;
  AttrMap(std::initializer_list<std::pair<std::string, AttrValue>> entries);

  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// Typed access; Error when absent or of another type.
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  const std::vector<double>& reals(std::string_view name) const {
    return get<std::vector<double>>(name);
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  friend bool operator==(const AttrMap&, const AttrMap&) = default;

 private:
  template <typename T>
  const T& get(std::string_view name) const {
    const AttrValue* value = find(name);
    if (value == nullptr) fail(ErrorCode::internal, "attribute '{}' is missing", name);
    const T* typed = std::get_if<T>(value);
    if (typed == nullptr) fail(ErrorCode::internal, "attribute '{}' has another type", name);
    return *typed;
  }

  std::vector<std::pair<std::string, AttrValue>> entries_;
};

/// Schema of one attribute.
struct AttrDef {
  std::string name;
  AttrType type = AttrType::integer;
  std::string doc;
  bool required = false;
  bool has_default = false;  ///< without one an attribute that isn't given stays absent
  AttrValue default_value{};
};

/// Shorthands for op definitions.
AttrDef required_attr(std::string name, AttrType type, std::string doc);
AttrDef optional_attr(std::string name, AttrType type, std::string doc);  ///< absent when not given
AttrDef attr(std::string name, AttrValue default_value, std::string doc);

}  // namespace turnout
