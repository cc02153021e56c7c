#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.hpp"
#include "core/graph.hpp"

namespace turnout {

/// How a provider stores a value when it isn't plain (dense row-major) order. Opaque to everyone
/// else; null stands for plain. Immutable, shared between producer and consumers.
class Layout {
 public:
  virtual ~Layout() = default;
  virtual std::string_view provider() const = 0;
  virtual std::string name() const = 0;  ///< "onednn:aBcd16b"
  virtual std::size_t bytes() const = 0;
  virtual bool equals(const Layout& other) const = 0;
};
using LayoutPtr = std::shared_ptr<const Layout>;
bool same_layout(const LayoutPtr& a, const LayoutPtr& b);

/// Address of one operand at run time. Null address: an optional operand not given, or a constant
/// that the kernel packed.
struct Operand {
  void* address = nullptr;
  const Device* device = nullptr;  ///< null: host memory
};

/// Operands of one launch. Spans refer to memory that outlives the launch. Holds no tensors and
/// allocates nothing; shapes were settled in prepare().
class KernelArgs {
 public:
  KernelArgs() = default;
  /// `device`: of the stream that runs the kernel; null for the host.
  KernelArgs(std::span<const Operand> inputs, std::span<const Operand> outputs, Operand workspace,
             const Device* device)
      : inputs_(inputs),
        outputs_(outputs),
        workspace_(workspace),
        device_(device),
        access_offset_(device == nullptr ? 0 : device->access_offset()) {}

  /// Null for an operand that isn't there. Throws when the operand lies on another device: a
  /// missing copy is an error, never a wrong number.
  template <typename T>
  const T* input(int i) const {
    const auto index = static_cast<std::size_t>(i);
    return index < inputs_.size() ? static_cast<const T*>(resolve(inputs_[index])) : nullptr;
  }
  template <typename T>
  T* output(int i) const {
    const auto index = static_cast<std::size_t>(i);
    return index < outputs_.size() ? static_cast<T*>(resolve(outputs_[index])) : nullptr;
  }
  /// workspace_bytes() of scratch, 64-byte aligned.
  void* workspace() const { return resolve(workspace_); }

  /// As given: for streams, which check them before a kernel runs. Kernels use the ones above.
  const Device* device() const { return device_; }
  std::span<const Operand> inputs() const { return inputs_; }
  std::span<const Operand> outputs() const { return outputs_; }
  const Operand& workspace_operand() const { return workspace_; }

 private:
  void* resolve(const Operand& operand) const {
    if (operand.address == nullptr) return nullptr;
    if (operand.device != device_) throw_wrong_device(operand);
    return static_cast<std::byte*>(operand.address) + access_offset_;
  }
  [[noreturn]] void throw_wrong_device(const Operand& operand) const;

  std::span<const Operand> inputs_;
  std::span<const Operand> outputs_;
  Operand workspace_;
  const Device* device_ = nullptr;
  std::ptrdiff_t access_offset_ = 0;
};

/// A kernel made ready for one node's shapes and constants: primitives created, weights packed.
/// Immutable: run() may be called from several threads at once, each with its own args.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  /// Does the work, on the calling thread (host kernels may use their provider's threads) or by
  /// enqueueing on `stream.native_handle()`. Allocates nothing, takes no lock.
  virtual void run(const KernelArgs& args, Stream& stream) const = 0;
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Layouts this kernel reads and writes. Null: plain.
  virtual LayoutPtr input_layout(int) const { return nullptr; }
  virtual LayoutPtr output_layout(int) const { return nullptr; }
  /// True if input i is a constant this kernel keeps a packed copy of: the operand is never passed.
  virtual bool packs_input(int) const { return false; }
  virtual std::size_t packed_bytes() const { return 0; }
  /// Implementation behind it, for explain ("brgconv:avx512_core").
  virtual std::string implementation() const { return ""; }

  /// Work of the node and its main dtype, for clocks and reports; set by whoever prepared it.
  Cost cost{};
  DType dtype = DType::f32;
};

struct PrepareContext {
  const NodeInfo& info;
  Device& device;
  int threads = 1;
  /// Layouts in which the inputs will arrive if the kernel has no other wish; may be empty (plain).
  std::vector<LayoutPtr> input_layouts;
  /// May the outputs have layouts other than plain?
  bool may_choose_layout = false;
};

/// Yes, or no with its reason.
struct Acceptance {
  bool ok = true;
  std::string reason;
  static Acceptance yes() { return {}; }
  static Acceptance no(std::string reason) { return {false, std::move(reason)}; }
};

/// A kernel of one provider for one op. "Supports" and "runs" are this one object.
struct KernelEntry {
  std::string op;
  std::string provider;  ///< "onednn", "openblas", "kokkos", "reference"
  std::function<Acceptance(const NodeInfo&, const DeviceInfo&)> accepts;
  std::function<std::unique_ptr<PreparedKernel>(const PrepareContext&)> prepare;
};

/// Makes the kernel that turns a value of `spec` from one layout (null: plain) into another.
using MakeReorder = std::function<std::unique_ptr<PreparedKernel>(
    const TensorSpec& spec, const LayoutPtr& from, const LayoutPtr& to, int threads)>;

/// Kernels of one device by op and provider. Filled once by Backend::register_kernels, then
/// immutable and thread-safe.
class KernelRegistry {
 public:
  void add(KernelEntry entry);
  void add_reorder(std::string provider, MakeReorder make);

  struct Refusal {
    std::string provider;
    std::string reason;
  };
  struct Selection {
    const KernelEntry* entry = nullptr;  ///< null: nobody takes the node
    std::vector<Refusal> refusals;       ///< of providers asked before the one that took it
  };
  /// First provider of `providers`, in their order, with a kernel that accepts the node.
  Selection select(const NodeInfo& info, const DeviceInfo& device,
                   std::span<const std::string> providers) const;
  /// Every kernel that accepts the node, and every refusal, over `providers`.
  std::vector<const KernelEntry*> accepting(const NodeInfo& info, const DeviceInfo& device,
                                            std::span<const std::string> providers,
                                            std::vector<Refusal>* refusals = nullptr) const;
  /// Providers with at least one kernel, in order of registration.
  std::span<const std::string> providers() const { return providers_; }
  std::size_t kernel_count(std::string_view provider) const;
  /// True if the provider has a kernel for some form of the op.
  bool has_kernel(std::string_view op, std::string_view provider) const;
  /// Null when the provider has no layouts of its own.
  const MakeReorder* reorder(std::string_view provider) const;

 private:
  std::map<std::string, std::vector<KernelEntry>, std::less<>> by_op_;
  std::map<std::string, MakeReorder, std::less<>> reorders_;
  std::vector<std::string> providers_;
};

}  // namespace turnout
