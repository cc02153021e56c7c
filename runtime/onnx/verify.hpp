#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/graph.hpp"

namespace turnout {

struct VerifyResult {
  enum class Status { passed, failed, unsupported };
  Status status = Status::passed;
  std::string reason;  ///< of a failure or of what isn't supported
};

/// How a graph is run: all its inputs (host tensors in the order of graph.inputs(), which give the
/// symbols their sizes) to all its outputs. May throw Error.
using RunGraph =
    std::function<std::vector<Tensor>(const Graph&, const std::vector<Tensor>& inputs)>;

/// Runs an ONNX test folder: `model.onnx` and `test_data_set_<n>/input_<i>.pb, output_<i>.pb`.
/// Inputs that decide shapes are given to the importer as constants. Outputs have to be within
/// ONNX's own default tolerance, 1e-7 + 1e-3 |expected|; integers and booleans exact; NaN equals
/// NaN. `unsupported` is an Error of that code, of import or run; every other Error is a failure.
VerifyResult verify_onnx(const std::filesystem::path& folder, const RunGraph& run);

/// Sizes of the symbols, from the shapes of inputs in the order of graph.inputs(). Error
/// invalid_argument naming the input when rank, a fixed size or an element type is another.
Bindings bindings_from(const Graph& graph, const std::vector<Tensor>& inputs);

/// Empty if `got` is what was `expected`; otherwise where they differ most.
std::string difference(const Tensor& got, const Tensor& expected, double relative, double absolute);

}  // namespace turnout
