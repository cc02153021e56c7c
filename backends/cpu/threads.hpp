#pragma once

#include "core/op.hpp"

namespace turnout::cpu {

/// Sets how many threads OpenMP regions of the calling thread get from now on. Cheap when nothing
/// changes. Kernels call it first thing in run(), with the number they were prepared for.
void use_threads(int threads);

/// use_threads() while it lives: libraries plan for as many threads as OpenMP would give now.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope() { use_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

/// `threads`, or 1 for work that one thread ends before others are awake: waking them and waiting
/// for them takes 1 to 2 us when they still spin after the last kernel.
int useful_threads(const Cost& cost, int threads);

/// Processors this process may run on (its affinity mask), at least 1.
int available_processors();

}  // namespace turnout::cpu
