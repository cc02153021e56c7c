#pragma once

#include "core/device.hpp"
#include "core/op.hpp"

namespace turnout {

/// Time of one kernel on a device known by its figures alone, in seconds:
///
///   T = launch + max(F / (P * eF), Q / (W * eQ))
///
/// F flops and Q bytes of the node, P peak rate of its dtype, W memory bandwidth. eQ is
/// kMemoryEfficiency. For products eF comes from tiles and waves: a tile shape needs
/// ceil(m/tm) * ceil(n/tn) * batch tiles, the device works on one a compute unit at a time, and the
/// last, partly filled wave costs a full one; long reductions may be split. The best tile shape
/// counts. Other ops reach kVectorEfficiency of the peak.
///
/// Calibration: on the published GEMM times of a V100, a P100 and an MI25 (DeepBench), large
/// products reach 0.84, 0.84 and 0.69 of the sheet's peak; tile shapes reach shares of that.
/// Figures that were measured on the device (evidence `calibrated`) are rates that it reaches: they
/// count in full.
/// Pure. The planner and the clock of virtual devices take it through DeviceTimes.
double roofline_seconds(const DeviceInfo& device, const Cost& cost, DType dtype);

/// Time of one copy over the device's link: latency + bytes / bandwidth (pinned host memory), and,
/// for a download, the time until the host notices.
double copy_seconds(const DeviceInfo& device, double bytes, bool to_device);

/// The lowest evidence among the figures that roofline_seconds uses: `calibrated` where they were
/// measured, `predicted` from a sheet.
Evidence roofline_evidence(const DeviceInfo& device, DType dtype);
/// The same for copy_seconds.
Evidence copy_evidence(const DeviceInfo& device, bool to_device);

}  // namespace turnout
