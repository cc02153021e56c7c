// Fusion walks the nodes in order and grows a group from every convolution and product:
//
//   conv -> batch_normalization -> add(residual) -> relu      becomes one conv
//   matmul -> add(bias) -> gelu                                becomes one matmul
//
// A follower joins while it is the only reader of the group's value, that value is no graph output,
// and the kernel's formula act(alpha * product + bias + residual) still covers the sum. The fused
// node takes the last member's place, so the order stays topological.
#include <cmath>
#include <optional>

#include "ops/activation.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewriter.hpp"

namespace turnout {
namespace {

struct Group {
  std::uint32_t root = 0;
  std::vector<std::uint32_t> members;  // after the root
  Tensor weight;                       // set: replaces input 1
  Tensor bias;                         // set: replaces input 2
  ValueId bias_value;
  ValueId residual;
  AttrMap attrs;
  ValueId result;
  bool has_activation = false;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const OpRegistry& ops)
      : graph_(graph), ops_(ops), uses_(graph.uses()), is_output_(graph.values().size(), 0) {
    for (ValueId id : graph.outputs()) is_output_[id.index] = 1;
  }

  Graph run();

 private:
  std::optional<Group> grow(std::uint32_t root);
  bool absorb(Group& group, std::uint32_t n);
  bool absorb_batch_normalization(Group& group, const Node& node);
  bool absorb_add(Group& group, const Node& node);
  bool absorb_activation(Group& group, const Node& node);
  void emit(Rewriter& rewriter, const Group& group);

