#pragma once

#include <cstdint>
#include <string>

#include "core/graph.hpp"

namespace turnout {

/// 64-bit FNV-1a, to tell things apart that nobody forges.
class Digest {
 public:
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text);  ///< with its length
  void add(const Tensor& tensor);   ///< host tensor: spec and bytes
  std::string hex() const;          ///< 16 digits

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Of ops, attributes, connections, names and constants: two graphs with one digest are the same
/// model. Reads all constants once.
std::string graph_digest(const Graph& graph);

}  // namespace turnout
