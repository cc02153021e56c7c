#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.hpp"

namespace turnout {

/// Opsets of domain "" (ai.onnx) that the importer reads.
inline constexpr std::int64_t kOldestOpset = 7;
inline constexpr std::int64_t kNewestOpset = 27;

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

struct ImportOptions {
  /// Graph inputs that become constants, by name: for models that take shapes or axes as inputs.
  NamedTensors constants;
};

/// Reads an ONNX model into a graph of Turnout's ops, all in the form of the newest opset. Values
/// keep ONNX's names; a node without a name is named after its first output; an unnamed dimension
/// of input `x` is `x_dim<i>`. External data is looked for beside the file.
///
/// The file is taken for hostile. Error invalid_model for a malformed one, unsupported for ops,
/// types and opsets that Turnout hasn't (naming node, op, domain and opset), not_found for a
/// missing file. Blocking; thread-safe.
Graph import_onnx(const std::filesystem::path& file, const ImportOptions& options = {});

/// The same from memory. `base_directory`: where external data lies; empty: nowhere.
Graph import_onnx(std::string_view bytes, const std::filesystem::path& base_directory,
                  const ImportOptions& options = {});

/// As import_onnx(); those of the given inputs that decide shapes or branches become constants, for
/// a graph's shapes are fixed when it is bound. Which did: inputs that the graph has no more.
Graph import_onnx_for(const std::filesystem::path& file, const NamedTensors& given);

/// Names of graph inputs on which shapes or the structure of loops depend (shape of a Reshape).
std::vector<std::string> shape_deciding_inputs(const Graph& graph);

/// Names of the inputs of the graph in a file that aren't initializers, in order. Error unsupported
/// for one that isn't a tensor.
std::vector<std::string> onnx_input_names(const std::filesystem::path& file);

}  // namespace turnout
