#include "backends/plugin/loader.hpp"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include "backends/plugin/library_needs.hpp"
#include "backends/plugin/probe.hpp"
#include "core/error.hpp"
#include "core/plugin.hpp"
#include "generated/build_id.hpp"

namespace turnout {
namespace {

namespace fs = std::filesystem;

// What dlopen says, after what a user can act on first.
std::string open_error(const fs::path& file, const std::string& text) {
  const std::string needed = plugin::needed_glibc(file);
  const std::string here = gnu_get_libc_version();
  if (!plugin::older_version(here, needed)) return text;
  return fmt::format("needs glibc >= {} (this system has {}); {}", needed, here, text);
}

void* open_library(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    fail(ErrorCode::not_found, "there is no plugin '{}'", file.string());
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    fail(ErrorCode::unsupported, "plugin '{}': {}", file.string(),
         open_error(file, text == nullptr ? "can't be opened" : text));
  }
  return library;
}

// Folders that may hold plugins.
std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("TURNOUT_PLUGIN_PATH"); given != nullptr) {
    std::string_view rest = given;
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
      if (!folder.empty()) folders.emplace_back(folder);
    }
    return folders;
  }
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&load_plugin), &here) == 0) return folders;
  std::error_code error;
  const fs::path own = fs::canonical(here.dli_fname, error).parent_path();
  if (error) return folders;
  return {own, own.parent_path() / "lib" / "turnout"};
}

struct PluginFile {
  fs::path path;
  std::string architecture;
};

// Plugins called `name`, newest architecture first.
std::vector<PluginFile> find_plugins(const std::string& name) {
  const std::string before = "turnout_" + name + "_";
  std::vector<PluginFile> files;
  for (const fs::path& folder : plugin_folders()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string stem = entry.path().stem().string();
      if (entry.path().extension() != ".so" || !stem.starts_with(before)) continue;
      std::string architecture = stem.substr(before.size());
      if (architecture.starts_with("sm")) architecture.insert(2, "_");  // files: turnout_x_sm90.so
      files.push_back({entry.path(), std::move(architecture)});
    }
  }
  std::sort(files.begin(), files.end(), [](const PluginFile& a, const PluginFile& b) {
    const int left = plugin::architecture_number(a.architecture);
    const int right = plugin::architecture_number(b.architecture);
    return left != right ? left > right : a.path < b.path;
  });
  return files;
}

// Backends of plugins live until the process ends; this is what refers to them until then.
void keep(Backend* backend) {
  static std::mutex mutex;
  static auto* kept = new std::vector<Backend*>;
  const std::scoped_lock lock(mutex);
  kept->push_back(backend);
}

}  // namespace

Backend& load_plugin(const fs::path& file, const std::string& options) {
  void* library = open_library(file);
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginSymbol));
  if (entry == nullptr) {
    dlclose(library);
    fail(ErrorCode::unsupported, "plugin '{}': it has no {}", file.string(), kPluginSymbol);
  }
  std::array<char, 1024> text{};
  const PluginRequest request{kPluginAbi, kBuildId, options.c_str(), text.data(), text.size()};
  Backend* backend = nullptr;
  const int status = entry(&request, &backend);
  if (status != static_cast<int>(PluginStatus::ok) || backend == nullptr) {
    // Stays open: it may have started threads or its vendor's runtime.
    fail(ErrorCode::unsupported, "plugin '{}': {}", file.string(), text.data());
  }
  keep(backend);
  return *backend;
}

struct PluginBackend::State {
  std::once_flag once;
  plugin::Probe probe;
  std::vector<PluginFile> files;
  Backend* backend = nullptr;
  std::string why_none;
};

PluginBackend::PluginBackend(std::string name)
    : name_(std::move(name)), state_(std::make_unique<State>()) {}

const PluginBackend::State& PluginBackend::state() const {
  State& state = *state_;
  std::call_once(state.once, [&] {
    state.probe = plugin::probe_devices(name_);
    state.files = find_plugins(name_);
    if (state.probe.architectures.empty()) {
      state.why_none = state.probe.why_none;
      return;
    }
    const std::string& device = state.probe.architectures.front();
    for (const PluginFile& file : state.files) {
      if (!plugin::runs_on(file.architecture, device)) continue;
      try {
        state.backend = &load_plugin(file.path);
        return;
      } catch (const Error& error) {
        state.why_none += (state.why_none.empty() ? "" : "; ") + std::string(error.what());
      }
    }
    if (state.why_none.empty()) {
      state.why_none = fmt::format("there is a device ({}), but no plugin for it", device);
    }
  });
  return state;
}

Device& PluginBackend::open(std::string_view device_name) {
  const State& loaded = state();
  if (loaded.backend != nullptr) return loaded.backend->open(device_name);
  fail(ErrorCode::not_found, "there is no device '{}': {}", device_name, loaded.why_none);
}

std::vector<std::string> PluginBackend::device_names() const {
  const State& loaded = state();
  return loaded.backend == nullptr ? std::vector<std::string>{} : loaded.backend->device_names();
}

void PluginBackend::register_kernels(KernelRegistry& registry) const {
  if (const State& loaded = state(); loaded.backend != nullptr) {
    loaded.backend->register_kernels(registry);
  }
}

std::vector<std::string> PluginBackend::default_providers() const {
  const State& loaded = state();
  return loaded.backend == nullptr ? std::vector<std::string>{}
                                   : loaded.backend->default_providers();
}

std::vector<std::string> PluginBackend::missing() const {
  const State& loaded = state();
  if (loaded.backend != nullptr) return {};
  std::vector<std::string> lines = {fmt::format("{}: {}", name_, loaded.why_none)};
  for (const PluginFile& file : loaded.files) {
    const std::string shown = file.path.filename().string();
    try {
      dlclose(open_library(file.path));
      lines.push_back(fmt::format("{}: {} is there and can be opened", name_, shown));
    } catch (const Error& error) {
      lines.push_back(fmt::format("{}: {}", name_, error.what()));
    }
  }
  if (loaded.files.empty()) lines.push_back(fmt::format("{}: no plugin file was found", name_));
  return lines;
}

std::unique_ptr<Backend> make_plugin_backend(std::string_view name) {
  return std::make_unique<PluginBackend>(std::string(name));
}

}  // namespace turnout
