#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.hpp"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace turnout::onnx_import {

/// The graph under construction, with what the converters need to know beside it.
class Target {
 public:
  Target(const OpRegistry& ops, std::string name) : builder_(ops, std::move(name)) {}

  GraphBuilder& builder() { return builder_; }
  /// A name that the model uses itself; names made up later avoid it.
  void reserve_value(std::string_view name) { value_names_.emplace(name, 1); }
  void reserve_node(std::string_view name) { node_names_.emplace(name, 1); }
  /// `base`, or `base` with a number if that is taken.
  std::string fresh_value(std::string_view base) { return fresh(value_names_, base); }
  std::string fresh_node(std::string_view base) { return fresh(node_names_, base); }

  ValueId input(std::string_view name, DType dtype, std::vector<Dim> dims);
  ValueId constant(Tensor tensor, const std::string& name);
  std::vector<ValueId> add(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                           const std::string& name, std::span<const std::string> output_names);
  /// Element type of a value; undefined when it can't be told before the graph is bound.
  DType dtype(ValueId id) const;
  /// The value if it follows from constants and fixed dimensions alone, otherwise an undefined
  /// tensor. Copies the graph so far, sharing constants.
  Tensor known(ValueId id) const;

 private:
  using Names = std::map<std::string, int, std::less<>>;  // with the next number to try
  static std::string fresh(Names& taken, std::string_view base);
  void set_dtype(ValueId id, DType dtype);

  GraphBuilder builder_;
  Names value_names_, node_names_;
  std::vector<DType> dtypes_;
};

class OnnxNode;

/// One line of the conversion table: how a node of ONNX op `onnx` becomes ops of Turnout.
struct Conversion {
  using Function = void (*)(OnnxNode&);
  std::string_view onnx;
  std::string_view op;         ///< Turnout's op; empty when there is no single one
  Function convert = nullptr;  ///< null: the same op with the same inputs, attributes renamed
  std::string_view refusal{};  ///< not empty: why the op is not supported
};

/// The table's line for an op of domain "", or null.
const Conversion* find_conversion(std::string_view onnx_op);

/// One ONNX node while it is converted: its attributes, and means to add what it becomes.
/// Attributes are used up: those that no converter took and the target op doesn't have are an
/// Error, so that nothing is silently ignored.
class OnnxNode {
 public:
  using ImportSubgraph = std::function<std::vector<ValueId>(const onnx::GraphProto&)>;

  OnnxNode(Target& target, const onnx::NodeProto& proto, const Conversion& conversion,
           std::int64_t opset, std::string name, std::vector<ValueId> inputs,
           std::vector<std::string> output_names);

  const onnx::NodeProto& proto() const { return proto_; }
  std::int64_t opset() const { return opset_; }
  const std::string& name() const { return name_; }
  /// Turnout's op of the table's line.
  std::string_view op_name() const { return conversion_.op; }

  /// Inputs as given; an invalid id stands for an optional one left out. input(i) is invalid beyond
  /// the last; required(i) is an Error then.
  const std::vector<ValueId>& inputs() const { return inputs_; }
  ValueId input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId{}; }
  ValueId required(std::size_t i) const;
  DType dtype(ValueId id) const { return target_.dtype(id); }
  /// The value if it is a constant, otherwise null.
  const Tensor* constant(ValueId id) const;
  /// The value if it follows from constants and fixed dimensions, otherwise undefined. Costly.
  Tensor known(ValueId id) const { return id.valid() ? target_.known(id) : Tensor(); }
  /// Number of outputs up to the last that something reads.
  std::size_t output_count() const { return output_names_.size(); }
  /// Number of outputs in the file, read or not.
  std::size_t declared_outputs() const;
  bool has_output(std::size_t i) const {
    return i < output_names_.size() && !output_names_[i].empty();
  }

  // Attributes, each used up by the call. Error when it has another type.
  std::optional<std::int64_t> take_integer(std::string_view name);
  std::optional<double> take_real(std::string_view name);
  std::optional<std::string> take_text(std::string_view name);
  std::optional<std::vector<std::int64_t>> take_integers(std::string_view name);
  std::optional<std::vector<double>> take_reals(std::string_view name);
  const onnx::AttributeProto* take(std::string_view name);
  void ignore(std::string_view name) { take(name); }

  // What the node becomes.
  ValueId constant(Tensor tensor, std::string_view what);
  ValueId integers(const std::vector<std::int64_t>& values, std::string_view what);
  /// A scalar of the element type of `like`; f32 where that isn't known yet.
  ValueId scalar_like(double value, ValueId like, std::string_view what);
  /// A tensor of an attribute. External data is refused.
  Tensor tensor(const onnx::TensorProto& proto, std::string_view what) const;
  /// An op on the way to the result, under a name made up from the node's.
  ValueId step(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {});
  /// The last op: it gets the node's name, outputs and the attributes not used up, with `attrs` on
  /// top. Without `op`: the op of the table's line.
  void finish(std::vector<ValueId> inputs, AttrMap attrs = {});
  void finish(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {});
  /// Gives one output its value, for nodes that become several.
  void define(std::size_t output, std::string_view op, std::vector<ValueId> inputs,
              AttrMap attrs = {});
  /// Makes output 0 a constant.
  void define_constant(Tensor tensor);
  /// Imports a graph attribute in place; returns its outputs.
  std::vector<ValueId> import_subgraph(const onnx::GraphProto& graph) const;
  void set_import_subgraph(ImportSubgraph import) { import_subgraph_ = std::move(import); }

  /// Value of each output, after the conversion.
  const std::vector<ValueId>& results() const { return results_; }
  /// Error unless every attribute was used and every output defined.
  void check_complete() const;

  /// `node 'x': op 'Foo' (domain '', opset 13) is not supported: why`.
  [[noreturn]] void unsupported(std::string_view why) const;
  [[noreturn]] void invalid(std::string_view what) const;

 private:
  const OpDef& op(std::string_view name) const;
  AttrMap renamed_attrs(const OpDef& op);

  Target& target_;
  const onnx::NodeProto& proto_;
  const Conversion& conversion_;
  std::int64_t opset_;
  std::string name_;
  std::vector<ValueId> inputs_;
  std::vector<std::string> output_names_;
  std::vector<ValueId> results_;
  std::set<std::string, std::less<>> used_;
  ImportSubgraph import_subgraph_;
};

/// `node 'x': op 'Foo' (domain '', opset 13)`, the beginning of every message about a node.
std::string describe(std::string_view name, const onnx::NodeProto& node, std::int64_t opset);

/// Element type of output `index` of an op, from those of its inputs; undefined when unknown.
DType output_dtype(const OpDef& op, const AttrMap& attrs, std::span<const DType> inputs, int index);

}  // namespace turnout::onnx_import
