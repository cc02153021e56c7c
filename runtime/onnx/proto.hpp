#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace google::protobuf {
class MessageLite;
}

namespace turnout {

/// Protobuf can't hold more in one message.
inline constexpr std::uint64_t kProtoLimit = (std::uint64_t{1} << 31) - 1;

/// Parses `bytes` into `message`. Error invalid_model naming `what` when they are cut short, are
/// something else or nest deeper than 100 messages. Prints nothing.
void parse_proto(std::string_view bytes, google::protobuf::MessageLite& message,
                 const std::string& what);

/// Is `text` well-formed UTF-8 without control characters? Names have to be, since they end up in
/// messages, reports and JSON.
bool is_clean_text(std::string_view text);

}  // namespace turnout
