#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/report/compare.hpp"

namespace turnout {

/// For text and attribute values. Control characters become U+FFFD.
std::string escape_html(std::string_view text);

/// JSON for inside <script type="application/json">: no "<", ">" or "&", no line breaks.
std::string escape_json(std::string_view json);

/// At most `limit` characters, the last one "…" if some were cut.
std::string shorten(std::string_view text, std::size_t limit);

/// "8.31 ms", with "µs".
std::string html_seconds(double seconds);

/// Whether a row has a latency that can be drawn.
bool has_latency(const CompareRow& row);

bool is_cpu(std::string_view device);

/// "measured" and "calibrated" as they are, "mixed", and "predicted" for all else: how it is drawn.
std::string_view style_of(Evidence evidence);

/// The devices in the order of their first rows, and the CSS class that gives each its colour.
class DeviceStyles {
 public:
  explicit DeviceStyles(const Comparison& comparison);
  const std::vector<std::string>& devices() const { return devices_; }
  const std::string& css(std::string_view device) const;

 private:
  std::vector<std::string> devices_;
  std::vector<std::string> css_;
};

/// The tried batches, ascending.
std::vector<std::int64_t> batches_of(const Comparison& comparison);

/// "from batch 25 (between 16 and 32)".
std::string crossover_text(const Crossover& crossover);

extern const std::string_view kHtmlStyle;   ///< contents of <style>
extern const std::string_view kHtmlScript;  ///< contents of <script>

}  // namespace turnout
