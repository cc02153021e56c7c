#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/graph.hpp"

namespace turnout::test {

/// The CPU with its kernels.
struct Host {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Device& device = backend->open("cpu");
  KernelRegistry registry;

  Host() { backend->register_kernels(registry); }

  /// The provider's kernel for a node; null when it refuses.
  const KernelEntry* find(const NodeInfo& info, const std::string& provider) const {
    const std::vector<std::string> providers = {provider};
    return registry.select(info, device.info(), providers).entry;
  }
};

inline std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.defined() ? &tensor : nullptr);
  return result;
}

/// One node made ready on the host by one kernel, with whatever reorders its layouts need.
/// run() may be called from several threads at once.
class HostNode {
 public:
  HostNode(Host& host, const NodeInfo& info, const KernelEntry& entry, int threads,
           bool may_choose_layout, std::vector<LayoutPtr> arriving = {})
      : host_(host), info_(info), threads_(threads) {
    PrepareContext context{info, host.device, threads, std::move(arriving), may_choose_layout};
    kernel_ = entry.prepare(context);
    for (int i = 0; i < info.input_count(); ++i) {
      input_reorders_.push_back(
          info.has_input(i) ? reorder(info.input(i), nullptr, kernel_->input_layout(i)) : nullptr);
    }
    for (int i = 0; i < info.output_count(); ++i) {
      output_reorders_.push_back(reorder(info.output(i), kernel_->output_layout(i), nullptr));
    }
  }

  const PreparedKernel& kernel() const { return *kernel_; }

  /// Plain tensors in, plain tensors out. Undefined tensors stand for absent inputs. Buffers that
  /// the kernel writes start out as NaN.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> kept;
    std::vector<Operand> in, out;
    for (int i = 0; i < info_.input_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool passed = info_.has_input(i) && !kernel_->packs_input(i) &&
                          !info_.op->is_shape_input(i) && inputs[at].defined();
      if (!passed) {
        in.push_back({});
        continue;
      }
      kept.push_back(apply(input_reorders_[at].get(), inputs[at], kernel_->input_layout(i)));
      in.push_back({kept.back().address(), nullptr});
    }
    std::vector<Tensor> stored;
    for (int i = 0; i < info_.output_count(); ++i) {
      stored.push_back(poisoned(bytes_of(info_.output(i), kernel_->output_layout(i))));
      out.push_back({stored.back().address(), nullptr});
    }
    launch(*kernel_, in, out);
    std::vector<Tensor> results;
    for (int i = 0; i < info_.output_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      Tensor plain = apply(output_reorders_[at].get(), stored[at], nullptr,
                           static_cast<std::size_t>(info_.output(i).bytes()));
      results.push_back(Tensor(info_.output(i), plain.buffer()));
    }
    return results;
  }

 private:
  using Kernel = std::unique_ptr<PreparedKernel>;

  static std::size_t bytes_of(const TensorSpec& spec, const LayoutPtr& layout) {
    return layout ? layout->bytes() : static_cast<std::size_t>(spec.bytes());
  }

  static Tensor poisoned(std::size_t bytes) {
    Tensor tensor = Tensor::empty({DType::u8, {static_cast<std::int64_t>(bytes)}});
    std::ranges::fill(tensor.values<std::uint8_t>(), std::uint8_t{0xff});
    return tensor;
  }

  Kernel reorder(const TensorSpec& spec, const LayoutPtr& from, const LayoutPtr& to) const {
    if (same_layout(from, to)) return nullptr;
    const LayoutPtr& special = from ? from : to;
    return (*host_.registry.reorder(special->provider()))(spec, from, to, threads_);
  }

  Tensor apply(const PreparedKernel* kernel, const Tensor& tensor, const LayoutPtr& to,
               std::size_t plain_bytes = 0) const {
    if (kernel == nullptr) return tensor;
    Tensor result = poisoned(to ? to->bytes() : plain_bytes);
    launch(*kernel, {{tensor.address(), nullptr}}, {{result.address(), nullptr}});
    return result;
  }

  void launch(const PreparedKernel& kernel, const std::vector<Operand>& in,
              const std::vector<Operand>& out) const {
    const Tensor workspace = poisoned(kernel.workspace_bytes());
    const auto stream = host_.device.make_stream();
    stream->launch(kernel, KernelArgs(in, out, {workspace.address(), nullptr}, nullptr));
  }

  Host& host_;
  NodeInfo info_;
  int threads_;
  Kernel kernel_;
  std::vector<Kernel> input_reorders_, output_reorders_;
};

/// The value of `tensor`, stored as `from`, stored as `to` (null: plain).
inline Tensor reorder(Host& host, const TensorSpec& spec, const Tensor& tensor,
                      const LayoutPtr& from, const LayoutPtr& to) {
  const LayoutPtr& special = from ? from : to;
  if (same_layout(from, to)) return tensor;
  const auto kernel = (*host.registry.reorder(special->provider()))(spec, from, to, 1);
  const auto bytes = to ? static_cast<std::int64_t>(to->bytes()) : spec.bytes();
  const Tensor result = Tensor::empty({DType::u8, {bytes}});
  const Operand in{tensor.address(), nullptr};
  const Operand out{result.address(), nullptr};
  const Tensor workspace =
      Tensor::empty({DType::u8, {static_cast<std::int64_t>(kernel->workspace_bytes())}});
  const auto stream = host.device.make_stream();
  stream->launch(*kernel, KernelArgs({&in, 1}, {&out, 1}, {workspace.address(), nullptr}, nullptr));
  return result;
}

/// "" if every element of `got` is within the tolerance of `want`; otherwise the worst one.
inline std::string difference(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  const auto a = to_double(got);
  const auto b = to_double(want);
  double range = 0;
  for (const double v : b) range = std::isfinite(v) ? std::max(range, std::abs(v)) : range;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    const double scale = tolerance.of_range ? range : std::abs(b[i]);
    const double allowed = tolerance.absolute + tolerance.relative * scale;
    if (same || std::abs(a[i] - b[i]) <= allowed) continue;
    return fmt::format("element {} of {} is {}, should be {} (within {})", i, b.size(), a[i], b[i],
                       allowed);
  }
  return "";
}

}  // namespace turnout::test
