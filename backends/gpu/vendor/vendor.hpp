#pragma once

// The vendor this build of backends/gpu is for. Every vendor header defines the same names in
// turnout::gpu::vendor; host.hpp, the emulation, says what they mean. tests/lint/vendor_names.py
// compares them.
#if defined(TURNOUT_VENDOR_CUDA)
#include "backends/gpu/vendor/cuda.hpp"
#elif defined(TURNOUT_VENDOR_HIP)
#include "backends/gpu/vendor/hip.hpp"
#else
#include "backends/gpu/vendor/host.hpp"
#endif
