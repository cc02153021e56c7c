#pragma once

namespace turnout::cpu {

/// Sets how many threads OpenMP regions of the calling thread get from now on. Cheap when nothing
/// changes. Kernels call it first thing in run(), with the number they were prepared for.
void use_threads(int threads);

/// Processors this process may run on (its affinity mask), at least 1.
int available_processors();

}  // namespace turnout::cpu
