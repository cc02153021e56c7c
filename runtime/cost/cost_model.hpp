#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/system.hpp"

namespace turnout {

struct Estimate {
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
};

/// Everything that decides how long a node takes: op, attributes, specs, provider, threads.
std::string cost_key(const NodeInfo& info, std::string_view provider, const DeviceSlot& slot);

/// Measured times of exact nodes: the top of the evidence ladder. Thread-safe.
class CostHistory {
 public:
  void add(const std::string& key, double seconds);
  /// Median of what was added; nothing below kMinSamples.
  std::optional<double> find(const std::string& key) const;
  static constexpr std::size_t kMinSamples = 3;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<double>> samples_;
};

/// One point of a rate curve: work of this size ran at this rate.
struct RatePoint {
  double size = 0;  ///< flops, or bytes of the working set
  double rate = 0;  ///< flop/s, or bytes/s
};

/// What the quick probe measured of this machine's CPU for one number of threads.
struct CpuProfile {
  int threads = 1;
  std::map<std::string, std::vector<RatePoint>> gemm;  ///< provider -> square products, f32
  std::map<std::string, std::vector<RatePoint>> gemv;  ///< provider -> one row times a matrix
  std::vector<RatePoint> stream;                       ///< bytes touched by one elementwise pass
  double dispatch_seconds = 0;                         ///< least time of a small kernel
  Evidence evidence = Evidence::unprobed;
  std::string source;
  bool busy = false;         ///< probed while the machine had other work: not kept
  double probe_seconds = 0;  ///< how long probing took; 0 when read from the cache
};

/// Changes to the facts, to ask what a plan would be without them.
struct WhatIf {
  double link_factor = 1;  ///< bandwidth of every link
  double cpu_factor = 1;   ///< speed of the host
};

/// Time of any node on any device of a plan. Const methods are pure and thread-safe.
class CostModel {
 public:
  CostModel() = default;
  explicit CostModel(CpuProfile cpu, const CostHistory* history = nullptr)
      : cpu_(std::move(cpu)), history_(history) {}

  Estimate node(const NodeInfo& info, std::string_view provider, const DeviceSlot& slot) const;
  Estimate copy(std::int64_t bytes, const DeviceSlot& device, bool to_device) const;
  const CpuProfile& cpu() const { return cpu_; }
  CostModel with(const WhatIf& changes) const {
    CostModel changed = *this;
    changed.changes_ = changes;
    return changed;
  }

 private:
  CpuProfile cpu_;
  const CostHistory* history_ = nullptr;
  WhatIf changes_;
};

}  // namespace turnout
