#include "core/backend.hpp"
#include "core/graph.hpp"
#include "ops/all_ops.hpp"

// The oracle: every op by its naive reference. It is chosen only where it is named, and it is the
// one provider whose kernels may allocate while they run.
namespace turnout {
namespace {

/// Keeps what a NodeInfo refers to: the graph it came from may be gone when the kernel runs.
class ReferenceKernel final : public PreparedKernel {
 public:
  explicit ReferenceKernel(const NodeInfo& info) : op_(info.op), name_(info.name) {
    attrs_ = *info.attrs;
    for (int i = 0; i < info.input_count(); ++i) {
      inputs_.push_back({info.has_input(i) ? info.input(i) : TensorSpec{}, info.has_input(i),
                         info.constant(i) != nullptr ? *info.constant(i) : Tensor()});
    }
    for (const TensorSpec* spec : info.outputs) outputs_.push_back(*spec);
    cost = cost_of(info);
    if (info.has_input(0)) dtype = info.input(0).dtype;
  }

  std::string implementation() const override { return "reference"; }

  void run(const KernelArgs& args, Stream&) const override {
    NodeInfo info;
    info.op = op_;
    info.name = name_;
    info.attrs = &attrs_;
    std::vector<Tensor> tensors(inputs_.size());
    std::vector<const Tensor*> given(inputs_.size(), nullptr);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      info.inputs.push_back(input.given ? &input.spec : nullptr);
      info.constants.push_back(input.constant.defined() ? &input.constant : nullptr);
      if (!input.given) continue;
      const void* address = args.input<std::byte>(static_cast<int>(i));
      if (address != nullptr) {
        tensors[i] = borrow(input.spec, const_cast<void*>(address));
      } else {
        tensors[i] = input.constant;  // shape inputs aren't passed
      }
      if (tensors[i].defined()) given[i] = &tensors[i];
    }
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      info.outputs.push_back(&outputs_[i]);
      void* address = args.output<std::byte>(static_cast<int>(i));
      // An output that nobody reads has no address; references write all of theirs.
      results.push_back(address != nullptr ? borrow(outputs_[i], address)
                                           : Tensor::empty(outputs_[i]));
    }
    op_->reference(info, given, results);
  }

 private:
  struct Input {
    TensorSpec spec;
    bool given = false;
    Tensor constant;
  };

  static Tensor borrow(const TensorSpec& spec, void* address) {
    return {spec, borrow_host(address, static_cast<std::size_t>(spec.bytes()))};
  }

  const OpDef* op_;
  std::string name_;
  AttrMap attrs_;
  std::vector<Input> inputs_;
  std::vector<TensorSpec> outputs_;
};

Acceptance accept_host(const NodeInfo& info, const DeviceInfo& device) {
  if (!device.is_host) return Acceptance::no("runs in the host's memory only");
  for (int i : info.op->shape_inputs) {
    if (info.has_input(i) && info.constant(i) == nullptr) {
      return Acceptance::no(fmt::format("input {} has to be known before the run", i));
    }
  }
  return Acceptance::yes();
}

}  // namespace

void register_reference_kernels(KernelRegistry& registry) {
  for (const auto& [name, def] : all_ops().all()) {
    if (def.reference == nullptr) continue;
    registry.add({name, "reference", accept_host, [](const PrepareContext& context) {
                    return std::make_unique<ReferenceKernel>(context.info);
                  }});
  }
}

}  // namespace turnout
