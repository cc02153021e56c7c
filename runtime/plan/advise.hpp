#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/plan/batch_costs.hpp"

namespace turnout {

enum class Objective { latency, throughput, energy, price };
std::string_view to_string(Objective objective);

/// One device with the whole model on it.
struct Candidate {
  struct At {
    std::int64_t batch = 0;
    BatchCosts::Alone time;
    double memory_bytes = 0;  ///< weights, activations and workspace on the device
  };
  std::string device, title;
  Figure memory_limit_bytes;
  Figure tdp_watts;
  double price = 0;    ///< of the device, in the user's unit; 0: not given
  std::vector<At> at;  ///< ascending batches; those it can't run have a refusal
};

/// A candidate's figures and its rank.
struct Advice {
  std::string device, title;
  int rank = 0;
  std::string refusal;     ///< not empty: ranked last, and why
  bool undecided = false;  ///< its score can't be told from the first one's within the errors
  double score = 0;        ///< what was ranked by; smaller is better
  double error = 0;        ///< relative, of `score`
  Evidence evidence = Evidence::unprobed;  ///< of the times
  std::int64_t latency_batch = 0;
  double latency_seconds = 0;  ///< at the smallest batch
  std::int64_t best_batch = 0;
  double items_per_s = 0;      ///< the most at any batch tried, at best_batch
  double joules_per_item = 0;  ///< TDP * time / batch at best_batch; 0: no TDP known
  double price_per_rate = 0;   ///< price / items_per_s; 0: no price given
  double memory_bytes = 0, memory_limit_bytes = 0;  ///< at best_batch
  std::int64_t fits_to = 0;                         ///< largest batch tried that it can run
};

/// Ranks by latency at the smallest batch; by throughput, energy or price at the best batch each.
/// Last, in the order given: devices that can't run the smallest batch, and those without the
/// figure that the objective needs (TDP, price). Pure and deterministic.
std::vector<Advice> rank(const std::vector<Candidate>& candidates, Objective objective);

/// Plans `model` alone on every device at every batch; optimizes it once a batch. Devices that
/// can't be opened are an Error; ones that can't run the model are candidates with refusals.
std::vector<Candidate> candidates(System& system, const Graph& model, const CostModel& costs,
                                  SessionOptions options, const std::string& symbol,
                                  const std::vector<std::string>& devices,
                                  const std::vector<std::int64_t>& batches,
                                  const std::map<std::string, double>& prices);

}  // namespace turnout
