#pragma once

#include <filesystem>
#include <string>

#include "core/tensor.hpp"

namespace turnout {

/// One tensor in ONNX's serialized form (TensorProto), as in the `input_0.pb` of test folders.
/// External data is looked for beside the file. Host tensors, blocking. Error invalid_model for a
/// malformed file, unsupported for element types Turnout hasn't.
Tensor load_tensor_pb(const std::filesystem::path& file);

/// Whole or not at all.
void save_tensor_pb(const std::filesystem::path& file, const Tensor& tensor,
                    const std::string& name);

}  // namespace turnout
