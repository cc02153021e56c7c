#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"

namespace turnout {

/// Opens a plugin's file and takes its backend, which lives until the process ends. Errors name the
/// file: not_found when it isn't there, unsupported with the reason for everything else: another
/// build, no device, "needs glibc >= 2.38 (this system has 2.36)".
Backend& load_plugin(const std::filesystem::path& file, const std::string& options = "");

/// A backend whose devices are a plugin's. Which file is opened, and when: the driver is asked for
/// devices first, then the newest `turnout_<name>_<architecture>.so` that the first device can run
/// is opened, from $TURNOUT_PLUGIN_PATH (folders, ':' between them), else from the folder of this
/// library or program and from ../lib/turnout beside it.
class PluginBackend final : public Backend {
 public:
  explicit PluginBackend(std::string name);

  std::string_view name() const override { return name_; }
  Device& open(std::string_view device_name) override;
  std::vector<std::string> device_names() const override;
  void register_kernels(KernelRegistry& registry) const override;
  std::vector<std::string> default_providers() const override;
  /// Why there are no devices, and what each plugin file that was found lacks here.
  std::vector<std::string> missing() const override;

 private:
  struct State;
  const State& state() const;  ///< asks the driver and loads, once

  std::string name_;
  std::unique_ptr<State> state_;
};

}  // namespace turnout
