#include <string>

#include "backends/cpu/device.hpp"
#include "core/backend.hpp"
#include "generated/turnout_config.hpp"

namespace turnout {
namespace {

// The parts of this build that are providers of the CPU, best first.
constexpr std::string_view kProviders[] = {"onednn", "openblas", "kokkos"};

const config::Part* find_part(std::string_view provider) {
  for (const config::Part& part : config::kParts) {
    if (part.name == provider) return &part;
  }
  return nullptr;
}

bool is_built(std::string_view provider) {
  const config::Part* part = find_part(provider);
  return part != nullptr && std::string_view(part->why_absent).empty();
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  Device& open(std::string_view device_name) override {
    if (device_name == "cpu") return device_;
    fail(ErrorCode::not_found, "there is no device '{}'; this machine's processors are 'cpu'",
         device_name);
  }

  std::vector<std::string> device_names() const override { return {"cpu"}; }

  void register_kernels(KernelRegistry& registry) const override {
    register_cpu_providers(registry);
  }

  std::vector<std::string> default_providers() const override {
    std::vector<std::string> built;
    for (const auto provider : kProviders) {
      if (is_built(provider)) built.emplace_back(provider);
    }
    if (built.empty()) built.emplace_back("reference");
    return built;
  }

  std::vector<std::string> missing() const override {
    std::vector<std::string> lines;
    for (const auto provider : kProviders) {
      if (is_built(provider)) continue;
      const config::Part* part = find_part(provider);
      lines.push_back(fmt::format("{}: {}", provider, part != nullptr ? part->why_absent : ""));
    }
    return lines;
  }

 private:
  cpu::CpuDevice device_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace turnout
