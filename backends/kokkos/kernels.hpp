#pragma once

#include "core/kernel.hpp"

// One function per file of kernels; register.cpp calls them all.
namespace turnout::kokkos {}
