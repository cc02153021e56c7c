#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace turnout {

/// Minimum s-t cut of a directed graph with real capacities.
///
/// The result is the cheapest set of edges that separates source from sink. Equal cuts are told
/// apart by a second, integral cost (`ties`): of all cuts of least capacity the one with the least
/// sum of ties is taken, and of those the one with the fewest nodes on the sink's side. So the
/// answer depends on the edges and on the order they were added in, and on nothing else.
///
/// Rounding: a residual counts as zero below 1e-13 of the most it ever was. So each edge of the cut
/// is off by its own rounding only, and capacities of 1e-300 and 1e300 can stand side by side.
///
/// Complexity: Dinic's algorithm, O(nodes^2 * edges) at worst, close to linear on op graphs.
/// Source: Dinic 1970; the tie stage uses that every least cut is closed under residual edges
/// (Picard and Queyranne 1980).
/// One thread at a time; nothing blocks; throws nothing but std::bad_alloc.
class MinCut {
 public:
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  /// Returns the new node's index; source and sink are there from the start.
  int add_node() { return node_count_++; }

  /// An edge `from` -> `to`, `capacity` >= 0. If every cut is above the largest double, any cut may
  /// be the result.
  void add_edge(int from, int to, double capacity, std::int64_t ties = 0);

  /// An edge no cut may take.
  void add_infinite_edge(int from, int to);

  /// Cuts; call once. Element i is true where node i is on the sink's side.
  std::vector<char> solve();

 private:
  struct Arc {
    int to = 0;
    int reverse = 0;  ///< index of the opposite arc
    double residual = 0.0;
    double tolerance = 0.0;  ///< a residual up to this counts as zero
    double ties = 0.0;

    void give(double flow);
  };
  struct Edge {
    int from = 0;
    int to = 0;
    double capacity = 0.0;
    double ties = 0.0;
  };

  void build_arcs();
  void maximise_flow();
  bool label_distances();
  void augment_level();
  void prepare_tie_stage();
  bool least_cut_is_unique() const;
  bool open(const Arc& arc) const { return arc.residual > arc.tolerance; }

  int node_count_ = 2;
  bool has_ties_ = false;
  std::vector<Edge> edges_;
  std::vector<Arc> arcs_;         ///< grouped by tail
  std::vector<int> first_arc_;    ///< node -> first arc; one element more than nodes
  std::vector<int> distance_;     ///< arcs to the sink, -1: the sink can't be reached
  std::vector<int> current_arc_;  ///< arcs before it lead nowhere in this phase
  std::vector<int> queue_;
};

}  // namespace turnout
