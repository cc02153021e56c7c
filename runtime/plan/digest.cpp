#include "runtime/plan/digest.hpp"

namespace turnout {

void Digest::add(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ at[i]) * 0x100000001b3U;
}

void Digest::add(std::string_view text) {
  const std::uint64_t size = text.size();
  add(&size, sizeof size);
  add(text.data(), text.size());
}

void Digest::add(const Tensor& tensor) {
  add(to_string(tensor.spec()));
  if (tensor.bytes() > 0) add(tensor.address(), tensor.bytes());
}

std::string Digest::hex() const { return fmt::format("{:016x}", hash_); }

std::string graph_digest(const Graph& graph) {
  Digest digest;
  digest.add(to_text(graph));
  for (const Value& value : graph.values()) {
    if (value.kind == ValueKind::constant) digest.add(value.known);
  }
  return digest.hex();
}

}  // namespace turnout
