// Memory limits.
//
// With limits the cut becomes a knapsack, so this is a search with a bound.
//
// Multipliers: a byte on device d costs m[d] seconds. A constant is then a value that is uploaded
// once to each device that consumes it, at m[d] * bytes: the same cut. Other values' live bytes are
// no cut; for them a node pays m[d] times the bytes it produces. m grows until the placement fits,
// then bisection takes it back as far as it still does.
//
// Repair: of each placement that doesn't fit, the longest prefix (and suffix) that does is kept,
// and the rest goes to the smallest placement: every node on the host that can run there. A
// device's peak only falls when a node leaves it, so the smallest placement fits if any does.
// At last single nodes and runs of neighbours move, and in small graphs pairs change places, while
// the sum falls and memory suffices.
//
// Lower bound: for any m >= 0, a placement that fits has constants <= limit on each device, so
// serial sum >= min over placements (serial sum + m * constants) - m * limit.
// Example: one constant of 10 bytes, limit 6, host 5 s, device 1 s. With m = 0.4 the device costs
// 1 + 4 = 5 s, the host 5 s; the bound is 5 - 0.4 * 6 = 2.6 s. The truth is 5 s.
// A node whose own values and constants exceed a device's limit can't run there at all; taken out
// first, that makes the bound 5 s here.
#include "runtime/plan/placement_memory.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace turnout {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLargestCost = 1e290;
constexpr int kGrowSteps = 40;
constexpr int kBisectSteps = 8;
constexpr int kPolishPasses = 4;
constexpr double kBoundRounding = 1e-11;
constexpr int kMostExchanged = 128;   // nodes; all pairs of them are tried
constexpr int kSearchWork = 2000000;  // steps times nodes

// Nodes that can't run on a device because they alone exceed its memory.
PlacementIndex drop_oversized(PlacementIndex index) {
  for (int n = 0; n < index.node_count; ++n) {
    double bytes = 0.0;
    for (int v : index.touched(n)) bytes += index.bytes[static_cast<std::size_t>(v)];
    for (int d = 0; d < index.device_count; ++d) {
      if (bytes > index.limit_bytes[static_cast<std::size_t>(d)]) {
        index.seconds[index.at(n, d)] = kInfinite;
      }
    }
  }
  return index;
}

bool every_node_can_run(const PlacementIndex& index) {
  for (int n = 0; n < index.node_count; ++n) {
    const auto first = index.seconds.begin() + static_cast<std::ptrdiff_t>(index.at(n, 0));
    if (*std::min_element(first, first + index.device_count) == kInfinite) return false;
  }
  return true;
}

double priced(double multiplier, double bytes) {
  return std::min(multiplier * bytes, kLargestCost);
}

PlacementIndex price_constants(const PlacementIndex& index, const std::vector<double>& prices) {
  PlacementIndex result = index;
  for (int v = 0; v < index.value_count; ++v) {
    const auto value = static_cast<std::size_t>(v);
    if (index.is_resident[value] == 0) continue;
    const bool was_free = index.is_free[value] != 0;
    result.is_free[value] = 0;
    result.is_graph_output[value] = 0;
    for (int d = 1; d < index.device_count; ++d) {
      const double upload = was_free ? 0.0 : index.upload(v, d);
      result.h2d[index.at(v, d)] = std::min(
          upload + priced(prices[static_cast<std::size_t>(d)], index.bytes[value]), kLargestCost);
    }
  }
  return result;
}

PlacementIndex price_memory(const PlacementIndex& index, const std::vector<double>& prices) {
  PlacementIndex result = price_constants(index, prices);
  for (int n = 0; n < index.node_count; ++n) {
    double made = 0.0;
    double constants = 0.0;
    for (int v : index.touched(n)) {
      const auto value = static_cast<std::size_t>(v);
      if (index.producer[value] == n) made += index.bytes[value];
      if (index.is_resident[value] != 0) constants += index.bytes[value];
    }
    result.seconds[index.at(n, 0)] += priced(prices[0], made + constants);
    for (int d = 1; d < index.device_count; ++d) {
      result.seconds[index.at(n, d)] += priced(prices[static_cast<std::size_t>(d)], made);
    }
  }
  return result;
}

// Each node on the host if it can, else where it must. Nodes with a choice of devices are tried in
// turn, largest first, roomiest device first, and taken back where that ends in no room.
class SmallestPlacement {
 public:
  explicit SmallestPlacement(const PlacementIndex& index) : index_(index) {}

  std::vector<int> find() {
    devices_.assign(static_cast<std::size_t>(index_.node_count), 0);
    place_the_certain();
    if (choosers_.empty()) return devices_;
    std::vector<int> fallback = devices_;
    for (const auto& [bytes, n] : choosers_) {
      fallback[static_cast<std::size_t>(n)] = devices_for(n).front();
    }
    return search() ? devices_ : fallback;
  }

