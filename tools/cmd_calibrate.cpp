#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include "runtime/cost/cpu_probe.hpp"
#include "runtime/cost/device_probe.hpp"
#include "runtime/report/units.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

struct Options {
  std::string devices;
  double budget = 60;
  int threads = 0;
  bool quick = false;
  bool again = false;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

// On a terminal one line that is written over; otherwise a line every tenth.
class Progress {
 public:
  explicit Progress(std::string device)
      : device_(std::move(device)), terminal_(isatty(fileno(stderr)) != 0) {}

  void show(double share, const std::string& next) {
    const int percent = static_cast<int>(share * 100);
    if (terminal_) {
      constexpr int kWidth = 30;
      const int filled = static_cast<int>(share * kWidth);
      fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {:3} %  {:<40.40}", device_, "", filled, "",
                 kWidth - filled, percent, next);
    } else if (percent / 10 != last_ / 10 || last_ < 0) {
      fmt::print(stderr, "{}: {} %, next: {}\n", device_, percent, next);
    }
    last_ = percent;
    std::fflush(stderr);
  }
  void end() const {
    if (terminal_ && last_ >= 0) fmt::print(stderr, "\r{: <90}\r", "");
  }

 private:
  std::string device_;
  bool terminal_;
  int last_ = -1;
};

void print_transfer(const DeviceCalibration& calibration, const char* what) {
  const TransferFit fit = calibration.transfer(what);
  if (fit.points == 0) return;
  fmt::print("  {:<24} {:>9} + bytes / {:.3g} GB/s   {} sizes within {:.0f} %\n", what,
             format_seconds(fit.latency_seconds), fit.bytes_per_s / 1e9, fit.points,
             fit.worst_error * 100);
}

void print_points(const DeviceCalibration& calibration) {
  fmt::print("  {:<24} {:>12} {:>11} {:>8} {:>6}\n", "measured", "size", "time", "spread", "kept");
  for (const MeasuredPoint& measured : calibration.points) {
    const ProbePoint& point = measured.point;
    const Sample& sample = measured.sample;
    const std::string rejected =
        sample.rejected > 0 ? fmt::format(", {} put aside", sample.rejected) : "";
    fmt::print("  {:<24} {:>12} {:>11} {:>6.1f} % {:>6}{}{}\n", point.what, point.size,
               format_seconds(sample.seconds), sample.spread * 100, sample.count, rejected,
               sample.noisy() ? "  noisy" : "");
  }
  for (const std::string& line : calibration.refused) fmt::print("  not measured: {}\n", line);
}

void print_summary(const DeviceCalibration& calibration) {
  for (const char* what : {"h2d", "d2h", "h2d pageable", "d2h pageable"}) {
    print_transfer(calibration, what);
  }
  for (const char* dtype : {"f64", "f32", "f16", "bf16"}) {
    const std::string what = fmt::format("product {}", dtype);
    if (const auto rate = calibration.best_rate(what)) {
      fmt::print("  {:<24} {:.4g} TFLOP/s\n", what, *rate / 1e12);
    }
  }
  if (const auto rate = calibration.best_rate("stream")) {
    fmt::print("  {:<24} {:.4g} GB/s\n", "stream", *rate / 1e9);
  }
}

void calibrate(const std::shared_ptr<System>& system, const std::string& label,
               const Options& options) {
  const int threads = options.threads > 0 ? options.threads : core_count();
  const DeviceSlot slot = system->open(label, {}, threads);
  const bool is_host = slot.info().is_host;
  const std::string key = is_host ? cpu_key(*system, threads) : device_key(slot.device->info());
  const std::vector<ProbePoint> points = is_host         ? cpu_points(*system, !options.quick)
                                         : options.quick ? quick_points()
                                                         : full_points();
  DeviceCalibration known;
  if (auto kept = kept_calibration(key); kept && !options.again) known = std::move(*kept);
  const std::size_t before = points.size() - missing_points(known, points);
  Progress progress(label);
  ProbeOptions probe;
  probe.budget_seconds = options.budget;
  probe.progress = [&](double share, const ProbePoint& next) {
    progress.show(share, fmt::format("{} {}", next.what, next.size));
    return interrupted == 0;
  };
  probe.keep = [](const DeviceCalibration& so_far) { keep_calibration(so_far); };
  const auto begin = std::chrono::steady_clock::now();
  const DeviceCalibration result =
      is_host ? calibrate_cpu(system, threads, points, std::move(known), probe)
              : probe_device(slot, points, std::move(known), probe);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  progress.end();
  fmt::print("{}: {}{}\n", label, slot.info().title,
             slot.info().is_virtual ? " (virtual: times are its clock's, predicted)" : "");
  print_points(result);
  print_summary(result);
  const std::size_t missing = missing_points(result, points);
  fmt::print(
      "  {} of {} points, {} of them from before, in {:.1f} s; {} noisy, {} samples put aside\n",
      points.size() - missing, points.size(), before, seconds, result.noisy(), result.rejected());
  const std::size_t next = missing_points(result, points, options.budget);
  if (next > 0) {
    fmt::print("  {}: the same command goes on with the {} points that are missing\n",
               interrupted != 0 ? "interrupted" : "the budget is used up", next);
  }
  if (missing > next) {
    fmt::print("  {} points need more than --budget {} on this device\n", missing - next,
               options.budget);
  }
  if (keep_calibration(result)) {
    fmt::print("  kept in {}\n", calibration_path(key));
  } else {
    fmt::print("  can't be kept: {}\n",
               cache_folder().empty() ? "there is no home folder" : calibration_path(key));
  }
}

void run(const Options& options) {
  const auto system = std::make_shared<System>();
  const std::vector<std::string> labels =
      options.devices.empty() ? real_devices(*system) : split_list(options.devices);
  std::signal(SIGINT, on_interrupt);
  for (const std::string& label : labels) {
    if (interrupted == 0) calibrate(system, label, options);
  }
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this machine's devices for the planner; goes on where it stopped");
  auto options = std::make_shared<Options>();
  command->add_option("--devices", options->devices,
                      "comma list (default: every device that isn't virtual)");
  command->add_option("--budget", options->budget, "seconds of measuring for each device")
      ->check(CLI::Range(0.1, 86400.0));
  command->add_option("--threads", options->threads, "threads of the CPU (default: every core)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--quick", options->quick, "only the points of the first use's probe");
  command->add_flag("--again", options->again, "forget what was measured before");
  command->callback([options] { run(*options); });
}

}  // namespace turnout::tools
