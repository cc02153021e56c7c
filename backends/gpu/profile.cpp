#include "backends/gpu/profile.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "backends/gpu/profile_detail.hpp"
#include "core/error.hpp"

namespace turnout {

using profile_detail::printable;
using profile_detail::refuse_profile;

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kAliases = {
    {{"h100", "h100-pcie"}}};

const Figure* pointer(const std::optional<Figure>& figure) { return figure ? &*figure : nullptr; }

const Figure* rate_of(const PeakRates& rates, RateClass rate) {
  switch (rate) {
    case RateClass::f64:
      return pointer(rates.f64);
    case RateClass::f32:
      return pointer(rates.f32);
    case RateClass::tf32:
      return pointer(rates.tf32);
    case RateClass::f16:
      return pointer(rates.f16);
    case RateClass::bf16:
      return pointer(rates.bf16);
    case RateClass::int8:
      return pointer(rates.int8);
  }
  return nullptr;
}

/// Number of single-character changes that turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

[[noreturn]] void unknown_profile(std::string_view name) {
  const auto known = shipped_profiles();
  std::string hint;
  if (!known.empty() && name.size() <= kMaxProfileName) {
    const auto closest =
        std::min_element(known.begin(), known.end(), [name](const auto& a, const auto& b) {
          return edit_distance(name, a) < edit_distance(name, b);
        });
    hint = fmt::format("did you mean '{}'? ", *closest);
  }
  fail(ErrorCode::not_found,
       "[profile] unknown profile '{}'; {}known: {}; or give the path of a .json file",
       printable(name), hint, fmt::join(known, ", "));
}

std::string read_file(std::string_view path) {
  namespace fs = std::filesystem;
  const auto shown = printable(path);
  if (path.find('\0') != std::string_view::npos)
    fail(ErrorCode::invalid_argument, "[profile] {}: a path can't hold a zero byte", shown);
  std::error_code error;
  const auto status = fs::status(fs::path(path), error);
  if (status.type() == fs::file_type::not_found)
    fail(ErrorCode::not_found, "[profile] {}: no such file", shown);
  if (error) fail(ErrorCode::io, "[profile] {}: {}", shown, error.message());
  if (fs::is_directory(status))
    fail(ErrorCode::io, "[profile] {}: is a directory, not a file", shown);
  if (!fs::is_regular_file(status)) fail(ErrorCode::io, "[profile] {}: not a regular file", shown);
  errno = 0;
  std::ifstream file{fs::path(path), std::ios::binary};
  if (!file) fail(ErrorCode::io, "[profile] {}: can't be opened: {}", shown, std::strerror(errno));
  // One byte over the limit is enough to see that a file is too long, however long it is.
  std::string text(kMaxProfileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) fail(ErrorCode::io, "[profile] {}: reading failed", shown);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxProfileBytes)
    refuse_profile(path, fmt::format("larger than {} bytes", kMaxProfileBytes));
  return text;
}

GpuProfile load_shipped(std::string_view name) {
  for (const auto& [alias, target] : kAliases)
    if (name == alias) name = target;
  for (const auto& profile : embedded_profiles())
    if (profile.name == name) return parse_profile(profile.json, name);
  unknown_profile(name);
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json");
}

int read_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

Figure assumed(double value, std::string source) {
  return {value, Evidence::fallback, std::move(source)};
}

}  // namespace

const Figure* GpuProfile::best_flops_per_s(RateClass rate) const {
  const Figure* vector = rate_of(vector_flops_per_s, rate);
  const Figure* matrix = rate_of(matrix_flops_per_s, rate);
  if (!vector || !matrix) return matrix ? matrix : vector;
  return matrix->value >= vector->value ? matrix : vector;
}

const Figure* GpuProfile::vector_rate(RateClass rate) const {
  return rate_of(vector_flops_per_s, rate);
}

GpuProfile load_profile(std::string_view name_or_path) {
  std::string_view name = name_or_path;
  std::optional<LinkProfile> link;
  const auto at = name.rfind('@');
  // A path may have an '@' of its own; only a link begins with "pcie" and has no '/' or '.' after
  // it.
  if (at != std::string_view::npos) {
    const auto tail = name.substr(at + 1);
    if (!is_path(name) ||
        (tail.starts_with("pcie") && tail.find_first_of("/.") == std::string_view::npos)) {
      link = pcie_link(tail);
      name = name.substr(0, at);
    }
  }
  GpuProfile profile = is_path(name) ? parse_profile(read_file(name), name) : load_shipped(name);
  if (link) profile.link = *std::move(link);
  return profile;
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const auto& profile : embedded_profiles()) names.emplace_back(profile.name);
  std::sort(names.begin(), names.end());
  return names;
}

