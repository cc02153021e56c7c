#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/program.hpp"

namespace turnout {

/// What one run needs of its own: arenas, streams, events, operand tables. Serves one run at a
/// time; everything is allocated here, run() allocates and locks nothing of its own. The program's
/// segments are launched kernel by kernel in the first run, captured in the second and launched as
/// a whole from then on.
class Context {
 public:
  /// Error out_of_memory naming the device whose arena doesn't fit.
  Context(const Program& program, const Plan& plan);
  ~Context();

  /// Host memory of a graph input or output for the runs that follow, dense and of the value's
  /// size.
  void bind_input(std::size_t index, const void* address) {
    inputs_[index] = const_cast<void*>(address);  // NOLINT: never written through
  }
  void bind_output(std::size_t index, void* address) { outputs_[index] = address; }

  /// Runs the program on what was bound. Blocks until the outputs are there. After an error the
  /// context can be used again.
  void run();

  /// The same, keeping the time of each step: steps of the host as measured, steps and copies of
  /// virtual devices as predicted. Slower than run(): every step is waited for.
  void run_timed(std::vector<double>& step_seconds);

  std::size_t arena_bytes(int device) const;

 private:
  struct Launch {
    KernelArgs args;
    std::uint32_t first_input = 0;
    std::uint32_t first_output = 0;
  };
  struct Patch {
    std::uint32_t operand;
    int io_index;
    bool is_output;
  };

  struct Capture {
    bool warm = false;  ///< ran once: what kernels set up on first use is there
    std::unique_ptr<CapturedWork> work;
  };

  void fill_operands();
  Operand operand(int location, std::uint32_t index);
  void patch();
  void wait_for(const ExecStep& step, Stream& stream);
  void issue(std::size_t step);
  void issue_segment(std::size_t index);
  std::unique_ptr<CapturedWork> capture(const Segment& segment, Stream& stream);
  void drain() noexcept;

  const Program& program_;
  const Plan& plan_;
  std::vector<std::shared_ptr<Buffer>> arenas_;   // per device
  std::vector<std::unique_ptr<Stream>> streams_;  // per lane
  std::vector<std::unique_ptr<Event>> events_;    // per step; null: nobody waits
  std::vector<Operand> operands_;
  std::vector<Launch> launches_;  // per step
  std::vector<Patch> patches_;
  std::vector<Capture> captures_;  // per segment
  std::vector<void*> inputs_;      // addresses
  std::vector<void*> outputs_;
};

}  // namespace turnout
