#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/plan/crossover.hpp"

namespace turnout {

/// Plans by graph, devices and batch interval, so that a program that meets many batches plans each
/// interval once and does not go to and fro between plans that are all but equal.
///
/// Example: a plan was kept for batches 1..24. At batch 20 another plan would take 3 % less: kept.
/// At batch 24, 20 %: left, and batch 24 has the new plan from then on.
///
/// Bounded: the graph and devices used least recently go first. Not thread-safe.
class PlanCache {
 public:
  /// node name -> device label, as SessionOptions::pins takes it.
  using Placement = std::map<std::string, std::string>;
  struct Key {
    std::string graph;    ///< graph_digest()
    std::string devices;  ///< device_fingerprint()
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::int64_t first = 0, last = 0;  ///< batches it is for
    Placement placement;
  };

  explicit PlanCache(std::size_t max_keys = 64) : max_keys_(max_keys) {}

  /// Null: nothing is known of that batch.
  const Entry* find(const Key& key, std::int64_t batch);
  /// Cuts what it overlaps. Error invalid_argument unless 1 <= first <= last.
  void put(const Key& key, Entry entry);
  /// The plan to use at a batch, given what the kept one and a new one take there: the new one is
  /// put for this batch only if it is worth leaving the kept one for, or none is kept.
  const Entry& choose(const Key& key, std::int64_t batch, double kept_seconds,
                      const Placement& candidate, double candidate_seconds, double spread);
  std::size_t keys() const { return plans_.size(); }
  std::size_t entries(const Key& key) const;

 private:
  struct Plans {
    std::vector<Entry> entries;  ///< ascending, disjoint
    std::uint64_t used = 0;
  };
  Plans& touch(const Key& key);

  std::size_t max_keys_;
  std::uint64_t clock_ = 0;
  std::map<Key, Plans> plans_;
};

/// Label, figures, providers and threads of every device: another one is another machine.
std::string device_fingerprint(std::span<const DeviceSlot> devices);

/// Puts the automatic plan of every batch in [first, last], one entry an interval.
void remember(PlanCache& cache, const PlanCache::Key& key, const CostsAt& costs, std::int64_t first,
              std::int64_t last);

}  // namespace turnout
