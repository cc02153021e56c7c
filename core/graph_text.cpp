#include "core/graph_text.hpp"

#include <algorithm>

#include "core/graph.hpp"

namespace turnout {
namespace {

using namespace text;

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\x{:02x}", code);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string bare_or_quoted(std::string_view name, bool (*is_bare)(char)) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_bare) ? std::string(name)
                                                                         : quote(name);
}

std::string value_name(const Graph& graph, ValueId id) {
  return id.valid() ? "%" + bare_or_quoted(graph.value(id).name, is_name) : "-";
}

std::string value_names(const Graph& graph, std::span<const ValueId> ids) {
  std::string result;
  for (ValueId id : ids) result += (result.empty() ? "" : ", ") + value_name(graph, id);
  return result;
}

std::string dim_text(const Dim& dim) {
  if (dim.fixed()) return std::to_string(dim.size);
  return is_digit(dim.symbol[0]) ? quote(dim.symbol) : bare_or_quoted(dim.symbol, is_word);
}

std::string attr_text(const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return quote(*text);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts == nullptr) return to_string(value);
  std::string result;
  for (const std::string& text : *texts) result += (result.empty() ? "" : ",") + quote(text);
  return "[" + result + "]";
}

std::string data_text(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    std::string result;
    for (const T value : tensor.values<T>()) {
      if (!result.empty()) result += ", ";
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        result += fmt::format("{}", static_cast<float>(value));
      } else if constexpr (std::is_floating_point_v<T>) {
        result += fmt::format("{}", value);
      } else {
        result += std::to_string(value);
      }
    }
    return "[" + result + "]";
  });
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string text = fmt::format("{} = {}({})", value_names(graph, node.outputs), node.op->name,
                                 value_names(graph, node.inputs));
  if (!node.attrs.empty()) {
    std::vector<std::string> attrs;
    for (const auto& [name, value] : node.attrs) attrs.push_back(name + "=" + attr_text(value));
    text += fmt::format(" {{{}}}", fmt::join(attrs, ", "));
  }
  if (node.name != graph.value(node.outputs[0]).name) text += " @" + quote(node.name);
  if (graph.bound()) {
    std::vector<std::string> specs;
    for (ValueId id : node.outputs) specs.push_back(to_string(graph.value(id).spec));
    text += fmt::format(" : {}", fmt::join(specs, ", "));
  }
  return text;
}

}  // namespace

std::string to_text(const Graph& graph, std::int64_t max_data) {
  std::string result = fmt::format("graph {}\n", quote(graph.name()));
  for (ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    std::vector<std::string> dims;
    for (const Dim& dim : value.dims) dims.push_back(dim_text(dim));
    result += fmt::format(
        "input {} : {}\n", value_name(graph, id),
        graph.bound() ? to_string(value.spec)
                      : fmt::format("{}[{}]", to_string(value.spec.dtype), fmt::join(dims, ",")));
  }
  for (std::uint32_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.kind != ValueKind::constant) continue;
    result += fmt::format("constant {} : {}", value_name(graph, ValueId{i}), to_string(value.spec));
    if (value.spec.elements() <= max_data) result += " = " + data_text(value.known);
    result += "\n";
  }
  for (const Node& node : graph.nodes()) result += node_text(graph, node) + "\n";
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    result += fmt::format("output {} = {}\n", quote(graph.output_names()[i]),
                          value_name(graph, graph.outputs()[i]));
  }
  return result;
}

}  // namespace turnout
