#include <fmt/format.h>

#include <memory>

#include "generated/turnout_config.hpp"
#include "ops/all_ops.hpp"
#include "runtime/cost/cpu_probe.hpp"
#include "runtime/cost/device_probe.hpp"
#include "runtime/report/units.hpp"
#include "runtime/system.hpp"
#include "tools/commands.hpp"

namespace turnout::tools {
namespace {

void print_figure(const char* name, const Figure& figure, double unit, const char* unit_name) {
  if (!figure.known()) return;
  fmt::print("    {:<22} {:>10.4g} {:<9} {:<10} {}\n", name, figure.value / unit, unit_name,
             to_string(figure.evidence), figure.source);
}

void print_figures(const DeviceInfo& info) {
  print_figure("f32", info.peak_f32, 1e12, "TFLOP/s");
  print_figure("tf32", info.peak_tf32, 1e12, "TFLOP/s");
  print_figure("f16", info.peak_f16, 1e12, "TFLOP/s");
  print_figure("i8", info.peak_i8, 1e12, "TOP/s");
  print_figure("memory", info.memory_bytes, 1024.0 * 1024 * 1024, "GiB");
  print_figure("memory bandwidth", info.memory_bytes_per_s, 1e9, "GB/s");
  print_figure("launch", info.launch_seconds, 1e-6, "us");
  print_figure("link to device", info.link.h2d_bytes_per_s, 1e9, "GB/s");
  print_figure("link to host", info.link.d2h_bytes_per_s, 1e9, "GB/s");
  print_figure("link latency", info.link.latency_seconds, 1e-6, "us");
}

void print_cpu_profile(const CpuProfile& profile) {
  fmt::print("    figures of the CPU, {} threads: {} ({})\n", profile.threads,
             to_string(profile.evidence), profile.source);
  for (const auto& [provider, curve] : profile.gemm) {
    fmt::print("      {:<9} product of 1024 {:>8.4g} GFLOP/s\n", provider, curve.back().rate / 1e9);
  }
  for (const RatePoint& point : profile.stream) {
    fmt::print("      one pass over {:>10} {:>8.4g} GB/s\n", format_bytes(point.size),
               point.rate / 1e9);
  }
  fmt::print("      small kernel {}\n", format_seconds(profile.dispatch_seconds));
}

// A line an op: the providers that have a kernel for it, or what becomes of it without one.
void list_kernels() {
  const System system;
  for (const auto& backend : system.backends()) {
    if (backend->device_names().empty()) continue;
    const KernelRegistry& kernels = system.kernels(*backend);
    fmt::print("{}\n", backend->name());
    for (const auto& [name, op] : all_ops().all()) {
      std::vector<std::string> found;
      for (const std::string& provider : kernels.providers()) {
        if (kernels.has_kernel(name, provider)) found.push_back(provider);
      }
      if (op.decompose != nullptr) found.emplace_back("(becomes other ops)");
      if (op.view) found.emplace_back("(a view: nothing runs)");
      fmt::print("  {:<28} {}\n", name, fmt::join(found, " "));
    }
  }
}

void list_devices(bool probe, bool all) {
  const auto system = std::make_shared<System>();
  fmt::print("turnout {}, compiled for {}\n", config::kVersion, config::kCpuArch);
  for (const auto& backend : system->backends()) {
    const KernelRegistry& kernels = system->kernels(*backend);
    fmt::print("\n{}\n", backend->name());
    for (const std::string& provider : kernels.providers()) {
      fmt::print("  provider {:<10} {} kernels\n", provider, kernels.kernel_count(provider));
    }
    for (const std::string& missing : backend->missing()) fmt::print("  missing  {}\n", missing);
    for (const std::string& name : backend->device_names()) {
      if (probe) use_calibration(*system, name);
      const DeviceSlot slot = system->open(name);
      fmt::print("  {:<24} {}{}\n", name, slot.info().title,
                 slot.info().is_virtual ? " (virtual: nothing runs on this hardware here)" : "");
      if (!slot.info().is_virtual || all) print_figures(slot.info());
      if (slot.info().is_host && probe) print_cpu_profile(cpu_profile(system, 0));
    }
  }
  if (!all) fmt::print("\nfigures of virtual devices and their sources: turnout devices --all\n");
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("devices", "Devices and providers, what is missing and why");
  auto all = std::make_shared<bool>(false);
  auto kernels = std::make_shared<bool>(false);
  auto no_probe = std::make_shared<bool>(false);
  command->add_flag("--all", *all, "every figure of every device, with its source");
  command->add_flag("--no-probe", *no_probe, "don't measure the CPU");
  command->add_flag("--kernels", *kernels,
                    "only the ops and the providers that have kernels for them");
  command->callback([=] { *kernels ? list_kernels() : list_devices(!*no_probe, *all); });
}

}  // namespace turnout::tools
