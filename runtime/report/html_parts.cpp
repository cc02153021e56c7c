#include "runtime/report/html_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/report/units.hpp"

namespace turnout {
namespace {

constexpr std::size_t kPaletteSize = 7;  // --c0 .. --c6 of the style
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          escaped += kReplacement;
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

// These characters occur in JSON only inside strings, line breaks and indents only outside.
std::string escape_json(std::string_view json) {
  std::string escaped;
  bool line_start = false;
  for (const char c : json) {
    if (c == '\n' || c == '\r' || (line_start && c == ' ')) {
      line_start = true;
      continue;
    }
    line_start = false;
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string shorten(std::string_view text, std::size_t limit) {
  std::size_t count = 0;
  std::size_t cut = 0;  // where the last character that would stay ends
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!starts_character(text[i])) continue;
    if (count + 1 == limit) cut = i;
    if (++count > limit) return std::string(text.substr(0, cut)) + "\xE2\x80\xA6";
  }
  return std::string(text);
}

std::string html_seconds(double seconds) {
  std::string text = format_seconds(seconds);
  if (text.ends_with("us")) text.replace(text.size() - 2, 1, "\xC2\xB5");
  return text;
}

bool has_latency(const CompareRow& row) {
  return row.skipped.empty() && std::isfinite(row.latency_seconds) && row.latency_seconds > 0 &&
         row.batch > 0;
}

bool is_cpu(std::string_view device) {
  const std::string_view base = base_device(device);
  return base == "cpu" || base.starts_with("cpu:");
}

std::string_view style_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
    case Evidence::calibrated:
    case Evidence::mixed:
      return to_string(evidence);
    default:
      return "predicted";
  }
}

DeviceStyles::DeviceStyles(const Comparison& comparison) {
  std::size_t colours = 0;
  for (const CompareRow& row : comparison.rows) {
    if (std::find(devices_.begin(), devices_.end(), row.device) != devices_.end()) continue;
    devices_.push_back(row.device);
    css_.push_back(row.device == "auto" ? "auto" : fmt::format("c{}", colours++ % kPaletteSize));
  }
}

const std::string& DeviceStyles::css(std::string_view device) const {
  static const std::string kUnknown = "none";
  const auto at = std::find(devices_.begin(), devices_.end(), device);
  return at == devices_.end() ? kUnknown : css_[static_cast<std::size_t>(at - devices_.begin())];
}

std::vector<std::int64_t> batches_of(const Comparison& comparison) {
  std::set<std::int64_t> batches;
  for (const CompareRow& row : comparison.rows) {
    if (row.batch > 0) batches.insert(row.batch);
  }
  return {batches.begin(), batches.end()};
}

std::string crossover_text(const Crossover& crossover) {
  if (crossover.low == crossover.high) {
    return fmt::format("from batch {} (the smallest tried)", crossover.batch);
  }
  return fmt::format("from batch {} (between {} and {})", crossover.batch, crossover.low,
                     crossover.high);
}

}  // namespace turnout
