// Graph::bind(): sizes for symbols, then one pass over the nodes in order. A node's output specs
// come from its op's infer rule. Where all inputs are known and the outputs are small, the outputs
// are computed too: so `shape -> gather -> concat -> reshape` chains resolve as the pass goes
// along.
#include <algorithm>

#include "core/graph.hpp"

namespace turnout {
namespace {

// Shape arithmetic works on a handful of integers; anything larger is left to the folding pass.
constexpr std::int64_t kSmallBytes = 1 << 16;

Shape bound_shape(const Value& input, const Bindings& sizes, std::vector<std::string>& missing) {
  std::vector<std::int64_t> dims;
  for (const Dim& dim : input.dims) {
    if (dim.fixed()) {
      dims.push_back(dim.size);
      continue;
    }
    const auto at = sizes.find(dim.symbol);
    if (at == sizes.end()) {
      if (std::find(missing.begin(), missing.end(), dim.symbol) == missing.end()) {
        missing.push_back(dim.symbol);
      }
    } else if (at->second < 0) {
      fail(ErrorCode::invalid_argument, "dimension '{}' can't be {}", dim.symbol, at->second);
    } else {
      dims.push_back(at->second);
    }
  }
  return missing.empty() ? Shape(dims) : Shape();
}

bool is_computable(const Node& node, const NodeInfo& info) {
  if (node.op->reference == nullptr) return false;
  for (int i = 0; i < info.input_count() && !node.op->spec_only; ++i) {
    if (info.has_input(i) && info.constant(i) == nullptr) return false;
  }
  std::int64_t bytes = 0;
  for (const TensorSpec* output : info.outputs) bytes += output->bytes();
  for (int i = 0; i < info.input_count() && !node.op->spec_only; ++i) {
    if (info.has_input(i)) bytes += info.input(i).bytes();
  }
  return bytes <= kSmallBytes;
}

}  // namespace

std::vector<Tensor> evaluate(const NodeInfo& info, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> outputs;
  for (const TensorSpec* spec : info.outputs) outputs.push_back(Tensor::empty(*spec));
  info.op->reference(info, inputs, outputs);
  return outputs;
}

Graph Graph::bind(const Bindings& sizes) const {
  Graph bound = *this;
  std::vector<std::string> missing;
  for (ValueId id : bound.inputs_) {
    Value& input = bound.values_[id.index];
    input.spec.shape = bound_shape(input, sizes, missing);
  }
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument, "graph '{}': no size given for dimension {}", name_,
         fmt::join(missing, ", "));
  }
  for (std::uint32_t n = 0; n < bound.nodes_.size(); ++n) {
    const Node& node = bound.nodes_[n];
    NodeInfo info = bound.info(NodeId{n});
    info.outputs.clear();
    std::vector<TensorSpec> specs;
    try {
      specs = node.op->infer(info);
    } catch (const Error& error) {
      const std::string label = fmt::format("node '{}'", node.name);
      const bool named = std::string_view(error.what()).find(label) != std::string_view::npos;
      if (named) throw;
      throw Error(error.code(), fmt::format("{} (in {})", error.what(), label));
    }
    if (specs.size() < node.outputs.size()) {
      fail(ErrorCode::internal, "[{}] node '{}': infer gave {} of {} outputs", node.op->name,
           node.name, specs.size(), node.outputs.size());
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      bound.values_[node.outputs[i].index].spec = specs[i];
    }
    info = bound.info(NodeId{n});
    if (!is_computable(node, info)) continue;
    std::vector<Tensor> known = evaluate(info, info.constants);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      bound.values_[node.outputs[i].index].known = std::move(known[i]);
    }
  }
  bound.bound_ = true;
  return bound;
}

}  // namespace turnout
