#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"

namespace turnout {

/// Index of a value or a node in its Graph.
struct ValueId {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index = kNone;
  bool valid() const { return index != kNone; }
  friend auto operator<=>(ValueId, ValueId) = default;
};
struct NodeId {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index = kNone;
  bool valid() const { return index != kNone; }
  friend auto operator<=>(NodeId, NodeId) = default;
};

/// A dimension of a graph input: a size, or a symbol that bind() gives one ("N").
struct Dim {
  std::int64_t size = -1;
  std::string symbol;
  Dim(std::int64_t fixed) : size(fixed) {}            // NOLINT: implicit on purpose
  Dim(std::string name) : symbol(std::move(name)) {}  // NOLINT
  Dim(const char* name) : symbol(name) {}             // NOLINT
  bool fixed() const { return symbol.empty(); }
};

enum class ValueKind : std::uint8_t { input, constant, computed };

struct Value {
  std::string name;
  ValueKind kind = ValueKind::computed;
  TensorSpec spec;        ///< meaningful once the graph is bound; dtype and constants always
  std::vector<Dim> dims;  ///< inputs: as declared
  NodeId producer;        ///< computed values
  int output_index = 0;   ///< which output of the producer
  Tensor known;           ///< host tensor: constants, and computed values known after bind()
  bool has_known() const { return known.defined(); }
};

struct Node {
  std::string name;
  const OpDef* op = nullptr;
  AttrMap attrs;
  std::vector<ValueId> inputs;  ///< invalid id: optional input not given
  std::vector<ValueId> outputs;
};

/// Sizes of symbolic dimensions by name.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

/// A directed acyclic graph of ops: flat vectors, nodes in topological order, immutable once built
/// (passes make new ones). Copying shares constants' bytes. Thread-safe to read.
class Graph {
 public:
  const std::string& name() const { return name_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Value> values() const { return values_; }
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  /// Names under which outputs were declared, in the order of outputs().
  std::span<const std::string> output_names() const { return output_names_; }

  /// Every (node, input index) that reads the value, in node order.
  struct Use {
    NodeId node;
    int input;
  };
  std::vector<std::vector<Use>> uses() const;
  std::optional<ValueId> find_value(std::string_view name) const;
  std::optional<NodeId> find_node(std::string_view name) const;

  /// Symbols of the inputs, in order of appearance.
  std::vector<std::string> symbols() const;
  /// A copy whose symbols have sizes and whose values all have specs. Small values that follow from
  /// them (shape arithmetic) become `known`. Error that lists the symbols without a size.
  Graph bind(const Bindings& sizes) const;
  bool bound() const { return bound_; }
  NodeInfo info(NodeId id) const;

 private:
  friend class GraphBuilder;

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  bool bound_ = false;
};

/// Builds a graph in topological order: a node's inputs exist before it.
///
///   GraphBuilder b(ops, "mlp");
///   ValueId x = b.input("x", DType::f32, {"N", 784});
///   ValueId y = b.add("relu", {b.add("matmul", {x, b.constant(w)})});
///   b.output(y, "y");
///   Graph graph = b.build();
///
/// Names are made unique; a node without a name is named after its first output. Every call checks
/// arity, attributes (against the op's schema; defaults are filled in) and ids, and throws Error.
class GraphBuilder {
 public:
  GraphBuilder(const OpRegistry& ops, std::string name);

  ValueId input(std::string_view name, DType dtype, std::vector<Dim> dims);
  ValueId constant(Tensor tensor, std::string_view name = "");
  /// Node with one output.
  ValueId add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {},
              std::string_view name = "");
  /// Node with named outputs ("" for a name to be made up).
  std::vector<ValueId> add_node(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                                std::string_view name, std::span<const std::string> output_names);
  void output(ValueId value, std::string_view name = "");
  const OpRegistry& ops() const { return *ops_; }
  const Value& value(ValueId id) const { return graph_.values_[id.index]; }
  /// Copies a value's known spec (passes that rewrite a bound graph).
  void set_spec(ValueId id, const TensorSpec& spec) { graph_.values_[id.index].spec = spec; }
  void set_known(ValueId id, const Tensor& known);

  /// Ends building and verifies. `bound`: all specs were set (a pass over a bound graph).
  Graph build(bool bound = false);

 private:
  ValueId new_value(std::string_view name, std::string_view fallback);
  std::string unique(std::map<std::string, int, std::less<>>& taken, std::string_view name);

  const OpRegistry* ops_;
  Graph graph_;
  std::map<std::string, int, std::less<>> value_names_;
  std::map<std::string, int, std::less<>> node_names_;
};

/// Computes the outputs of a node whose inputs are all known, by its reference. Host, blocking.
std::vector<Tensor> evaluate(const NodeInfo& info, std::span<const Tensor* const> inputs);

/// Checks the invariants (order, ids, producers, unique names, arity); Error invalid_model if
/// broken.
void verify(const Graph& graph);

/// The text form, a line each:
///
///   graph "mlp"
///   input %x : f32[N,3]
///   constant %w : f32[3,2] = [1, 2, 3, 4, 5, 6]
///   %h, %i = top_k(%x, -, %w) {axis=-1, largest=1} @"node's name" : f32[8,2], i64[8,2]
///   output "y" = %h
///
/// Names of other characters than letters, digits and `_.:/$-` are quoted: `%"a b"`. Specs follow a
/// node where the graph is bound, a node's name where it isn't that of its first output. Constants
/// of more than `max_data` elements are written without their data.
std::string to_text(const Graph& graph, std::int64_t max_data = 0);

/// Bytes of a constant whose text has none: a host tensor of that spec.
using ConstantSource = std::function<Tensor(const std::string& name, const TensorSpec& spec)>;

/// The graph of a text form, not bound. Comments run from `#` to the end of a line. Error
/// invalid_model with `source`, line and reason for anything that to_text() couldn't have written,
/// and for specs that don't follow from the inputs; a constant without data comes from `constants`.
Graph parse_graph(std::string_view text, const OpRegistry& ops, std::string_view source = "graph",
                  const ConstantSource& constants = {});

}  // namespace turnout
