#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx.pb.h"
#include "runtime/onnx/import.hpp"
#include "runtime/onnx/node.hpp"

namespace turnout::onnx_import {

/// Order in which each node comes after those it reads from; the given order where that is one
/// already. Error naming the nodes of a cycle, or the name that two nodes define.
/// `where` names the graph.
std::vector<const onnx::NodeProto*> sorted_nodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const std::string& where);

/// A node's own name, or its first output's.
std::string label_of(const onnx::NodeProto& node);

/// `body` with the attributes that its nodes take from the call replaced by the call's, or by the
/// function's defaults.
onnx::FunctionProto instantiate(const onnx::FunctionProto& body, const onnx::NodeProto& call);

/// Values that a name stands for, with those of the graph around it.
struct Scope {
  const Scope* outer = nullptr;
  std::string prefix;  ///< before the names of values and nodes of a function's body
  std::map<std::string, ValueId, std::less<>> values;

  std::optional<ValueId> find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto at = scope->values.find(name);
      if (at != scope->values.end()) return at->second;
    }
    return std::nullopt;
  }
};

/// Imports one model. Used once.
class ModelImporter {
 public:
  ModelImporter(const onnx::ModelProto& model, std::filesystem::path directory,
                const ImportOptions& options);
  Graph run();

 private:
  using Opsets = std::map<std::string, std::int64_t, std::less<>>;
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  void reserve_names(const onnx::GraphProto& graph, int depth = 0);
  void import_initializers(const onnx::GraphProto& graph, Scope& scope);
  void import_inputs(const onnx::GraphProto& graph, Scope& scope);
  void import_input(const onnx::ValueInfoProto& input, Scope& scope);
  void import_nodes(const Nodes& nodes, Scope& scope, const Opsets& opsets,
                    const std::string& where);
  void import_node(const onnx::NodeProto& node, Scope& scope, const Opsets& opsets);
  std::vector<ValueId> import_subgraph(const onnx::GraphProto& graph, const Scope& outer,
                                       const Opsets& opsets);
  void inline_function(const onnx::FunctionProto& function, const onnx::NodeProto& call,
                       const std::string& name, const std::vector<ValueId>& inputs,
                       const std::vector<std::string>& outputs, Scope& scope);
  const onnx::FunctionProto* find_function(const onnx::NodeProto& node) const;
  std::vector<ValueId> resolve_inputs(const onnx::NodeProto& node, const std::string& name,
                                      const Scope& scope) const;
  std::vector<std::string> output_names(const onnx::NodeProto& node, const Scope& scope);
  void define(Scope& scope, const std::string& name, ValueId id) const;

  const onnx::ModelProto& model_;
  std::filesystem::path directory_;
  const ImportOptions& options_;
  Target target_;
  std::map<std::string, const onnx::FunctionProto*, std::less<>> functions_;
  std::map<std::string, int, std::less<>> reads_;  ///< how often the model reads a name
  int depth_ = 0;                                  ///< of functions and subgraphs
  std::int64_t nodes_ = 0;                         ///< imported so far
};

}  // namespace turnout::onnx_import
