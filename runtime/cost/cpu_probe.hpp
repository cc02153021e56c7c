#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cost/calibration.hpp"
#include "runtime/cost/cost_model.hpp"

namespace turnout {

// Calibration of this machine's CPU by whole runs of one-op graphs. Points, P a provider:
//
//   gemm P      a square product of `size` rows, f32
//   gemv P      one row times a square matrix of `size` rows
//   pass        an elementwise pass that touches `size` bytes
//   dispatch    the least time of a small kernel

/// Fingerprint: processor, threads, providers.
std::string cpu_key(System& system, int threads);
/// Points of the quick probe; `full`: those and more.
std::vector<ProbePoint> cpu_points(System& system, bool full);
/// measure_points() on the CPU. Blocks.
DeviceCalibration calibrate_cpu(const std::shared_ptr<System>& system, int threads,
                                std::span<const ProbePoint> points, DeviceCalibration known,
                                const ProbeOptions& options);

/// The quick probe, at most about 3 seconds, of what `known` lacks. What it finds is kept unless
/// the machine was busy.
CpuProfile probe_cpu(const std::shared_ptr<System>& system, int threads,
                     DeviceCalibration known = {});

/// What is kept of this machine, thread count and set of providers, else probe_cpu(). Unreadable
/// files are measured anew; one that can't be written is no error (the next start measures again).
/// `threads` 0: every core.
CpuProfile cpu_profile(const std::shared_ptr<System>& system, int threads);

/// The cost model of this machine for plans over `devices`: cpu_profile(), and use_calibration()
/// for each device, so the first use of a GPU takes a few seconds. `history` null: kept_history();
/// an empty one: nothing that was measured before counts.
CostModel machine_costs(const std::shared_ptr<System>& system, std::span<const std::string> devices,
                        int threads, std::shared_ptr<const CostHistory> history = nullptr);

}  // namespace turnout
