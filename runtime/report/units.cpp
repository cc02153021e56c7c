#include "runtime/report/units.hpp"

#include <fmt/format.h>

#include <cmath>

namespace turnout {

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  // Below half a unit of the last digit, so that nothing rounds up to "1e+03 us".
  if (std::abs(seconds) < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (std::abs(seconds) < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string format_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024.0 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1024.0 * 1024 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
  return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
}

std::string format_count(double per_second) {
  if (per_second >= 999500) return fmt::format("{:.3g}M", per_second / 1e6);
  if (per_second >= 9999.5) return fmt::format("{:.3g}k", per_second / 1e3);
  return fmt::format("{:.4g}", per_second);
}

}  // namespace turnout
