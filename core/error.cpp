#include "core/error.hpp"

namespace turnout {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::invalid_model:
      return "invalid model";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::device_lost:
      return "device lost";
    case ErrorCode::io:
      return "input/output";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace turnout
