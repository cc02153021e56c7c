#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/device.hpp"

namespace turnout {

/// Reads JSON that somebody else wrote. Every error is invalid_argument and begins with `where`.
/// More than 64 MiB, more than 64 levels, or text that isn't JSON: an error.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// Fields of a JSON object, checked. `where` names the object in errors: "a.json: row 3".
class JsonFields {
 public:
  JsonFields(const nlohmann::json& json, std::string where);

  bool has(std::string_view key) const;
  bool is_null(std::string_view key) const;  ///< there, and null
  std::string text(std::string_view key) const;
  /// Finite and >= 0.
  double number(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  bool flag(std::string_view key) const;
  Evidence evidence(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// The elements of a list; `kMaxElements` at most. Missing: an error.
  const nlohmann::json& list(std::string_view key) const;
  const nlohmann::json& object(std::string_view key) const;
  const std::string& where() const { return where_; }
  [[noreturn]] void refuse(const std::string& what) const;

  static constexpr std::size_t kMaxElements = 1 << 20;

 private:
  const nlohmann::json& field(std::string_view key) const;

  const nlohmann::json& json_;
  std::string where_;
};

}  // namespace turnout
