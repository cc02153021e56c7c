#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cost/history.hpp"
#include "runtime/system.hpp"

namespace turnout {

struct Estimate {
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
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
  explicit CostModel(CpuProfile cpu, std::shared_ptr<const CostHistory> history = nullptr)
      : cpu_(std::move(cpu)), history_(std::move(history)) {}

  Estimate node(const NodeInfo& info, std::string_view provider, const DeviceSlot& slot) const;
  /// What the history holds of a node on a device that isn't virtual.
  std::optional<CostHistory::Known> known(const NodeInfo& info, std::string_view provider,
                                          const DeviceSlot& slot) const;
  /// One pass over host memory of so many bytes; nothing where none was measured.
  std::optional<double> pass_seconds(double bytes) const;
  Estimate copy(std::int64_t bytes, const DeviceSlot& device, bool to_device) const;
  const CpuProfile& cpu() const { return cpu_; }
  CostModel with(const WhatIf& changes) const {
    CostModel changed = *this;
    changed.changes_ = changes;
    return changed;
  }

 private:
  CpuProfile cpu_;
  std::shared_ptr<const CostHistory> history_;
  WhatIf changes_;
};

}  // namespace turnout
