#include "runtime/plan/evidence_error.hpp"

#include <fmt/format.h>

namespace turnout {

double relative_error(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return 0.05;
    case Evidence::calibrated:
      return 0.50;
    case Evidence::predicted:
    case Evidence::spec:
    case Evidence::mixed:
      return 0.30;
    case Evidence::fallback:
    case Evidence::unprobed:
      return 1.0;
  }
  return 1.0;
}

std::string relative_errors_text() {
  std::string text;
  for (const Evidence evidence :
       {Evidence::measured, Evidence::calibrated, Evidence::predicted, Evidence::fallback}) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", to_string(evidence),
                        100 * relative_error(evidence));
  }
  return text;
}

}  // namespace turnout