 private:
  void place_the_certain() {
    for (int n = 0; n < index_.node_count; ++n) {
      if (index_.can_run(n, 0)) continue;
      const std::vector<int> where = devices_for(n);
      if (where.size() == 1) {
        devices_[static_cast<std::size_t>(n)] = where[0];
        continue;
      }
      double bytes = 0.0;
      for (int v : index_.touched(n)) bytes += index_.bytes[static_cast<std::size_t>(v)];
      choosers_.push_back({-bytes, n});
    }
    std::sort(choosers_.begin(), choosers_.end());
  }

  // Devices but the host that can run the node.
  std::vector<int> devices_for(int node) const {
    std::vector<int> result;
    for (int d = 1; d < index_.device_count; ++d) {
      if (index_.can_run(node, d)) result.push_back(d);
    }
    return result;
  }

  // The same, the one with most room last.
  std::vector<int> options(int node) const {
    std::vector<int> result = devices_for(node);
    const std::vector<double> peak = index_.peak_bytes(devices_);
    const auto room = [&](int d) {
      return index_.limit_bytes[static_cast<std::size_t>(d)] - peak[static_cast<std::size_t>(d)];
    };
    std::stable_sort(result.begin(), result.end(), [&](int a, int b) { return room(a) < room(b); });
    return result;
  }

  // Nodes not placed yet stand on the host, whose own limit the caller looks at.
  bool devices_fit() const {
    const std::vector<double> peak = index_.peak_bytes(devices_);
    for (std::size_t d = 1; d < peak.size(); ++d) {
      if (peak[d] > index_.limit_bytes[d]) return false;
    }
    return true;
  }

  bool search() {
    std::vector<std::vector<int>> left = {options(choosers_[0].second)};
    const int steps = 2 * static_cast<int>(choosers_.size()) + kSearchWork / index_.node_count;
    for (int step = 0; step < steps && !left.empty(); ++step) {
      int& device = devices_[static_cast<std::size_t>(choosers_[left.size() - 1].second)];
      if (left.back().empty()) {
        device = 0;
        left.pop_back();
        continue;
      }
      device = left.back().back();
      left.back().pop_back();
      if (!devices_fit()) continue;
      if (left.size() == choosers_.size()) return true;
      left.push_back(options(choosers_[left.size()].second));
    }
    return false;
  }

  const PlacementIndex& index_;
  std::vector<int> devices_;
  std::vector<std::pair<double, int>> choosers_;  ///< negative bytes, node
};

class LimitedSearch {
 public:
  explicit LimitedSearch(const PlacementIndex& index)
      : index_(index), smallest_(SmallestPlacement(index).find()) {
    result_.best = {smallest_, index_.serial_seconds(smallest_)};
    result_.feasible = index_.fits(smallest_);
  }

  LimitedPlacement run(const PlacementCandidate& unlimited) {
    std::vector<int> start = unlimited.devices;
    for (int n = 0; n < index_.node_count; ++n) {
      const auto node = static_cast<std::size_t>(n);
      if (!index_.can_run(n, start[node])) start[node] = smallest_[node];
    }
    consider(start);
    if (result_.best.seconds > 0.0) search_prices(start);
    for (int pass = 0; pass < kPolishPasses && result_.feasible; ++pass) {
      const double before = result_.best.seconds;
      move_single_nodes();
      move_runs();
      if (index_.node_count <= kMostExchanged) exchange_nodes();
      if (result_.best.seconds >= before) break;
    }
    return result_;
  }

 private:
  // Keeps the placement, or what of it fits.
  void consider(const std::vector<int>& devices) {
    if (keep_if_fits(devices) || !index_.fits(smallest_)) return;
    for (bool prefix : {true, false}) {
      int fits = 0;
      int too_many = index_.node_count;
      while (too_many - fits > 1) {
        const int middle = fits + (too_many - fits) / 2;
        (keep_if_fits(part_of(devices, middle, prefix)) ? fits : too_many) = middle;
      }
    }
  }

  std::vector<int> part_of(const std::vector<int>& devices, int count, bool prefix) const {
    std::vector<int> part = smallest_;
    const auto first = prefix ? 0 : index_.node_count - count;
    std::copy_n(devices.begin() + first, count, part.begin() + first);
    return part;
  }

  bool keep_if_fits(const std::vector<int>& devices) {
    if (!index_.fits(devices)) return false;
    if (!result_.feasible) result_.best = {};
    result_.feasible = true;
    keep_faster(index_, devices, result_.best);
    return true;
  }

  // Returns what the multipliers lead to, and puts it to the result if it can.
  std::vector<int> try_prices(const std::vector<double>& prices, const std::vector<int>& start) {
    const PlacementIndex priced_index = price_memory(index_, prices);
    PlacementCandidate found = {start, priced_index.serial_seconds(start)};
    if (index_.device_count <= 2) {
      found = place_pair(priced_index);
    } else {
      improve_placement(priced_index, 1, found);
    }
    consider(found.devices);
    return found.devices;
  }

