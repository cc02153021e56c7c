#pragma once

#include "backends/cpu/onednn/recipe.hpp"

namespace turnout::onednn {

/// A kernel that takes and gives plain memory, around one that has layouts of its own: what comes
/// in and goes out is reordered in workspace. Gives `inner` back when it is plain already.
std::unique_ptr<PreparedKernel> make_plain(std::unique_ptr<PreparedKernel> inner,
                                           const NodeInfo& info, int threads);

/// Reorders a value of `spec` (null: plain).
std::unique_ptr<PreparedKernel> make_reorder(const TensorSpec& spec, const LayoutPtr& from,
                                             const LayoutPtr& to, int threads);

}  // namespace turnout::onednn
