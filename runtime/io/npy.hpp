#pragma once

#include <filesystem>
#include <string_view>

#include "core/tensor.hpp"

namespace turnout {

/// NumPy's array files, format versions 1 to 3 (numpy.lib.format), little-endian: f2 f4 f8, i1 to
/// i8, u1 to u8 and booleans. Fortran order is transposed while loading. Host tensors, blocking.
/// Error invalid_model for a malformed file, unsupported for other element types.
Tensor load_npy(const std::filesystem::path& file);
Tensor parse_npy(std::string_view bytes, std::string_view file_name);

/// Whole or not at all. Error unsupported for bf16, which the format doesn't have.
void save_npy(const std::filesystem::path& file, const Tensor& tensor);

}  // namespace turnout
