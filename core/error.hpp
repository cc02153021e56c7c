#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace turnout {

/// What went wrong, for callers that have to react to it.
enum class ErrorCode {
  invalid_argument,  ///< the caller's request makes no sense (shape, name, option)
  invalid_model,     ///< a model, graph or data file is malformed
  unsupported,       ///< well-formed, but nothing here can do it
  not_found,         ///< a file, device, node or value that doesn't exist
  out_of_memory,     ///< memory of a device or the host ran out
  device_lost,       ///< a device stopped answering
  io,                ///< reading or writing a file failed
  internal,          ///< a defect of Turnout
};

std::string_view to_string(ErrorCode code);

/// Every failure inside Turnout. `what()` names what and where:
/// `[softmax] axis 3 out of range for shape [2,4]`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace turnout
