#include "backends/plugin/library_needs.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace turnout::plugin {
namespace {

constexpr std::string_view kPrefix = "GLIBC_";            // also GLIBC_PRIVATE, GLIBC_ABI_...
constexpr std::size_t kMostBytes = std::size_t{1} << 26;  // of one section; anything may be a file

template <typename T>
bool read_at(std::ifstream& file, std::size_t offset, T* to, std::size_t count = 1) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof(T)));
  return static_cast<bool>(file);
}

std::vector<char> bytes_of(std::ifstream& file, const Elf64_Shdr& section) {
  if (section.sh_size > kMostBytes || section.sh_offset > std::size_t{1} << 62) return {};
  std::vector<char> bytes(section.sh_size);
  if (!read_at(file, section.sh_offset, bytes.data(), bytes.size())) bytes.clear();
  return bytes;
}

// Copies the record at `offset`; false where it doesn't lie inside.
template <typename T>
bool record_at(const std::vector<char>& bytes, std::size_t offset, T* to) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(to, bytes.data() + offset, sizeof(T));
  return true;
}

std::string_view text_at(const std::vector<char>& strings, std::size_t offset) {
  if (offset >= strings.size()) return {};
  return {strings.data() + offset, strnlen(strings.data() + offset, strings.size() - offset)};
}

// The newest of the versions that `needs`, an SHT_GNU_verneed, lists. Offsets lead forward only, so
// every walk ends.
std::string newest_glibc(const std::vector<char>& needs, const std::vector<char>& strings) {
  std::string newest;
  Elf64_Verneed library{};
  for (std::size_t at = 0; record_at(needs, at, &library); at += library.vn_next) {
    Elf64_Vernaux version{};
    for (std::size_t of = at + library.vn_aux; record_at(needs, of, &version);
         of += version.vna_next) {
      const std::string_view name = text_at(strings, version.vna_name);
      if (name.starts_with(kPrefix)) {
        const std::string number(name.substr(kPrefix.size()));
        const bool is_number = !number.empty() && number[0] >= '0' && number[0] <= '9';
        if (is_number && (newest.empty() || older_version(newest, number))) newest = number;
      }
      if (version.vna_next == 0) break;
    }
    if (library.vn_next == 0) break;
  }
  return newest;
}

}  // namespace

std::string needed_glibc(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file || !read_at(file, 0, &header)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > std::size_t{1} << 62) {
    return {};
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read_at(file, header.e_shoff, sections.data(), sections.size())) return {};
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_GNU_verneed || section.sh_link >= sections.size()) continue;
    return newest_glibc(bytes_of(file, section), bytes_of(file, sections[section.sh_link]));
  }
  return {};
}

bool older_version(const std::string& a, const std::string& b) {
  return strverscmp(a.c_str(), b.c_str()) < 0;
}

}  // namespace turnout::plugin
