// The serial sum as a minimum cut.
//
// Each movable node u is a node of the cut: on the source's side it stays where `base` has it, on
// the sink's side it moves to the target. Edge u -> sink is cut when u stays and costs u's time
// there; edge source -> u is cut when u moves and costs its time on the target.
//
// A copy is charged once however many consumers ask for it. Both directions have their gadget:
//   "u stays and some of C move"  u -> x (cost), x -> c infinite for every c in C
//   "u moves and some of C stay"  y -> u (cost), c -> y infinite for every c in C
// x must be on the sink's side if any c is, so u -> x is cut once; y is its mirror image. A
// producer that can't move is the source or the sink itself.
//
// Every copy of every value is one of these two, or is certain, or hangs on the producer alone:
//   upload to the target      needed when a consumer moves, unless the producer moves as well
//   upload to another device  needed when a consumer there stays, unless the producer stays there
//   download                  needed when the producer's device has it and a consumer elsewhere
// because nodes that move all move to one device. So the cut is exact, with any number of devices.
//
// Example: host base, target 1. Value v of node a is consumed by b and c: upload is "a stays and
// some of {b, c} move", download "a moves and some of {b, c} stay". A graph output adds a consumer
// that always stays on the host, so the download hangs on a alone.
#include "runtime/plan/placement_cut.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/plan/min_cut.hpp"

namespace turnout {
namespace {

constexpr int kFixed = -1;

std::uint64_t bit(int device) { return std::uint64_t{1} << device; }

class ExpansionCut {
 public:
  ExpansionCut(const PlacementIndex& index, const std::vector<int>& base, int target,
               const std::vector<char>& movable);
  std::vector<int> solve();

 private:
  struct Cost {
    double seconds = 0.0;
    std::int64_t copies = 0;
  };

  void add_value(int value);
  void add_upload(int value, int device);
  void add_download_of_fixed(int value, int from);
  void add_download(int value, int from);
  void charge(std::vector<Cost>& costs, double seconds);
  void charge_if_stays(double seconds);
  void charge_if_moves(double seconds);
  void charge_if_stays_and_any_moves(const std::vector<int>& consumers, double seconds);
  void charge_if_moves_and_any_stays(const std::vector<int>& consumers, double seconds);

  int label(int node) const { return labels_[static_cast<std::size_t>(node)]; }
  int cut_node(int node) const { return cut_nodes_[static_cast<std::size_t>(node)]; }
  const std::vector<int>& movers_from(int device);

  const PlacementIndex& index_;
  const int target_;
  MinCut cut_;
  std::vector<int> labels_;  ///< device of a node that stays
  std::vector<int> cut_nodes_;
  std::vector<Cost> stay_;  ///< per node
  std::vector<Cost> move_;

