#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device.hpp"
#include "runtime/system.hpp"

namespace turnout {

/// What decides how long a node takes. `rows` is the leading dimension of its data, which is the
/// batch in most models; `family` is everything else: op, attributes, other dimensions, constants,
/// provider, device, threads. Both together are exact.
struct CostKey {
  std::string family;
  std::int64_t rows = 1;
  friend bool operator==(const CostKey&, const CostKey&) = default;
};
CostKey cost_key(const NodeInfo& info, std::string_view provider, const DeviceSlot& slot);

/// Measured times of exact nodes: the top of the evidence ladder. Keeps the newest samples of each,
/// so that figures taken on a busy machine go with time. Thread-safe.
class CostHistory {
 public:
  static constexpr std::size_t kMinSamples = 10;  ///< fewer don't count, unless they were long:
  static constexpr std::size_t kMinLong = 3;      ///< so few do if together they took
  static constexpr double kLongSeconds = 0.03;    ///< so long
  static constexpr std::size_t kMaxSamples = 31;
  static constexpr std::size_t kMaxNodes = 20000;  ///< exact nodes; the oldest go first
  /// Between two measured numbers of rows a straight line is taken, and beyond the largest the
  /// line of the last two: a node's time grows by a fixed cost and a rate. Not where the larger
  /// number is more than so many times the smaller.
  static constexpr std::int64_t kMaxRatio = 8;

  struct Known {
    double seconds = 0;  ///< median
    double spread = 0;   ///< robust standard deviation, as a share of the median
    std::size_t samples = 0;
    bool exact = true;  ///< false: from other numbers of rows
  };

  /// `keep`: false for what was measured while the machine had other work. It counts in this
  /// object, but take_new() leaves it out.
  void add(const CostKey& key, double seconds, bool keep = true);
  /// Nothing where too little was measured.
  std::optional<Known> find(const CostKey& key) const;
  bool empty() const;
  std::size_t nodes() const;  ///< exact nodes, those with too few samples included

  /// What was added since the last call, oldest first.
  std::vector<std::pair<CostKey, double>> take_new();

  /// The text of a history file. Files are hostile: parse() throws Error invalid_argument that
  /// names `where`.
  std::string to_json(std::string_view machine) const;
  /// Adds what a file of this machine holds; Error invalid_argument if it is another one's.
  void parse(std::string_view json, std::string_view machine, const std::string& where);

 private:
  struct Samples {
    std::vector<double> seconds;  ///< newest last
    std::uint64_t used = 0;       ///< when the newest was added
  };
  using Family = std::map<std::int64_t, Samples>;
  void insert(const CostKey& key, double seconds);
  void drop_oldest();

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
  std::size_t nodes_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<std::pair<CostKey, double>> new_;
};

/// Fingerprint of what measured times hold for: processor, build, providers.
std::string history_key(System& system);
/// Where that of a machine is kept, beside its calibrations; empty without a cache folder.
std::string history_path(std::string_view key);
/// What earlier programs measured on this machine; empty where nothing is kept, or where the file
/// is damaged.
std::shared_ptr<CostHistory> kept_history(System& system);
/// Adds the new samples to those kept, which another program may have changed in the meantime.
/// Whole or not at all; false when it can't be written.
bool keep_history(System& system, CostHistory& history);

}  // namespace turnout
