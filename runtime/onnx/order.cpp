// Order of nodes: Kahn's algorithm, where the node that comes first in the file goes first among
// those that are ready. A node with subgraphs also reads what they capture.
#include <algorithm>
#include <queue>
#include <set>

#include "runtime/onnx/importer.hpp"

namespace turnout::onnx_import {
namespace {

using Names = std::set<std::string, std::less<>>;

void add_captured(const onnx::GraphProto& graph, Names& reads, int depth);

// Names that the node needs from around it.
void add_reads(const onnx::NodeProto& node, Names& reads, int depth) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) reads.insert(input);
  }
  if (depth > 32) fail(ErrorCode::unsupported, "node '{}': subgraphs too deep", label_of(node));
  for (const auto& attr : node.attribute()) {
    if (attr.has_g()) add_captured(attr.g(), reads, depth + 1);
    for (const auto& graph : attr.graphs()) add_captured(graph, reads, depth + 1);
  }
}

void add_captured(const onnx::GraphProto& graph, Names& reads, int depth) {
  Names inside, own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& initializer : graph.initializer()) own.insert(initializer.name());
  for (const auto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
    add_reads(node, inside, depth);
  }
  for (const auto& output : graph.output()) inside.insert(output.name());
  for (const std::string& name : inside) {
    if (own.count(name) == 0) reads.insert(name);
  }
}

using Edges = std::vector<std::vector<std::uint32_t>>;

// Walks from a node that was never ready against the edges until one comes twice.
[[noreturn]] void fail_with_cycle(const std::vector<const onnx::NodeProto*>& nodes,
                                  const Edges& readers, const std::vector<int>& open,
                                  const std::string& where) {
  std::vector<std::uint32_t> from(nodes.size(), 0);
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (open[i] == 0) continue;
    for (std::uint32_t reader : readers[i]) from[reader] = i;
    at = i;
  }
  while (open[at] == 0) ++at;
  for (std::size_t step = 0; step < nodes.size(); ++step) at = from[at];  // now on the cycle
  std::vector<std::string> names;
  std::uint32_t next = at;
  do {
    names.push_back(fmt::format("'{}'", label_of(*nodes[next])));
    next = from[next];
  } while (next != at && names.size() < 10);
  std::reverse(names.begin(), names.end());
  const std::string_view more = next == at ? "" : " and more";
  fail(ErrorCode::invalid_model, "{}: nodes {}{} form a cycle", where, fmt::join(names, " -> "),
       more);
}

}  // namespace

std::string label_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return node.op_type();
}

std::vector<const onnx::NodeProto*> sorted_nodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& protos, const std::string& where) {
  std::vector<const onnx::NodeProto*> nodes;
  for (const auto& node : protos) nodes.push_back(&node);
  std::map<std::string_view, std::uint32_t> producers;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i]->output()) {
      const auto [at, is_new] = producers.emplace(output, i);
      if (is_new || output.empty()) continue;
      fail(ErrorCode::invalid_model, "{}: value '{}' is defined by node '{}' and by node '{}'",
           where, output, label_of(*nodes[at->second]), label_of(*nodes[i]));
    }
  }
  Edges readers(nodes.size());
  std::vector<int> open(nodes.size(), 0);  // producers not placed yet
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    Names reads;
    add_reads(*nodes[i], reads, 0);
    for (const std::string& name : reads) {
      const auto at = producers.find(name);
      if (at == producers.end()) continue;
      readers[at->second].push_back(i);
      ++open[i];
    }
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (open[i] == 0) ready.push(i);
  }
  std::vector<const onnx::NodeProto*> order;
  while (!ready.empty()) {
    const std::uint32_t i = ready.top();
    ready.pop();
    order.push_back(nodes[i]);
    for (std::uint32_t reader : readers[i]) {
      if (--open[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() < nodes.size()) fail_with_cycle(nodes, readers, open, where);
  return order;
}

}  // namespace turnout::onnx_import
