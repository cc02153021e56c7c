// Dinic's maximum flow, then the cut.
//
// A phase labels every node with its distance to the sink over edges with capacity left, then
// sends flow along shortest paths until none is left; distances only grow, so there are at most as
// many phases as nodes. When the source no longer reaches the sink, the nodes that still do are
// the sink's side of a least cut, and the smallest such side.
//
// Example: source -> a (3), a -> sink (2), source -> b (1), b -> sink (4), a -> b (1).
// Flow 2 over a, 1 over b, 1 over a -> b: 4 in all. Then nothing reaches the sink but b over its
// remaining capacity, so the sink's side is {b, sink} and the cut is
// {a -> sink, source -> b, a -> b} = 2 + 1 + 1 = 4.
#include "runtime/plan/min_cut.hpp"

#include <algorithm>

namespace turnout {
namespace {

// A thousand roundings of one capacity add up to about 1e-13 of it.
constexpr double kRelativeTolerance = 1e-13;

}  // namespace

void MinCut::add_edge(int from, int to, double capacity, std::int64_t ties) {
  if (from == to || (capacity <= 0.0 && ties == 0)) return;
  has_ties_ = has_ties_ || ties != 0;
  edges_.push_back({from, to, capacity, static_cast<double>(ties)});
}

void MinCut::add_infinite_edge(int from, int to) {
  if (from == to) return;
  edges_.push_back({from, to, kInfinite, kInfinite});
}

// The tolerance follows the most the arc ever held, not its edge's capacity: the way back over an
// edge of 1e300 that carries 1 still has 1 left.
void MinCut::Arc::give(double flow) {
  residual += flow;
  if (residual < kInfinite) tolerance = std::max(tolerance, kRelativeTolerance * residual);
}

void MinCut::build_arcs() {
  first_arc_.assign(static_cast<std::size_t>(node_count_) + 1, 0);
  for (const Edge& edge : edges_) {
    ++first_arc_[static_cast<std::size_t>(edge.from) + 1];
    ++first_arc_[static_cast<std::size_t>(edge.to) + 1];
  }
  for (std::size_t i = 1; i < first_arc_.size(); ++i) first_arc_[i] += first_arc_[i - 1];
  std::vector<int> next(first_arc_.begin(), first_arc_.end() - 1);
  arcs_.resize(edges_.size() * 2);
  for (const Edge& edge : edges_) {
    const int forward = next[static_cast<std::size_t>(edge.from)]++;
    const int backward = next[static_cast<std::size_t>(edge.to)]++;
    Arc& there = arcs_[static_cast<std::size_t>(forward)];
    there = {edge.to, backward, 0.0, 0.0, edge.ties};
    there.give(edge.capacity);
    arcs_[static_cast<std::size_t>(backward)] = {edge.from, forward, 0.0, 0.0, 0.0};
  }
}

// Breadth first from the sink. Nodes farther than the source are of no use to this phase.
bool MinCut::label_distances() {
  distance_.assign(static_cast<std::size_t>(node_count_), -1);
  queue_.clear();
  queue_.push_back(kSink);
  distance_[kSink] = 0;
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const auto node = static_cast<std::size_t>(queue_[head]);
    if (distance_[kSource] >= 0 && distance_[node] >= distance_[kSource]) break;
    for (int a = first_arc_[node]; a < first_arc_[node + 1]; ++a) {
      const Arc& arc = arcs_[static_cast<std::size_t>(a)];
      const auto tail = static_cast<std::size_t>(arc.to);
      if (distance_[tail] >= 0 || !open(arcs_[static_cast<std::size_t>(arc.reverse)])) {
        continue;
      }
      distance_[tail] = distance_[node] + 1;
      queue_.push_back(arc.to);
    }
  }
  return distance_[kSource] >= 0;
}

// Depth first from the source with an explicit path: op graphs may be very deep.
void MinCut::augment_level() {
  current_arc_.assign(first_arc_.begin(), first_arc_.end() - 1);
  std::vector<int>& path = queue_;  // arcs from the source to `node`
  path.clear();
  int node = kSource;
  while (true) {
    if (node == kSink) {
      double flow = kInfinite;
      for (int a : path) flow = std::min(flow, arcs_[static_cast<std::size_t>(a)].residual);
      std::size_t keep = path.size();
      for (std::size_t i = path.size(); i-- > 0;) {
        Arc& arc = arcs_[static_cast<std::size_t>(path[i])];
        arc.residual -= flow;
        arcs_[static_cast<std::size_t>(arc.reverse)].give(flow);
        if (!open(arc)) keep = i;
      }
      const Arc& full = arcs_[static_cast<std::size_t>(path[keep])];
      node = arcs_[static_cast<std::size_t>(full.reverse)].to;
      path.resize(keep);
      continue;
    }
    const auto at = static_cast<std::size_t>(node);
    int& a = current_arc_[at];
    while (a < first_arc_[at + 1]) {
      const Arc& arc = arcs_[static_cast<std::size_t>(a)];
      if (open(arc) && distance_[static_cast<std::size_t>(arc.to)] == distance_[at] - 1) {
        break;
      }
      ++a;
    }
    if (a < first_arc_[at + 1]) {
      path.push_back(a);
      node = arcs_[static_cast<std::size_t>(a)].to;
      continue;
    }
    if (path.empty()) return;
    const Arc& last = arcs_[static_cast<std::size_t>(path.back())];
    node = arcs_[static_cast<std::size_t>(last.reverse)].to;
    ++current_arc_[static_cast<std::size_t>(node)];
    path.pop_back();
  }
}

void MinCut::maximise_flow() {
  while (label_distances()) augment_level();
}

// After a maximum flow every node that the source doesn't reach and that doesn't reach the sink
// may go either way.
bool MinCut::least_cut_is_unique() const {
  std::vector<char> seen(static_cast<std::size_t>(node_count_), 0);
  std::vector<int> stack = {kSource};
  seen[kSource] = 1;
  std::size_t reached = 1;
  while (!stack.empty()) {
    const auto node = static_cast<std::size_t>(stack.back());
    stack.pop_back();
    for (int a = first_arc_[node]; a < first_arc_[node + 1]; ++a) {
      const Arc& arc = arcs_[static_cast<std::size_t>(a)];
      if (!open(arc) || seen[static_cast<std::size_t>(arc.to)] != 0) continue;
      seen[static_cast<std::size_t>(arc.to)] = 1;
      stack.push_back(arc.to);
      ++reached;
    }
  }
  const auto sink_side =
      std::count_if(distance_.begin(), distance_.end(), [](int d) { return d >= 0; });
  return reached + static_cast<std::size_t>(sink_side) == static_cast<std::size_t>(node_count_);
}

// A cut is least exactly if no arc with capacity left crosses it: make those infinite, and what
// is left to cut is the saturated arcs, at the price of their ties.
void MinCut::prepare_tie_stage() {
  for (Arc& arc : arcs_) {
    arc.residual = open(arc) ? kInfinite : arc.ties;
    arc.tolerance = 0.0;
  }
}

std::vector<char> MinCut::solve() {
  build_arcs();
  maximise_flow();
  if (has_ties_ && !least_cut_is_unique()) {
    prepare_tie_stage();
    maximise_flow();
  }
  std::vector<char> sink_side(static_cast<std::size_t>(node_count_));
  std::transform(distance_.begin(), distance_.end(), sink_side.begin(),
                 [](int d) { return static_cast<char>(d >= 0); });
  return sink_side;
}

}  // namespace turnout
