#pragma once

// The vendor this build of backends/gpu is for. Every vendor header defines the same names in
// turnout::gpu::vendor; host.hpp, the emulation, is the list to follow.
#include "backends/gpu/vendor/host.hpp"
