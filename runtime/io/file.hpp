#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace turnout {

/// Bytes [offset, offset + bytes) of a regular file. Error not_found when there is none, io when it
/// ends early. Blocking, as everything here.
std::string read_file_range(const std::filesystem::path& file, std::uint64_t offset,
                            std::uint64_t bytes);
/// All bytes; Error io for a file above `limit_bytes`.
std::string read_file(const std::filesystem::path& file, std::uint64_t limit_bytes);

/// Size of a regular file; Error not_found when there is none (or it is a folder).
std::uint64_t regular_file_bytes(const std::filesystem::path& file);

/// Writes the parts one after the other, whole or not at all: into a new file beside `file`, which
/// then takes its name. Error io with the system's reason; nothing is left behind.
void write_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

}  // namespace turnout
