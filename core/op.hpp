#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.hpp"
#include "core/gpu_model/shape.hpp"
#include "core/tensor.hpp"

namespace turnout {

struct OpDef;
class GraphBuilder;
struct ValueId;

/// One node with all that is known of its operands: what rules and kernels look at.
/// Refers to a Graph (or a test's own specs), which has to outlive it.
struct NodeInfo {
  const OpDef* op = nullptr;
  std::string_view name;
  const AttrMap* attrs = nullptr;
  std::vector<const TensorSpec*> inputs;   ///< null: optional input not given
  std::vector<const Tensor*> constants;    ///< per input; null: value not known before a run
  std::vector<const TensorSpec*> outputs;  ///< empty while shapes are being inferred

  int input_count() const { return static_cast<int>(inputs.size()); }
  int output_count() const { return static_cast<int>(outputs.size()); }
  bool has_input(int i) const { return i < input_count() && inputs[static_cast<std::size_t>(i)]; }
  const TensorSpec& input(int i) const { return *inputs[static_cast<std::size_t>(i)]; }
  const TensorSpec& output(int i) const { return *outputs[static_cast<std::size_t>(i)]; }
  const Tensor* constant(int i) const {
    return i < static_cast<int>(constants.size()) ? constants[static_cast<std::size_t>(i)]
                                                  : nullptr;
  }
  /// Integer elements of a shape operand. Error naming the node if it is given but not known.
  std::vector<std::int64_t> constant_integers(int i) const;
  /// Throws invalid_argument with `[op] node 'name': message`.
  [[noreturn]] void fail(const std::string& message) const;
};

/// Product at the heart of an op: `batch` times [m,k] x [k,n]. All zero: not a product.
struct GemmShape {
  std::int64_t batch = 0, m = 0, n = 0, k = 0;
};

/// Work of one node: floating-point operations (a multiply-add counts two) and bytes that have to
/// be touched at least once.
struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
  GemmShape gemm{};
  /// Set (is_conv) for convolutions of one or two dimensions; element size and `half` are left
  /// open.
  gpu_model::OpShape conv{};
};

/// |got - want| <= absolute + relative * |want|, or, with `of_range`, relative to the largest
/// |want|.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  bool of_range = false;
  std::string_view reason;
};

/// Gradient slot of an op. Rules build a graph of ops; they come with training.
struct Gradient {
  enum class Kind { not_yet, none, rule };
  Kind kind = Kind::not_yet;
  std::string_view reason;  ///< for `none`: why there is no gradient
};

/// Everything about an op, in one place. See docs/adding-an-op.md.
/// All functions are pure and thread-safe.
struct OpDef {
  using Infer = std::vector<TensorSpec> (*)(const NodeInfo&);
  using CostRule = Cost (*)(const NodeInfo&);
  using Reference = void (*)(const NodeInfo&, std::span<const Tensor* const> inputs,
                             std::span<Tensor> outputs);
  using Decompose = std::vector<ValueId> (*)(const NodeInfo&, std::span<const ValueId> inputs,
                                             GraphBuilder&);
  using ToleranceRule = Tolerance (*)(DType);
  using TermsRule = double (*)(const NodeInfo&);

  static constexpr int kVariadic = 1 << 20;

  std::string name;
  std::string doc;
  int min_inputs = 1;
  int max_inputs = 1;  ///< kVariadic: no limit
  int min_outputs = 1;
  int max_outputs = 1;
  std::vector<AttrDef> attrs;

  /// Output specs from input specs. May read `constants` of shape inputs.
  Infer infer = nullptr;
  CostRule cost = nullptr;  ///< null: bytes of all operands, one flop per output element
  /// Naive host loop with a wide accumulator. Outputs are allocated; inputs are dense host tensors,
  /// null when absent (and for ops of `spec_only`, whose inputs may be null).
  Reference reference = nullptr;
  Decompose decompose = nullptr;  ///< set: the op is replaced by others before kernels are chosen
  ToleranceRule tolerance = nullptr;  ///< null: default_tolerance
  TermsRule terms = nullptr;          ///< length of the sum behind one output element; null: short
  Gradient gradient{};

  /// Inputs whose values decide output shapes or the loop structure ("axes", "shape", "pads"). They
  /// have to be known once dimensions are bound, and are never copied to a device.
  std::vector<int> shape_inputs;
  bool view = false;         ///< output 0 is input 0's bytes under another shape: no kernel runs
  bool spec_only = false;    ///< the result depends on input specs alone (shape, size)
  bool elementwise = false;  ///< output element i depends on input elements i (after broadcast)

  bool is_shape_input(int i) const;
};

Cost cost_of(const NodeInfo& info);
Tolerance tolerance_of(const OpDef& op, DType dtype);
/// The same for one node: wider by what a sum of `OpDef::terms` terms, in any order, can lose.
Tolerance tolerance_of(const NodeInfo& info, DType dtype);

/// Ops by name. Filled once, then immutable; pointers to its OpDefs stay valid as long as it lives.
class OpRegistry {
 public:
  void add(OpDef def);
  /// Null when there is no such op.
  const OpDef* find(std::string_view name) const;
  /// Error not_found naming the op.
  const OpDef& get(std::string_view name) const;
  const std::map<std::string, OpDef, std::less<>>& all() const { return ops_; }

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
};

}  // namespace turnout
