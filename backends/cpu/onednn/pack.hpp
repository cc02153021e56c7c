#pragma once

#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {

/// The constant of `packing` in its layout `to`. Kernels prepared for the same constant and
/// layout (other batch sizes, other sessions) share the bytes while any of them lives.
/// Blocking; thread-safe.
std::shared_ptr<Buffer> pack_constant(const Recipe::Packing& packing);

}  // namespace turnout::onednn
