#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/batch_costs.hpp"

namespace turnout {

/// A plan as its JSON has it, without the graph.
struct PlanRecord {
  struct Option {
    std::string device;
    bool possible = false;
    CostPart time;
  };
  struct NodeRecord {
    std::string name, op, device, provider;  ///< provider: empty for a view
    std::vector<Option> options;
    const Option* on(std::string_view device) const;
  };
  struct Copy {
    std::string value, from, to;
    double bytes = 0;
    CostPart time;
  };
  std::string where;  ///< the file
  std::string model;
  Bindings dims;
  CostPart serial, lanes;
  std::vector<NodeRecord> nodes;
  std::vector<Copy> copies;
};

/// Reads what `turnout plan --json` wrote. Hostile input: every fault is one Error invalid_argument
/// that begins with `where`.
PlanRecord parse_plan(std::string_view json, const std::string& where);

/// What differs between two plans of one model.
struct PlanDiff {
  struct Moved {
    std::string node, op, from, to;
    PlanRecord::Option from_before, to_before, from_after, to_after;
    std::string why;
  };
  struct CopyChange {
    std::string value, from, to;
    const PlanRecord::Copy* before = nullptr;  ///< null: new
    const PlanRecord::Copy* after = nullptr;   ///< null: gone
  };
  std::vector<Moved> moved;
  std::vector<std::string> only_before, only_after;  ///< nodes
  std::vector<CopyChange> copies;                    ///< new, gone, or of other bytes
  int same = 0;                                      ///< nodes where they were
  const PlanRecord* before = nullptr;
  const PlanRecord* after = nullptr;
};

/// Pure. Refers to both records. Error invalid_argument if their models have different names.
PlanDiff diff_plans(const PlanRecord& before, const PlanRecord& after);

std::string to_text(const PlanDiff& diff);
std::string to_json(const PlanDiff& diff);

}  // namespace turnout
