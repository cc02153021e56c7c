#pragma once

#include <memory>
#include <vector>

#include "core/kernel.hpp"
#include "runtime/plan/plan.hpp"

namespace turnout {

/// Where bytes lie during a run.
struct Location {
  enum class Source { arena, constant, input, output };
  Source source = Source::arena;
  int device = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;  ///< in the device's arena or constant block
  int io_index = 0;        ///< which graph input or output
  LayoutPtr layout;        ///< null: plain
};

/// One thing to do. Operands are indices of locations; -1: absent.
struct ExecStep {
  enum class Kind { run, copy };
  Kind kind = Kind::run;
  int lane = 0;
  int device = 0;  ///< run: where
  std::unique_ptr<PreparedKernel> kernel;
  std::vector<int> inputs;  ///< copy: one
  std::vector<int> outputs;
  int workspace = -1;
  std::vector<int> after;  ///< earlier steps it has to wait for
  std::vector<int> waits;  ///< those of them on other lanes that work asynchronously
  bool records = false;    ///< another lane waits for this step
  NodeId node;             ///< run: which; invalid for reorders
  ValueId value;           ///< copies and reorders: of what
  double predicted_seconds = 0;
  std::string provider;
};

/// Kernels of one device that follow each other with nothing from outside in between: what a stream
/// can capture once and launch as one thing from then on.
struct Segment {
  int first = 0;  ///< step; it alone may wait for others
  int count = 0;  ///< at least 2; others may wait for the last one alone
};

/// A plan made ready: kernels prepared, weights packed or placed, layouts and memory settled.
/// Immutable. Made once a session; contexts run it.
struct Program {
  std::vector<ExecStep> steps;
  std::vector<Segment> segments;  ///< in order
  std::vector<Location> locations;
  std::vector<std::size_t> arena_bytes;                        ///< per device
  std::vector<std::shared_ptr<Buffer>> constant_blocks;        ///< per device; null: none
  std::vector<std::size_t> packed_bytes;                       ///< per device, kept by kernels
  std::vector<std::pair<std::size_t, Tensor>> host_constants;  ///< location -> tensor read in place
  int lanes = 1;
  int reorder_count = 0;
};

struct ProgramOptions {
  bool choose_layouts = true;  ///< false: plain layouts everywhere
  bool capture = true;         ///< false: no segments, every kernel is launched by itself
};

/// Errors: what prepare() throws; out_of_memory naming the device that can't hold its constants.
Program compile(const Graph& graph, const Plan& plan, const ProgramOptions& options = {});

}  // namespace turnout
