#pragma once

#include <optional>
#include <string>

#include <dnnl.hpp>

#include "core/kernel.hpp"
#include "ops/rules.hpp"

// What every oneDNN kernel is made with: the engine, memory descriptors, attributes.
namespace turnout::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// The one CPU engine of the process. Made at the first call; thread-safe.
const dnnl::engine& engine();

/// Says no to a node. Caught by accepts() (see add_kernel), which hands the reason on.
[[noreturn]] void refuse(std::string reason);

/// Nothing for types that oneDNN's CPU kernels don't compute in (f64, i64, ...).
std::optional<dnnl::memory::data_type> data_type(DType dtype);
/// The same; refuses the others.
dnnl::memory::data_type require_type(DType dtype);

/// Dense row-major strides.
Dims dense_strides(const Dims& dims);
Desc plain_desc(const Dims& dims, DType dtype);
/// A scalar is one element of rank 1.
Desc plain_desc(const TensorSpec& spec);
Desc any_desc(const TensorSpec& spec);
/// Rank filled up with leading ones.
Desc plain_desc(const TensorSpec& spec, int rank);
Dims to_dims(const Shape& shape);

/// Scratchpads come from the workspace; products are true f32, whatever the environment says.
dnnl::primitive_attr base_attr();
/// Appends the function that follows a product; nothing for `none`. oneDNN's relu, clip and
/// hard_sigmoid turn a NaN into a bound, where the ops on their own keep it.
void append_activation(dnnl::post_ops& ops, const FusedActivation& activation);
/// oneDNN's name of a function; nothing for `none`.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
};
std::optional<Eltwise> eltwise_of(const FusedActivation& activation);

}  // namespace turnout::onednn
