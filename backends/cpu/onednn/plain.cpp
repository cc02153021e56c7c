#include "backends/cpu/onednn/plain.hpp"

#include <array>

namespace turnout::onednn {
namespace {

constexpr std::size_t kMaxOperands = 4;  // of a convolution
constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class PlainKernel final : public PreparedKernel {
 public:
  PlainKernel(std::unique_ptr<PreparedKernel> inner, const NodeInfo& info, int threads)
      : inner_(std::move(inner)), count_(info.inputs.size()) {
    cost = inner_->cost;
    dtype = inner_->dtype;
    workspace_bytes_ = aligned(inner_->workspace_bytes());
    for (std::size_t i = 0; i < count_; ++i) {
      const int at = static_cast<int>(i);
      if (const LayoutPtr layout = inner_->input_layout(at)) {
        inputs_[i] = place(make_reorder(info.input(at), nullptr, layout, threads), *layout);
      }
    }
    if (const LayoutPtr layout = inner_->output_layout(0)) {
      output_ = place(make_reorder(info.output(0), layout, nullptr, threads), *layout);
    }
    reorder_offset_ = workspace_bytes_;
    workspace_bytes_ += reorder_bytes_;
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  bool packs_input(int i) const override { return inner_->packs_input(i); }
  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  std::string implementation() const override { return inner_->implementation() + "+reorder"; }

  void run(const KernelArgs& args, Stream& stream) const override {
    auto* workspace = static_cast<std::byte*>(args.workspace());
    const Operand scratch{workspace + reorder_offset_, nullptr};
    std::array<Operand, kMaxOperands> in{};
    for (std::size_t i = 0; i < count_; ++i) {
      const auto* given = args.input<std::byte>(static_cast<int>(i));
      in[i] = {const_cast<std::byte*>(given), nullptr};
      if (inputs_[i].kernel == nullptr || given == nullptr) continue;
      const Operand target{workspace + inputs_[i].offset, nullptr};
      inputs_[i].kernel->run(KernelArgs({&in[i], 1}, {&target, 1}, scratch, nullptr), stream);
      in[i] = target;
    }
    const Operand result{args.output<std::byte>(0), nullptr};
    const bool reordered = output_.kernel != nullptr;
    const Operand out = reordered ? Operand{workspace + output_.offset, nullptr} : result;
    inner_->run(KernelArgs({in.data(), count_}, {&out, 1}, {workspace, nullptr}, nullptr), stream);
    if (reordered) {
      output_.kernel->run(KernelArgs({&out, 1}, {&result, 1}, scratch, nullptr), stream);
    }
  }

 private:
  /// A value's copy in the inner kernel's layout.
  struct Placed {
    std::unique_ptr<PreparedKernel> kernel;
    std::size_t offset = 0;  ///< in workspace
  };

  Placed place(std::unique_ptr<PreparedKernel> reorder, const Layout& layout) {
    reorder_bytes_ = std::max(reorder_bytes_, aligned(reorder->workspace_bytes()));
    const std::size_t offset = workspace_bytes_;
    workspace_bytes_ += aligned(layout.bytes());
    return {std::move(reorder), offset};
  }

  std::unique_ptr<PreparedKernel> inner_;
  std::size_t count_;
  std::array<Placed, kMaxOperands> inputs_;
  Placed output_;
  std::size_t workspace_bytes_ = 0;
  std::size_t reorder_bytes_ = 0;  ///< workspace of the reorders themselves, one at a time
  std::size_t reorder_offset_ = 0;
};

bool is_plain(const PreparedKernel& kernel, const NodeInfo& info) {
  for (int i = 0; i < info.input_count(); ++i) {
    if (kernel.input_layout(i) != nullptr) return false;
  }
  return kernel.output_layout(0) == nullptr;
}

}  // namespace

std::unique_ptr<PreparedKernel> make_plain(std::unique_ptr<PreparedKernel> inner,
                                           const NodeInfo& info, int threads) {
  if (is_plain(*inner, info)) return inner;
  if (info.inputs.size() > kMaxOperands) info.fail("too many operands to reorder");
  return std::make_unique<PlainKernel>(std::move(inner), info, threads);
}

}  // namespace turnout::onednn
