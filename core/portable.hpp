#pragma once

/// Marks functions that device code may call too. Empty for host compilers.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TURNOUT_HD __host__ __device__
#else
#define TURNOUT_HD
#endif
