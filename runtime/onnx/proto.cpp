#include "runtime/onnx/proto.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <new>

#include "core/error.hpp"

namespace turnout {

void parse_proto(std::string_view bytes, google::protobuf::MessageLite& message,
                 const std::string& what) {
  if (bytes.size() > kProtoLimit) {
    fail(ErrorCode::invalid_model, "{}: {} bytes are more than a protobuf message can have", what,
         bytes.size());
  }
  const google::protobuf::LogSilencer silence;
  try {
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
    stream.SetRecursionLimit(100);
    if (message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: no memory to read it", what);
  }
  fail(ErrorCode::invalid_model, "{}: not well-formed protobuf; cut short or something else", what);
}

bool is_clean_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7f) return false;
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || text.size() - i < length) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xc0U) != 0x80U) return false;
      code = code << 6 | (next & 0x3fU);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += length;
  }
  return true;
}

}  // namespace turnout
