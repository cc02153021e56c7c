#include "runtime/io/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "core/error.hpp"

namespace turnout {
namespace {

// A file that takes its final name in commit(); removed if that never happens.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
    static std::atomic<unsigned> counter{0};
    do {  // a file of this name may be left from a process that was killed
      path_ = target;
      path_ += fmt::format(".{}.{}.partial", ::getpid(), counter++);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) refuse();
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!committed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse();
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void commit() {
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 || ::rename(path_.c_str(), target_.c_str()) != 0) refuse();
    committed_ = true;
  }

 private:
  [[noreturn]] void refuse() {
    fail(ErrorCode::io, "can't write '{}': {}", target_.string(),
         std::generic_category().message(errno));
  }

  std::filesystem::path target_, path_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace

std::uint64_t regular_file_bytes(const std::filesystem::path& file) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (!std::filesystem::exists(status)) {
    fail(ErrorCode::not_found, "there is no file '{}'", file.string());
  }
  if (!std::filesystem::is_regular_file(status)) {
    fail(ErrorCode::not_found, "'{}' is not a file", file.string());
  }
  const auto bytes = std::filesystem::file_size(file, code);
  if (code) fail(ErrorCode::io, "can't read '{}': {}", file.string(), code.message());
  return bytes;
}

std::string read_file_range(const std::filesystem::path& file, std::uint64_t offset,
                            std::uint64_t bytes) {
  const std::uint64_t size = regular_file_bytes(file);
  if (offset > size || bytes > size - offset) {
    fail(ErrorCode::io, "'{}' has {} bytes; {} at offset {} are not in it", file.string(), size,
         bytes, offset);
  }
  std::ifstream stream(file, std::ios::binary);
  std::string result(bytes, '\0');
  if (!stream.seekg(static_cast<std::streamoff>(offset)) ||
      !stream.read(result.data(), static_cast<std::streamsize>(bytes))) {
    fail(ErrorCode::io, "can't read '{}'", file.string());
  }
  return result;
}

std::string read_file(const std::filesystem::path& file, std::uint64_t limit_bytes) {
  const std::uint64_t size = regular_file_bytes(file);
  if (size > limit_bytes) {
    fail(ErrorCode::io, "'{}' has {} bytes, more than the limit of {}", file.string(), size,
         limit_bytes);
  }
  return read_file_range(file, 0, size);
}

void write_file(const std::filesystem::path& file, std::span<const std::string_view> parts) {
  TemporaryFile temporary(file);
  for (std::string_view part : parts) temporary.write(part);
  temporary.commit();
}

}  // namespace turnout
