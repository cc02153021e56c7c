#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.hpp"

namespace turnout {

/// Peak rates in floating-point (int8: integer) operations per second, dense. A missing rate: the
/// sheet states none.
struct PeakRates {
  std::optional<Figure> f64, f32, tf32, f16, bf16, int8;
};

enum class RateClass { f64, f32, tf32, f16, bf16, int8 };

/// The link between host and device. Bandwidths are for one direction at a time.
struct LinkProfile {
  std::string name;  ///< such as pcie4x16
  Figure h2d_bytes_per_s;
  Figure d2h_bytes_per_s;
  Figure pageable_h2d_bytes_per_s;
  Figure pageable_d2h_bytes_per_s;
  Figure latency_s;
};

/// What is known about one device without having it. Schema and units: docs/profiles.md. The
/// evidence of a figure is spec, measured or fallback ("default" in the file).
struct GpuProfile {
  std::string name;        ///< lower case, such as h100-pcie
  std::string title;       ///< for people
  std::string vendor;      ///< "NVIDIA" or "AMD"
  std::string generation;  ///< such as Hopper or CDNA 2
  std::string note;        ///< may be empty

  Figure compute_units;
  Figure warp_size;
  Figure base_clock_hz;
  Figure boost_clock_hz;
  Figure tdp_w;
  Figure memory_bytes;
  Figure memory_bandwidth_bytes_per_s;
  Figure l2_bytes;
  Figure shared_memory_per_unit_bytes;
  PeakRates vector_flops_per_s;  ///< ordinary units; f32 is always there
  PeakRates matrix_flops_per_s;  ///< tensor cores, matrix cores; may be empty
  Figure launch_overhead_s;
  Figure synchronize_s;
  LinkProfile link;

  /// The highest rate a matrix multiplication of that class can reach, or null where the device has
  /// none of its own. f32 never means tf32.
  const Figure* best_flops_per_s(RateClass rate) const;
  /// The same for elementwise work: ordinary units alone.
  const Figure* vector_rate(RateClass rate) const;
};

/// Longest profile that is read.
inline constexpr std::size_t kMaxProfileBytes = std::size_t{1} << 20;
/// Longest name of a profile or a link.
inline constexpr std::size_t kMaxProfileName = 64;

/// Loads a profile: the name of a shipped one or of an alias (`h100`), or the path of a JSON file
/// (it contains '/' or ends in .json). Either may end in a link: `@pcie3`, `@pcie4x8`. Files are
/// hostile input. Throws Error: not_found (name, file), io (unreadable), invalid_argument (link),
/// invalid_model (content).
GpuProfile load_profile(std::string_view name_or_path);

/// Reads a profile's text; `where` begins every message.
GpuProfile parse_profile(std::string_view json, std::string_view where);

/// Names of the shipped profiles, sorted, without aliases.
std::vector<std::string> shipped_profiles();

/// A PCI Express link by rule: generation 3 to 5, lanes 1, 2, 4, 8 or 16. All figures are defaults;
/// the rule is in docs/profiles.md. `spec` is such as "pcie4" (16 lanes) or "pcie4x8".
LinkProfile pcie_link(std::string_view spec);

/// What the planner sees of a device with this profile: peaks are best_flops_per_s(). A class
/// without a rate of its own gets that of f32, as a fallback that says so. `device_name` is such as
/// "virtual:v100".
DeviceInfo device_info(const GpuProfile& profile, std::string_view device_name);

/// A shipped profile as it was built in.
struct EmbeddedProfile {
  std::string_view name;
  std::string_view json;
};

/// Defined in the source that turnout_embed_profiles() (profiles.cmake) generates; sorted by name.
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace turnout
