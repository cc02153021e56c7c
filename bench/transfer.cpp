// Times copies between the host and a device: 4 KiB to 256 MiB, both directions, pinned and
// pageable, alone and while something else is going on, and fits latency and rate into the device's
// calibration.
//
//   transfer [DEVICE] [--budget SECONDS] [--again]      default: every device that isn't virtual
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/cost/device_probe.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

bool is_copy(const ProbePoint& point) {
  return point.what.starts_with("h2d") || point.what.starts_with("d2h");
}

void bench(System& system, const std::string& name, double budget, bool again) {
  const DeviceSlot slot = system.open(name);
  std::vector<ProbePoint> points = full_points();
  std::erase_if(points, [](const ProbePoint& point) { return !is_copy(point); });
  DeviceCalibration known;
  const std::string key = device_key(slot.device->info());
  if (auto kept = kept_calibration(key)) known = std::move(*kept);
  if (again) std::erase_if(known.points, [](const MeasuredPoint& p) { return is_copy(p.point); });
  ProbeOptions options;
  options.budget_seconds = budget;
  const DeviceCalibration result = probe_device(slot, points, std::move(known), options);
  fmt::print("{}: {}{}\n{:<26} {:>11} {:>11} {:>10} {:>8}\n", name, slot.info().title,
             slot.info().is_virtual ? " (virtual: predicted, by its clock)" : " (measured)", "copy",
             "size", "time", "GB/s", "spread");
  for (const MeasuredPoint& measured : result.points) {
    const ProbePoint& point = measured.point;
    const Sample& sample = measured.sample;
    if (!is_copy(point)) continue;
    const double size = static_cast<double>(point.size);
    fmt::print("{:<26} {:>11} {:>11} {:>10.3f} {:>6.1f} %{}\n", point.what, format_bytes(size),
               format_seconds(sample.seconds), size / sample.seconds / 1e9, sample.spread * 100,
               sample.noisy() ? "  noisy" : "");
  }
  for (const char* what : {"h2d", "d2h", "h2d pageable", "d2h pageable"}) {
    const TransferFit fit = result.transfer(what);
    if (fit.points == 0) continue;
    fmt::print("{:<14} {} + bytes / {:.3f} GB/s, within {:.0f} % over {} sizes\n", what,
               format_seconds(fit.latency_seconds), fit.bytes_per_s / 1e9, fit.worst_error * 100,
               fit.points);
  }
  for (const std::string& line : result.refused) fmt::print("not measured: {}\n", line);
  if (const std::size_t missing = missing_points(result, points); missing > 0) {
    fmt::print("{} points are missing: the budget of {} s is used up; run again to go on\n",
               missing, budget);
  }
  fmt::print("{}\n", keep_calibration(result) ? "kept in " + calibration_path(key)
                                              : "the calibration file can't be written");
}

int run(int argc, char** argv) {
  std::string device;
  double budget = 60;
  bool again = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--budget") == 0 && i + 1 < argc) {
      budget = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--again") == 0) {
      again = true;
    } else if (argv[i][0] != '-' && device.empty()) {
      device = argv[i];
    } else {
      fmt::print(stderr, "usage: transfer [DEVICE] [--budget SECONDS] [--again]\n");
      return 2;
    }
  }
  System system;
  std::vector<std::string> names{device};
  if (device.empty()) {
    names.clear();
    for (const auto& backend : system.backends()) {
      for (const std::string& name : backend->device_names()) {
        const DeviceInfo& info = system.open(name).info();
        if (!info.is_virtual && !info.is_host) names.push_back(name);
      }
      for (const std::string& why : backend->missing()) {
        fmt::print("{}: {}\n", backend->name(), why);
      }
    }
    if (names.empty())
      fmt::print("there is no device with a link here; try: transfer virtual:v100\n");
  }
  for (const std::string& name : names) bench(system, name, budget, again);
  return 0;
}

}  // namespace
}  // namespace turnout

int main(int argc, char** argv) {
  try {
    return turnout::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "transfer: {}\n", error.what());
    return 1;
  }
}
