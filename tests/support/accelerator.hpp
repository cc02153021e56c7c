#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/backend.hpp"
#include "ops/all_ops.hpp"

// A device that isn't virtual and isn't the host, for what treats hardware differently: its figures
// are unknown until they are measured, and its times are real. Its memory is the host's, its
// kernels are the CPU's, and everything is done at once.
namespace turnout::test {

class Accelerator final : public Device {
 public:
  /// `copy_delay`: every copy takes that much longer.
  explicit Accelerator(std::chrono::microseconds copy_delay = {}) : copy_delay_(copy_delay) {
    info_.name = "fake:0";
    info_.title = "an accelerator made of the host";
    info_.vendor = "none";
    info_.compute_units = 4;
    info_.memory_bytes = {4e9, Evidence::measured, "made up"};
    info_.link.name = "memory";
  }

  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind kind) override {
    auto block = allocate_host(std::max<std::size_t>(bytes, 1));
    void* address = block->address();
    Device* owner = kind == MemoryKind::device ? this : nullptr;
    return std::make_shared<Buffer>(address, bytes, owner,
                                    [block](void*) mutable { block.reset(); });
  }
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  MemoryUse memory_use() const override { return {}; }
  std::chrono::microseconds copy_delay() const { return copy_delay_; }

 private:
  DeviceInfo info_;
  std::chrono::microseconds copy_delay_;
};

class AcceleratorEvent final : public Event {
 public:
  void synchronize() override {}
  double seconds() const override { return seconds_; }
  void record() {
    using namespace std::chrono;
    seconds_ = duration<double>(steady_clock::now().time_since_epoch()).count();
  }

 private:
  double seconds_ = 0;
};

class AcceleratorStream final : public Stream {
 public:
  explicit AcceleratorStream(Accelerator& device) : device_(device) {}
  Device& device() const override { return device_; }
  void launch(const PreparedKernel& kernel, const KernelArgs& args) override {
    kernel.run(args, *this);
  }
  void copy(void* to, const Device*, const void* from, const Device*, std::size_t bytes) override {
    std::this_thread::sleep_for(device_.copy_delay());
    std::memcpy(to, from, bytes);
  }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    std::memset(address, static_cast<int>(value), bytes);
  }
  void record(Event& event) override { dynamic_cast<AcceleratorEvent&>(event).record(); }
  void wait(Event& event) override { event.synchronize(); }
  void synchronize() override {}

 private:
  Accelerator& device_;
};

inline std::unique_ptr<Stream> Accelerator::make_stream() {
  return std::make_unique<AcceleratorStream>(*this);
}
inline std::unique_ptr<Event> Accelerator::make_event() {
  return std::make_unique<AcceleratorEvent>();
}

class AcceleratorBackend final : public Backend {
 public:
  explicit AcceleratorBackend(std::chrono::microseconds copy_delay) : device_(copy_delay) {
    host_->register_kernels(host_kernels_);
    const auto built = host_kernels_.providers();
    providers_.assign(built.begin(), built.end());
  }

  std::string_view name() const override { return "fake"; }
  Device& open(std::string_view) override { return device_; }
  std::vector<std::string> device_names() const override { return {"fake:0"}; }
  std::vector<std::string> default_providers() const override { return {"host"}; }
  void register_kernels(KernelRegistry& registry) const override {
    for (const auto& [name, def] : all_ops().all()) {
      KernelEntry entry;
      entry.op = name;
      entry.provider = "host";
      entry.accepts = [this](const NodeInfo& info, const DeviceInfo&) {
        return find(info) != nullptr ? Acceptance::yes() : Acceptance::no("the host has no kernel");
      };
      entry.prepare = [this](const PrepareContext& context) {
        return find(context.info)->prepare({context.info, *cpu_, context.threads, {}, false});
      };
      registry.add(std::move(entry));
    }
  }

 private:
  const KernelEntry* find(const NodeInfo& info) const {
    return host_kernels_.select(info, cpu_->info(), providers_).entry;
  }

  std::unique_ptr<Backend> host_ = make_cpu_backend();
  Device* cpu_ = &host_->open("cpu");
  std::vector<std::string> providers_;  // all, so that every op has a kernel
  KernelRegistry host_kernels_;
  Accelerator device_;
};

/// The CPU and the accelerator "fake:0".
inline std::vector<std::unique_ptr<Backend>> backends_with_accelerator(
    std::chrono::microseconds copy_delay = {}) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cpu_backend());
  backends.push_back(std::make_unique<AcceleratorBackend>(copy_delay));
  return backends;
}

}  // namespace turnout::test
