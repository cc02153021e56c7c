#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/tensor.hpp"

namespace onnx {
class TensorProto;
}

namespace turnout {

/// Turnout's element type for a TensorProto::DataType; nothing for types Turnout hasn't.
std::optional<DType> dtype_of_onnx(std::int64_t data_type);
std::int32_t onnx_dtype(DType dtype);
/// "FLOAT8E4M3FN", for messages.
std::string onnx_dtype_name(std::int64_t data_type);

/// Host tensor with the message's elements. Sizes are checked against the data that is there before
/// memory is taken. External data has to lie in `directory` or below it, also when links are
/// followed; an empty `directory` allows none. Errors name `what`.
Tensor to_tensor(const onnx::TensorProto& proto, const std::filesystem::path& directory,
                 const std::string& what);

onnx::TensorProto to_proto(const Tensor& tensor, const std::string& name);

}  // namespace turnout
