#pragma once

#include <memory>
#include <string>

#include "runtime/session.hpp"

namespace turnout {

/// "format" of the JSON of a plan, which plan-diff reads.
inline constexpr std::string_view kPlanFormat = "turnout-plan-1";

/// Where a node would move, and when: found by planning again.
struct Flip {
  std::int64_t batch = 0;  ///< 0: at no batch tried
  std::string batch_device;
  double link_factor = 0;  ///< 0: at no link speed tried
  std::string link_device;
};

/// What make_plan decided and why, ready for text or JSON.
struct Explanation {
  PlannedModel planned;
  std::vector<Flip> flips;  ///< per node of the planned graph; empty: not asked for
  std::string batch_symbol;
  Bindings dims;  ///< sizes it was planned for
};

/// Plans a model; with `flips`, also finds for each node the batch and the link speed at which the
/// plan moves it (batches: powers of two up to 4096, then bisected; links: 1/64 to 64 times as
/// fast).
Explanation explain(System& system, const Graph& model, const CostModel& costs,
                    const SessionOptions& options, bool flips);

std::string to_text(const Explanation& explanation, bool details);
std::string to_json(const Explanation& explanation);

/// Smallest batch in [1, limit] from which on the plan uses `device` for at least one node at every
/// tried batch; 0 if there is none. Bisection between powers of two.
std::int64_t flip_batch(System& system, const Graph& model, const CostModel& costs,
                        SessionOptions options, const std::string& device,
                        std::int64_t limit = 4096);

/// One line: "53 nodes on virtual:v100, 2 on cpu; 2 copies (588.0 KiB, 52 us)".
std::string summary(const Plan& plan);

}  // namespace turnout
