#pragma once

#include <string>
#include <vector>

#include "runtime/plan/advise.hpp"

namespace turnout {

struct AdviceReport {
  std::string model;
  Objective objective = Objective::latency;
  std::vector<std::int64_t> batches;
  std::vector<Advice> ranked;
};

std::string to_text(const AdviceReport& report);
std::string to_json(const AdviceReport& report);

}  // namespace turnout
