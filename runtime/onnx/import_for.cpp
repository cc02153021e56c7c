// Models that take shapes, axes or modes as graph inputs: what decides becomes a constant.
#include "runtime/onnx/import.hpp"

#include <algorithm>

namespace turnout {
namespace {

// Values that may choose a branch or a mode, which have to be known when a model is imported.
NamedTensors choosing_inputs(const NamedTensors& given) {
  constexpr std::int64_t kMostElements = 16;
  NamedTensors result;
  for (const auto& [name, tensor] : given) {
    if (!is_floating(tensor.dtype()) && tensor.elements() <= kMostElements) {
      result.emplace(name, tensor);
    }
  }
  return result;
}

}  // namespace

Graph import_onnx_for(const std::filesystem::path& file, const NamedTensors& given) {
  ImportOptions options;
  Graph graph = [&] {
    try {
      return import_onnx(file);
    } catch (const Error& error) {
      options.constants = choosing_inputs(given);
      if (error.code() != ErrorCode::unsupported || options.constants.empty()) throw;
      return import_onnx(file, options);
    }
  }();
  bool more = false;
  for (const std::string& name : shape_deciding_inputs(graph)) {
    const auto at = given.find(name);
    if (at != given.end()) more |= options.constants.insert(*at).second;
  }
  return more ? import_onnx(file, options) : graph;
}

std::vector<std::string> shape_deciding_inputs(const Graph& graph) {
  std::vector<char> deciding(graph.values().size(), 0);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    const bool all = std::any_of(node.outputs.begin(), node.outputs.end(),
                                 [&](ValueId id) { return deciding[id.index] != 0; });
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool counts =
          (all && !node.op->spec_only) || node.op->is_shape_input(static_cast<int>(i));
      if (counts && node.inputs[i].valid()) deciding[node.inputs[i].index] = 1;
    }
  }
  std::vector<std::string> names;
  for (ValueId id : graph.inputs()) {
    if (deciding[id.index] != 0) names.push_back(graph.value(id).name);
  }
  return names;
}

}  // namespace turnout
