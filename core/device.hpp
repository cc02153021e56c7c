#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor.hpp"

namespace turnout {

class KernelArgs;
class PreparedKernel;

/// Where a figure or a time comes from. It travels with the number up to the user's screen.
enum class Evidence {
  measured,    ///< of exactly this, on this machine
  calibrated,  ///< from curves fitted to measurements on this machine
  predicted,   ///< from a model fed with spec-sheet figures
  spec,        ///< a figure of a spec sheet
  fallback,    ///< a default nobody measured; shown as "default"
  mixed,       ///< parts differ; both are shown
  unprobed,    ///< not known
};
std::string_view to_string(Evidence evidence);

struct Figure {
  double value = 0;
  Evidence evidence = Evidence::unprobed;
  std::string source;
  bool known() const { return evidence != Evidence::unprobed; }
};

/// Connection of a device to the host, as the device's copies see it.
struct LinkInfo {
  std::string name;                         ///< "PCIe 4.0 x16"; empty: the device is the host
  Figure latency_seconds;                   ///< of one copy, before the first byte
  Figure h2d_bytes_per_s, d2h_bytes_per_s;  ///< pinned host memory
  Figure pageable_h2d_bytes_per_s, pageable_d2h_bytes_per_s;
};

/// What the planner knows of a device. Rates are per second, peaks dense.
struct DeviceInfo {
  std::string name;   ///< as given on the command line: "cpu", "virtual:v100"
  std::string title;  ///< "NVIDIA Tesla V100-SXM2-16GB"
  std::string vendor;
  std::string generation;   ///< of a GPU's architecture: "Volta"; empty: not known
  bool is_host = false;     ///< shares the host's memory: no copies
  bool is_virtual = false;  ///< emulated; its times come from its clock
  int compute_units = 0;    ///< cores or multiprocessors
  int threads = 1;          ///< host: threads in use
  int warp_size = 0;        ///< lanes that run in step; 0: not known
  Figure memory_bytes;
  Figure peak_f64, peak_f32, peak_tf32, peak_f16, peak_bf16, peak_i8;  ///< flop/s (op/s for i8)
  Figure matrix_f16;  ///< of matrix units alone, part of peak_f16; unprobed: it has none
  Figure memory_bytes_per_s;
  Figure l2_bytes;
  Figure launch_seconds;       ///< least time between two dependent kernels
  Figure synchronize_seconds;  ///< host notices that the device is done
  Figure base_clock_hz;
  Figure clock_hz;  ///< boost
  Figure tdp_watts;
  LinkInfo link;

  const Figure& peak(DType dtype) const;
};

/// A point in a stream's order of work.
class Event {
 public:
  virtual ~Event() = default;
  /// Blocks until the work before it is done. Rethrows that work's error.
  virtual void synchronize() = 0;
  /// The device's clock at the event, seconds from an origin of the device's own. After
  /// synchronize(). Virtual devices: the virtual clock.
  virtual double seconds() const = 0;
};

/// Work of a stream, recorded once to be launched many times at little cost. It may be launched by
/// any stream of its device; addresses, kernels and argument blocks have to outlive it.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

/// A queue of work of one device, done in order. One thread at a time.
/// Calls return before the work is done (the host's stream works at once); addresses, kernels and
/// argument blocks have to stay until a later synchronize() of the stream or of an event after
/// them.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device& device() const = 0;
  virtual void launch(const PreparedKernel& kernel, const KernelArgs& args) = 0;
  /// Copies between host and this stream's device, or inside either. A null device is the host.
  virtual void copy(void* to, const Device* to_device, const void* from, const Device* from_device,
                    std::size_t bytes) = 0;
  virtual void fill(void* address, std::byte value, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  /// Later work of this stream starts after `event`, which may be of another device's stream.
  virtual void wait(Event& event) = 0;
  /// Blocks until everything is done; throws the first error that happened.
  virtual void synchronize() = 0;
  virtual void* native_handle() const { return nullptr; }

  /// True if the stream can capture: between begin and end, launches, copies and fills are kept and
  /// not done; everything else is an error.
  virtual bool can_capture() const { return false; }
  virtual void begin_capture() { refuse_capture(); }
  virtual std::unique_ptr<CapturedWork> end_capture() { refuse_capture(); }
  virtual void launch(const CapturedWork&) { refuse_capture(); }

 private:
  [[noreturn]] void refuse_capture() const;
};

enum class MemoryKind { device, pinned_host };

/// Thread-safe. Owned by its Backend; buffers and streams must not outlive it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// 256-byte aligned, contents undefined (virtual devices poison it). Error out_of_memory naming
  /// the device, the size asked for and the size left. `pinned_host` memory is host memory.
  virtual std::shared_ptr<Buffer> allocate(std::size_t bytes, MemoryKind kind) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Bytes in use now, and the most there ever were.
  struct MemoryUse {
    std::size_t bytes = 0;
    std::size_t peak_bytes = 0;
  };
  virtual MemoryUse memory_use() const = 0;
  /// Added to a device address to get one that this process may dereference from kernels. 0 but for
  /// virtual devices, whose addresses can't be read directly.
  virtual std::ptrdiff_t access_offset() const { return 0; }
};

}  // namespace turnout