  // The value at hand.
  int producer_ = -1;                ///< a movable node, or -1
  std::uint64_t fixed_devices_ = 0;  ///< devices of consumers that don't move
  std::vector<int> movers_;          ///< consumers that may move
  std::vector<int> some_movers_;
};

ExpansionCut::ExpansionCut(const PlacementIndex& index, const std::vector<int>& base, int target,
                           const std::vector<char>& movable)
    : index_(index),
      target_(target),
      labels_(base),
      cut_nodes_(base.size(), kFixed),
      stay_(base.size()),
      move_(base.size()) {
  for (int n = 0; n < index_.node_count; ++n) {
    const auto node = static_cast<std::size_t>(n);
    if (movable[node] == 0 || labels_[node] == target || !index_.can_run(n, target)) continue;
    if (!index_.can_run(n, labels_[node])) {
      labels_[node] = target;
      continue;
    }
    cut_nodes_[node] = cut_.add_node();
  }
}

void ExpansionCut::charge(std::vector<Cost>& costs, double seconds) {
  Cost& cost = costs[static_cast<std::size_t>(producer_)];
  cost.seconds += seconds;
  ++cost.copies;
}

void ExpansionCut::charge_if_stays(double seconds) { charge(stay_, seconds); }

void ExpansionCut::charge_if_moves(double seconds) { charge(move_, seconds); }

// A producer of -1 stands for one that stays (here) or moves (below) for certain.
void ExpansionCut::charge_if_stays_and_any_moves(const std::vector<int>& consumers,
                                                 double seconds) {
  const int tail = producer_ < 0 ? MinCut::kSource : cut_node(producer_);
  if (consumers.size() == 1) cut_.add_edge(tail, cut_node(consumers[0]), seconds, 1);
  if (consumers.size() < 2) return;
  const int once = cut_.add_node();
  cut_.add_edge(tail, once, seconds, 1);
  for (int consumer : consumers) cut_.add_infinite_edge(once, cut_node(consumer));
}

void ExpansionCut::charge_if_moves_and_any_stays(const std::vector<int>& consumers,
                                                 double seconds) {
  const int head = producer_ < 0 ? MinCut::kSink : cut_node(producer_);
  if (consumers.size() == 1) cut_.add_edge(cut_node(consumers[0]), head, seconds, 1);
  if (consumers.size() < 2) return;
  const int once = cut_.add_node();
  cut_.add_edge(once, head, seconds, 1);
  for (int consumer : consumers) cut_.add_infinite_edge(cut_node(consumer), once);
}

const std::vector<int>& ExpansionCut::movers_from(int device) {
  some_movers_.clear();
  std::copy_if(movers_.begin(), movers_.end(), std::back_inserter(some_movers_),
               [&](int n) { return label(n) == device; });
  return some_movers_;
}

void ExpansionCut::add_upload(int value, int device) {
  const double seconds = index_.upload(value, device);
  const bool certain = (fixed_devices_ & bit(device)) != 0;
  const int producer = index_.producer[static_cast<std::size_t>(value)];
  const int from = producer < 0 ? 0 : label(producer);
  if (device == target_) {
    if (producer_ >= 0 && certain) return charge_if_stays(seconds);
    if (producer_ < 0 && (from == target_ || certain)) return;
    return charge_if_stays_and_any_moves(movers_, seconds);
  }
  if (producer_ >= 0 && from == device) {
    if (certain) return charge_if_moves(seconds);
    return charge_if_moves_and_any_stays(movers_from(device), seconds);
  }
  if (certain || from == device) return;
  // The producer is elsewhere, wherever it goes.
  const int producer_at_hand = producer_;
  producer_ = -1;
  charge_if_moves_and_any_stays(movers_from(device), seconds);
  producer_ = producer_at_hand;
}

void ExpansionCut::add_download_of_fixed(int value, int from) {
  if (from == 0 || (fixed_devices_ & ~bit(from)) != 0) return;
  const double seconds = index_.download(value, from);
  if (from == target_) return charge_if_moves_and_any_stays(movers_, seconds);
  if (movers_from(from).size() < movers_.size()) return;
  charge_if_stays_and_any_moves(movers_, seconds);
}

void ExpansionCut::add_download(int value, int from) {
  if (from != 0) {
    const double seconds = index_.download(value, from);
    const bool certain = (fixed_devices_ & ~bit(from)) != 0;
    if (certain || movers_from(from).size() < movers_.size()) {
      charge_if_stays(seconds);
    } else {
      charge_if_stays_and_any_moves(movers_, seconds);
    }
  }
  if (target_ == 0) return;
  const double seconds = index_.download(value, target_);
  if ((fixed_devices_ & ~bit(target_)) != 0) return charge_if_moves(seconds);
  charge_if_moves_and_any_stays(movers_, seconds);
}

void ExpansionCut::add_value(int value) {
  const auto v = static_cast<std::size_t>(value);
  if (index_.is_free[v] != 0) return;
  fixed_devices_ = index_.is_graph_output[v] != 0 ? bit(0) : 0;
  movers_.clear();
  std::uint64_t devices = 0;
  for (int consumer : index_.consumers(value)) {
    if (cut_node(consumer) == kFixed) {
      fixed_devices_ |= bit(label(consumer));
    } else {
      movers_.push_back(consumer);
      devices |= bit(label(consumer)) | bit(target_);
    }
  }
  devices |= fixed_devices_;
  const int producer = index_.producer[v];
  producer_ = producer >= 0 && cut_node(producer) != kFixed ? producer : -1;
  for (int d = 1; d < index_.device_count; ++d) {
    if ((devices & bit(d)) != 0) add_upload(value, d);
  }
  if (producer_ >= 0) {
    add_download(value, label(producer));
  } else if (producer >= 0) {
    add_download_of_fixed(value, label(producer));
  }
}

std::vector<int> ExpansionCut::solve() {
  for (int v = 0; v < index_.value_count; ++v) add_value(v);
  for (int n = 0; n < index_.node_count; ++n) {
    if (cut_node(n) == kFixed) continue;
    const auto node = static_cast<std::size_t>(n);
    const double stay = index_.node_seconds(n, label(n));
    const double move = index_.node_seconds(n, target_);
    cut_.add_edge(cut_node(n), MinCut::kSink, stay + stay_[node].seconds, stay_[node].copies);
    cut_.add_edge(MinCut::kSource, cut_node(n), move + move_[node].seconds, move_[node].copies);
  }
  const std::vector<char> moves = cut_.solve();
  for (int n = 0; n < index_.node_count; ++n) {
    if (cut_node(n) == kFixed || moves[static_cast<std::size_t>(cut_node(n))] == 0) continue;
    labels_[static_cast<std::size_t>(n)] = target_;
  }
  return labels_;
}

}  // namespace

std::vector<int> best_expansion(const PlacementIndex& index, const std::vector<int>& base,
                                int target, const std::vector<char>& movable) {
  return ExpansionCut(index, base, target, movable).solve();
}

}  // namespace turnout