  void search_prices(const std::vector<int>& unlimited) {
    std::vector<double> prices(index_.limit_bytes.size(), 0.0);
    std::vector<double> last = prices;
    std::vector<int> devices = try_prices(prices, unlimited);
    int grown = 0;
    for (; grown < kGrowSteps && !index_.fits(devices); ++grown) {
      last = prices;
      const std::vector<double> peak = index_.peak_bytes(devices);
      for (std::size_t d = 0; d < prices.size(); ++d) {
        if (peak[d] <= index_.limit_bytes[d]) continue;
        const double first_price =
            1e-3 * result_.best.seconds / std::max(index_.limit_bytes[d], 1.0);
        prices[d] = std::max(first_price, prices[d] * 4.0);
      }
      devices = try_prices(prices, devices);
    }
    if (grown == kGrowSteps) return;
    std::vector<double> middle(prices.size());
    for (int step = 0; step < kBisectSteps; ++step) {
      std::transform(prices.begin(), prices.end(), last.begin(), middle.begin(),
                     [](double a, double b) { return 0.5 * (a + b); });
      (index_.fits(try_prices(middle, devices)) ? prices : last) = middle;
    }
  }

  void move_single_nodes() {
    std::vector<int> devices = result_.best.devices;
    for (int n = 0; n < index_.node_count; ++n) {
      for (int d = 0; d < index_.device_count; ++d) move_run(n, n + 1, d, devices);
    }
  }

  // Runs of 2, 4, 8, ... neighbours, each overlapping half of the one before.
  void move_runs() {
    std::vector<int> devices = result_.best.devices;
    for (int length = 2; length / 2 < index_.node_count; length *= 2) {
      for (int first = 0; first < index_.node_count; first += length / 2) {
        const int end = std::min(first + length, index_.node_count);
        for (int d = 0; d < index_.device_count; ++d) move_run(first, end, d, devices);
      }
    }
  }

  void exchange_nodes() {
    std::vector<int> devices = result_.best.devices;
    for (int a = 0; a < index_.node_count; ++a) {
      for (int b = a + 1; b < index_.node_count; ++b) {
        const int to_a = devices[static_cast<std::size_t>(b)];
        const int to_b = devices[static_cast<std::size_t>(a)];
        if (to_a == to_b || !index_.can_run(a, to_a) || !index_.can_run(b, to_b)) continue;
        std::swap(devices[static_cast<std::size_t>(a)], devices[static_cast<std::size_t>(b)]);
        if (index_.serial_seconds(devices) < result_.best.seconds) keep_if_fits(devices);
        devices = result_.best.devices;
      }
    }
  }

  // `devices` is the best placement, before and after.
  void move_run(int first, int end, int device, std::vector<int>& devices) {
    double change = 0.0;
    for (int n = first; n < end; ++n) {
      int& now = devices[static_cast<std::size_t>(n)];
      if (now == device || !index_.can_run(n, device)) continue;
      change += index_.move_seconds(n, device, devices);
      now = device;
    }
    if (change < 0.0) keep_if_fits(devices);
    std::copy(result_.best.devices.begin() + first, result_.best.devices.begin() + end,
              devices.begin() + first);
  }

  const PlacementIndex& index_;
  const std::vector<int> smallest_;
  LimitedPlacement result_;
};

}  // namespace

LimitedPlacement place_within_memory(const PlacementIndex& index,
                                     const PlacementCandidate& unlimited) {
  const PlacementIndex possible = drop_oversized(index);
  const PlacementIndex& used = every_node_can_run(possible) ? possible : index;
  return LimitedSearch(used).run(unlimited);
}

double memory_lower_bound(const PlacementIndex& index, double unlimited_bound) {
  const PlacementIndex possible = drop_oversized(index);
  if (!every_node_can_run(possible)) return unlimited_bound;
  const PlacementIndex merged = merge_devices(possible);
  if (merged.device_count < 2) return unlimited_bound;
  const double limit = merged.limit_bytes[1];
  double bound = std::max(unlimited_bound, place_pair(merged).seconds * (1.0 - kBoundRounding));
  if (limit == kInfinite) return bound;
  // The dual is concave in the price; what the constants exceed the limit by is its slope.
  const auto too_cheap = [&](double price) {
    const PlacementIndex priced_index = price_constants(merged, {0.0, price});
    const PlacementCandidate best = place_pair(priced_index);
    bound = std::max(bound, best.seconds * (1.0 - kBoundRounding) - price * limit);
    return merged.resident_bytes(1, best.devices) > limit;
  };
  double total_bytes = 1.0;
  for (double bytes : merged.bytes) total_bytes += bytes;
  double low = 0.0;
  double high = std::max(1e-3 * bound, std::numeric_limits<double>::min()) / total_bytes;
  for (int step = 0; step < kGrowSteps && too_cheap(high); ++step) {
    low = high;
    high *= 4.0;
    if (high * total_bytes > kLargestCost) return bound;
  }
  for (int step = 0; step < kBisectSteps; ++step) {
    const double middle = 0.5 * (low + high);
    (too_cheap(middle) ? low : high) = middle;
  }
  return bound;
}

}  // namespace turnout
