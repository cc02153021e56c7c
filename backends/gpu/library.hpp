#pragma once

#include <string>
#include <vector>

#include "core/kernel.hpp"

namespace turnout::gpu {

/// Kernels of the vendor's own libraries, as providers named after them. Defined per vendor in
/// vendor/*_library.cpp; emulated devices have none.
void register_library_kernels(KernelRegistry& registry);
/// Their providers, best first.
std::vector<std::string> library_providers();

}  // namespace turnout::gpu