LinkProfile pcie_link(std::string_view spec) {
  constexpr double kEfficiency = 0.82;
  constexpr double kHostCopyBytesPerS = 12e9;
  constexpr double kStep = 1e6;  // figures are rounded to 1 MB/s
  const auto numbers = spec.starts_with("pcie") ? spec.substr(4) : std::string_view();
  const auto cross = numbers.find('x');
  const int generation = read_int(numbers.substr(0, cross));
  const int lanes = cross == std::string_view::npos ? 16 : read_int(numbers.substr(cross + 1));
  constexpr std::array kLanes = {1, 2, 4, 8, 16};
  if (generation < 3 || generation > 5 ||
      std::find(kLanes.begin(), kLanes.end(), lanes) == kLanes.end())
    fail(ErrorCode::invalid_argument,
         "[profile] unknown link '{}'; known: pcie3, pcie4, pcie5, with x1, x2, x4, x8 or x16 "
         "after it (without: x16)",
         printable(spec));
  // 8, 16 and 32 GT/s a lane, 128 bits of payload in 130 (PCI Express Base Specification,
  // generations 3 to 5).
  const double rate = 8e9 * (1 << (generation - 3)) * lanes * 128 / 130 / 8;
  const double pinned = std::round(rate * kEfficiency / kStep) * kStep;
  const double pageable = std::round(1 / (1 / pinned + 1 / kHostCopyBytesPerS) / kStep) * kStep;
  const Figure pinned_figure = assumed(pinned,
                                       "82 % of the link's rate after encoding: common for large "
                                       "pinned copies, packet headers and flow control "
                                       "taken off");
  const Figure pageable_figure = assumed(
      pageable, "pinned rate in series with a 12 GB/s host copy into the driver's pinned buffer");
  LinkProfile link;
  link.name = fmt::format("pcie{}x{}", generation, lanes);
  link.h2d_bytes_per_s = link.d2h_bytes_per_s = pinned_figure;
  link.pageable_h2d_bytes_per_s = link.pageable_d2h_bytes_per_s = pageable_figure;
  link.latency_s = assumed(8e-6,
                           "a small pinned copy commonly takes 5 to 10 us from submission to "
                           "completion; no sheet states it");
  return link;
}

DeviceInfo device_info(const GpuProfile& profile, std::string_view device_name) {
  const auto peak = [&profile](RateClass rate) {
    if (const Figure* own = profile.best_flops_per_s(rate)) return *own;
    const Figure* f32 = profile.best_flops_per_s(RateClass::f32);
    return assumed(f32->value, "no rate of its own on the sheet; that of f32: " + f32->source);
  };
  DeviceInfo info;
  info.name = device_name;
  info.title = profile.title;
  info.vendor = profile.vendor;
  info.generation = profile.generation;
  info.is_virtual = true;
  info.compute_units = static_cast<int>(profile.compute_units.value);
  info.warp_size = static_cast<int>(profile.warp_size.value);
  info.memory_bytes = profile.memory_bytes;
  info.peak_f64 = peak(RateClass::f64);
  info.peak_f32 = peak(RateClass::f32);
  info.peak_tf32 = peak(RateClass::tf32);
  info.peak_f16 = peak(RateClass::f16);
  info.peak_bf16 = peak(RateClass::bf16);
  info.peak_i8 = peak(RateClass::int8);
  if (const auto& matrix = profile.matrix_flops_per_s.f16) info.matrix_f16 = *matrix;
  info.memory_bytes_per_s = profile.memory_bandwidth_bytes_per_s;
  info.l2_bytes = profile.l2_bytes;
  info.launch_seconds = profile.launch_overhead_s;
  info.synchronize_seconds = profile.synchronize_s;
  info.base_clock_hz = profile.base_clock_hz;
  info.clock_hz = profile.boost_clock_hz;
  info.tdp_watts = profile.tdp_w;
  info.link = {profile.link.name,
               profile.link.latency_s,
               profile.link.h2d_bytes_per_s,
               profile.link.d2h_bytes_per_s,
               profile.link.pageable_h2d_bytes_per_s,
               profile.link.pageable_d2h_bytes_per_s};
  return info;
}

}  // namespace turnout
