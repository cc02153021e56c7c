#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/onednn/layout.hpp"

namespace turnout::onednn {

/// The node that a primitive is made for, and the layouts around it.
struct Site {
  const NodeInfo& info;
  std::vector<LayoutPtr> arriving;  ///< of the inputs; may be shorter
  bool may_choose_layout = false;

  const TensorSpec& input(int i) const { return info.input(i); }
  const TensorSpec& output() const { return info.output(0); }
  /// Layout in which to take input i: the arriving one if layouts may differ from plain.
  Desc take(int i) const;
  /// Layout to ask for output 0: oneDNN's own choice, or plain.
  Desc give() const { return may_choose_layout ? any_desc(output()) : plain_desc(output()); }
};

/// How a node becomes one oneDNN primitive: its descriptor, and which memory is which argument.
/// Making one is the test of whether oneDNN takes the node, so accepting and running can't differ.
struct Recipe {
  enum class From { input, output, packed };
  struct Binding {
    int argument = 0;  ///< DNNL_ARG_...
    From from = From::input;
    int index = 0;  ///< of the node's input or output, or of `packings`
    Desc desc;
    LayoutPtr layout{};  ///< of the value behind it; null: plain, or a view of plain memory
  };
  struct Packing {
    int input = 0;
    Tensor constant;
    Desc from, to;    ///< how its plain bytes are read, and how they are kept
    float scale = 1;  ///< f32 only
  };

  dnnl::primitive_desc_base descriptor;
  std::vector<Binding> bindings;
  std::vector<Packing> packings;

  /// Input i, plain memory seen as `desc`.
  void view_input(int argument, int i, const Desc& desc) {
    bindings.push_back({argument, From::input, i, desc});
  }
  /// Output 0, plain memory seen as `desc`.
  void view_output(int argument, const Desc& desc) {
    bindings.push_back({argument, From::output, 0, desc});
  }
  /// Input i in the layout that oneDNN settled for the argument.
  void input(int argument, const Site& site, int i);
  /// Output 0 in the layout that oneDNN settled for the argument.
  void output(int argument, const Site& site);
  /// The constant input i, read as `from`, kept as oneDNN settled for the argument. Only a view if
  /// both are the same.
  void pack(int argument, const Site& site, int i, const Desc& from, float scale = 1);
  Desc settled(int argument) const {
    return descriptor.query_md(dnnl::query::exec_arg_md, argument);
  }
};

using MakeRecipe = Recipe (*)(const Site&);

/// The first of `makers` whose recipe oneDNN has a real implementation for. Otherwise an Error
/// `unsupported` or dnnl::error with the last reason.
Recipe first_recipe(const Site& site, std::span<const MakeRecipe> makers);

/// The primitive itself, made for `threads` threads; cost and dtype are left to the caller.
std::unique_ptr<PreparedKernel> make_kernel(Recipe recipe, int threads);

/// What a kernel does where layouts around it have to be plain.
enum class WhenPlain {
  ask_plain,  ///< asks oneDNN for plain operands
  reorder,    ///< keeps oneDNN's favourite layouts, and reorders in workspace
};

/// Adds the entry of provider "onednn" for `op`. With layouts other than plain around it, the
/// makers are tried with those first, then with plain ones.
void add_kernel(KernelRegistry& registry, std::string op, std::vector<MakeRecipe> makers,
                WhenPlain when_plain = WhenPlain::ask_plain);

// One function per file of kernels; register.cpp calls them all.
void register_matmul(KernelRegistry& registry);
void register_conv(KernelRegistry& registry);
void register_pool(KernelRegistry& registry);
void register_softmax(KernelRegistry& registry);
void register_eltwise(KernelRegistry& registry);
void register_binary(KernelRegistry& registry);
void register_reduction(KernelRegistry& registry);
void register_norm(KernelRegistry& registry);
void register_movement(KernelRegistry& registry);
void register_reorder(KernelRegistry& registry);

}  // namespace turnout::onednn