  const Tensor* constant(ValueId id) const {
    if (!id.valid() || graph_.value(id).kind != ValueKind::constant) return nullptr;
    return &graph_.value(id).known;
  }
  ValueId input(const Node& node, std::size_t i) const {
    return i < node.inputs.size() ? node.inputs[i] : ValueId{};
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  std::vector<std::vector<Graph::Use>> uses_;
  std::vector<char> is_output_;
};

bool is_root(const Node& node) {
  return (node.op->name == "conv" || node.op->name == "matmul") &&
         node.attrs.text("activation") == "none";
}

bool Fuser::absorb_batch_normalization(Group& group, const Node& node) {
  const Node& root = graph_.nodes()[group.root];
  if (root.op->name != "conv" || node.inputs[0] != group.result || group.residual.valid() ||
      node.outputs.size() != 1) {
    return false;
  }
  const Tensor* weight = group.weight.defined() ? &group.weight : constant(root.inputs[1]);
  const Tensor* bias = group.bias.defined() ? &group.bias : constant(input(root, 2));
  if (weight == nullptr || weight->dtype() != DType::f32) return false;
  if (bias == nullptr && input(root, 2).valid()) return false;
  for (std::size_t i = 1; i < 5; ++i) {
    const Tensor* operand = constant(node.inputs[i]);
    if (operand == nullptr || operand->dtype() != DType::f32) return false;
  }
  const auto scale = constant(node.inputs[1])->values<const float>();
  const auto shift = constant(node.inputs[2])->values<const float>();
  const auto mean = constant(node.inputs[3])->values<const float>();
  const auto variance = constant(node.inputs[4])->values<const float>();
  const double epsilon = node.attrs.real("epsilon");
  Tensor new_weight = Tensor::empty(weight->spec());
  Tensor new_bias = Tensor::empty({DType::f32, {weight->shape()[0]}});
  const auto channels = static_cast<std::size_t>(weight->shape()[0]);
  const std::size_t per_channel =
      channels == 0 ? 0 : weight->values<const float>().size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor = scale[c] / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    for (std::size_t i = c * per_channel; i < (c + 1) * per_channel; ++i) {
      new_weight.data<float>()[i] = static_cast<float>(factor * weight->values<const float>()[i]);
    }
    const double old_bias = bias == nullptr ? 0.0 : bias->values<const float>()[c];
    new_bias.data<float>()[c] = static_cast<float>((old_bias - mean[c]) * factor + shift[c]);
  }
  group.weight = new_weight;
  group.bias = new_bias;
  return true;
}

// A constant that is a bias of the group's product: one number a column (matmul) or channel (conv).
std::optional<Tensor> as_bias(const Tensor& constant, const Shape& result, bool is_conv) {
  const int axis = is_conv ? 1 : result.rank() - 1;
  const int from_end = result.rank() - axis;  // where the axis lies, counted from the end
  const Shape& shape = constant.shape();
  if (result.rank() < 2 || shape.rank() > result.rank() || shape.rank() < from_end) {
    return std::nullopt;
  }
  const std::int64_t size = result[axis];
  if (shape.dim(-from_end) != size || constant.elements() != size) return std::nullopt;
  return constant.reshaped({size});
}

bool Fuser::absorb_add(Group& group, const Node& node) {
  const Node& root = graph_.nodes()[group.root];
  const ValueId other = node.inputs[0] == group.result ? node.inputs[1] : node.inputs[0];
  if (other == group.result) return false;
  const TensorSpec& result = graph_.value(group.result).spec;
  if (graph_.value(node.outputs[0]).spec != result) return false;
  const bool has_bias = group.bias.defined() || input(root, 2).valid();
  if (const Tensor* value = constant(other); value != nullptr && !has_bias) {
    if (auto bias = as_bias(*value, result.shape, root.op->name == "conv")) {
      group.bias = *bias;
      return true;
    }
  }
  if (group.residual.valid() || input(root, 3).valid()) return false;
  if (graph_.value(other).spec != result || constant(other) != nullptr) return false;
  group.residual = other;
  return true;
}

// alpha and beta of the fused form, from the unary op's own attributes.
bool Fuser::absorb_activation(Group& group, const Node& node) {
  const std::string& op = node.op->name;
  std::string name = op;
  double alpha = 0;
  double beta = 0;
  if (op == "gelu") {
    name = node.attrs.text("approximate") == "tanh" ? "gelu_tanh" : "gelu";
  } else if (op == "clip") {
    const Tensor* low = constant(input(node, 1));
    const Tensor* high = constant(input(node, 2));
    if (low == nullptr || high == nullptr) return false;
    alpha = to_double(*low)[0];
    beta = to_double(*high)[0];
  } else if (op == "silu" || op == "relu" || op == "sigmoid" || op == "tanh" ||
             op == "hard_swish") {
  } else if (op == "hard_sigmoid") {
    alpha = node.attrs.real("alpha");
    beta = node.attrs.real("beta");
  } else if (op == "leaky_relu" || op == "elu") {
    alpha = node.attrs.real("alpha");
  } else {
    return false;
  }
  if (node.inputs[0] != group.result) return false;
  group.attrs.set("activation", name);
  group.attrs.set("activation_alpha", alpha);
  group.attrs.set("activation_beta", beta);
  group.has_activation = true;
  return true;
}

bool Fuser::absorb(Group& group, std::uint32_t n) {
  const Node& node = graph_.nodes()[n];
  bool taken = false;
  if (node.op->name == "batch_normalization") {
    taken = absorb_batch_normalization(group, node);
  } else if (node.op->name == "add") {
    taken = absorb_add(group, node);
  } else {
    taken = absorb_activation(group, node);
  }
  if (!taken) return false;
  group.members.push_back(n);
  group.result = node.outputs[0];
  return true;
}

std::optional<Group> Fuser::grow(std::uint32_t root) {
  const Node& node = graph_.nodes()[root];
  // A vector operand has no columns to put a bias on.
  if (!is_root(node) || graph_.value(node.outputs[0]).spec.shape.rank() < 2) return std::nullopt;
  if (graph_.value(node.inputs[0]).spec.shape.rank() < 2) return std::nullopt;
  if (graph_.value(node.inputs[1]).spec.shape.rank() < 2) return std::nullopt;
  if (!is_floating(graph_.value(node.outputs[0]).spec.dtype)) return std::nullopt;
  Group group;
  group.root = root;
  group.attrs = node.attrs;
  group.result = node.outputs[0];
  while (!group.has_activation) {
    const auto& readers = uses_[group.result.index];
    if (readers.size() != 1 || is_output_[group.result.index] != 0) break;
    if (!absorb(group, readers[0].node.index)) break;
  }
  if (group.members.empty()) return std::nullopt;
  return group;
}

void Fuser::emit(Rewriter& rewriter, const Group& group) {
  const Node& root = graph_.nodes()[group.root];
  const Node& last = graph_.nodes()[group.members.back()];
  GraphBuilder& builder = rewriter.builder();
  const std::string& name = root.name;
  std::vector<ValueId> inputs = {rewriter.map(root.inputs[0])};
  inputs.push_back(group.weight.defined() ? builder.constant(group.weight, name + "/weight")
                                          : rewriter.map(root.inputs[1]));
  inputs.push_back(group.bias.defined() ? builder.constant(group.bias, name + "/bias")
                                        : rewriter.map(input(root, 2)));
  inputs.push_back(rewriter.map(group.residual.valid() ? group.residual : input(root, 3)));
  rewriter.emit(root, *root.op, std::move(inputs), group.attrs, last.outputs);
}

Graph Fuser::run() {
  constexpr std::int64_t kNoGroup = -1;
  std::vector<std::int64_t> group_of(graph_.nodes().size(), kNoGroup);
  std::vector<Group> groups;
  for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
    if (group_of[n] != kNoGroup) continue;
    std::optional<Group> group = grow(n);
    if (!group) continue;
    // Two products may both want the sum they feed; the first in order has it.
    bool free = true;
    for (std::uint32_t member : group->members) free = free && group_of[member] == kNoGroup;
    if (!free) continue;
    group_of[n] = static_cast<std::int64_t>(groups.size());
    for (std::uint32_t member : group->members) group_of[member] = group_of[n];
    groups.push_back(std::move(*group));
  }
  Rewriter rewriter(graph_, ops_);
  for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
    if (group_of[n] == kNoGroup) {
      rewriter.copy_node(graph_.nodes()[n]);
    } else if (const Group& group = groups[static_cast<std::size_t>(group_of[n])];
               group.members.back() == n) {
      emit(rewriter, group);
    }
  }
  return rewriter.finish();
}

}  // namespace

Graph fuse(const Graph& graph, const OpRegistry& ops) { return Fuser(graph, ops).run(); }

}  // namespace turnout
