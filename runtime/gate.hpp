#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cost/sampling.hpp"
#include "runtime/session.hpp"

namespace turnout {

/// A way to run a model that was tried against others.
struct GateCandidate {
  std::string name;  ///< "plan", or the label of the one device that everything runs on
  Sample sample;     ///< of runs in turn with the others
  double predicted_seconds = 0;
  std::string refusal;  ///< not empty: it can't run that way, and why
};

struct GateResult {
  std::vector<GateCandidate> candidates;  ///< the plan first
  std::size_t kept = 0;
  std::string why;  ///< one line; nothing was measured where there is one candidate
  std::shared_ptr<const Session> session;  ///< the kept one
};

struct GateOptions {
  double budget_seconds = 1;  ///< of runs in turn; every candidate runs `least_rounds` times anyway
  int least_rounds = 5;
};

/// Measures a plan over several real devices against each of them alone, on given inputs, and keeps
/// it only if it beats the fastest of them by more than the noise (worth_leaving()): a plan is a
/// prediction. A plan that one device takes whole is that device's candidate. Where the plan uses a
/// virtual device, or pins or alternation were asked for, there is nothing to choose and the plan
/// is kept unmeasured, which `why` says. Blocks. Errors: those of Session for the plan itself.
GateResult gate_plan(const std::shared_ptr<System>& system, const Graph& model,
                     const CostModel& costs, const SessionOptions& options,
                     std::span<const Tensor> inputs, const GateOptions& gate = {});

/// Which of measured candidates to keep: [0] if it beats the best other one by more than the noise,
/// else that one. Error invalid_argument if [0] is refused.
std::size_t choose_candidate(std::span<const GateCandidate> candidates);

/// One line for each candidate, and what was kept.
std::string to_text(const GateResult& result);

}  // namespace turnout
