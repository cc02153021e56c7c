#include "runtime/plan/dot.hpp"

#include <set>

#include "runtime/report/units.hpp"

namespace turnout {
namespace {

// ColorBrewer's Set3, in the order of the devices.
constexpr const char* kColours[] = {"#ffffb3", "#8dd3c7", "#bebada", "#fb8072",
                                    "#80b1d3", "#fdb462", "#b3de69", "#fccde5"};

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  return result + "\"";
}

// Lines of a label, each quoted by itself so that a name can't break out.
std::string label(std::initializer_list<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) {
    const std::string inside = quote(line);
    text += (text.empty() ? "" : "\\n") + inside.substr(1, inside.size() - 2);
  }
  return "\"" + text + "\"";
}

class DotWriter {
 public:
  explicit DotWriter(const PlannedModel& planned) : graph_(planned.graph), plan_(planned.plan) {}
  std::string write();

 private:
  void add_node(std::size_t n);
  void add_edges(std::size_t n);
  void add_edge(ValueId value, const std::string& to, int device);

  const std::string& device_label(int device) const {
    return plan_.devices[static_cast<std::size_t>(device)].label;
  }
  int home_of(const Value& value) const {
    return value.kind == ValueKind::computed ? plan_.nodes[value.producer.index].device : 0;
  }

  const Graph& graph_;
  const Plan& plan_;
  std::string text_;
};

void DotWriter::add_node(std::size_t n) {
  const Node& node = graph_.nodes()[n];
  const NodePlan& plan = plan_.nodes[n];
  const NodeOption& chosen = plan.chosen();
  const std::string time =
      chosen.kernel == nullptr
          ? "view"
          : fmt::format("{} ({})", format_seconds(chosen.seconds), to_string(chosen.evidence));
  const std::string where = chosen.kernel == nullptr
                                ? device_label(plan.device)
                                : device_label(plan.device) + ", " + chosen.kernel->provider;
  const std::size_t colour = static_cast<std::size_t>(plan.device) % std::size(kColours);
  text_ += fmt::format("  n{} [label={}, fillcolor=\"{}\"];\n", n,
                       label({node.name, node.op->name, where, time}), kColours[colour]);
}

// A copy has the value's bytes and the time of its last leg.
void DotWriter::add_edge(ValueId id, const std::string& to, int device) {
  const Value& value = graph_.value(id);
  if (value.kind == ValueKind::constant) return;
  const std::string from = value.kind == ValueKind::computed
                               ? fmt::format("n{}", value.producer.index)
                               : fmt::format("v{}", id.index);
  std::string copy;
  for (const CopyPlan& step : plan_.copies) {
    if (step.value != id || step.to != device) continue;
    copy =
        fmt::format(" [style=dashed, color=\"#b2182b\", label={}]",
                    label({fmt::format("{} -> {}", device_label(step.from), device_label(step.to)),
                           fmt::format("{}, {} ({})", format_bytes(static_cast<double>(step.bytes)),
                                       format_seconds(step.seconds), to_string(step.evidence))}));
  }
  text_ += fmt::format("  {} -> {}{};\n", from, to, home_of(value) == device ? "" : copy);
}

void DotWriter::add_edges(std::size_t n) {
  const Node& node = graph_.nodes()[n];
  std::set<std::uint32_t> seen;
  for (ValueId id : node.inputs) {
    if (!id.valid() || !seen.insert(id.index).second) continue;
    add_edge(id, fmt::format("n{}", n), plan_.nodes[n].device);
  }
}

std::string DotWriter::write() {
  text_ = fmt::format(
      "digraph {} {{\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
      "  label={};\n",
      quote(graph_.name()),
      label({fmt::format("{}: {} ({})", graph_.name(), format_seconds(plan_.predicted_seconds),
                         to_string(plan_.evidence))}));
  for (ValueId id : graph_.inputs()) {
    text_ += fmt::format("  v{} [label={}, shape=ellipse, fillcolor=white];\n", id.index,
                         label({graph_.value(id).name}));
  }
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) add_node(n);
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) add_edges(n);
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    text_ += fmt::format("  o{} [label={}, shape=ellipse, fillcolor=white];\n", i,
                         label({std::string(graph_.output_names()[i])}));
    add_edge(graph_.outputs()[i], fmt::format("o{}", i), 0);
  }
  return text_ + "}\n";
}

}  // namespace

std::string to_dot(const PlannedModel& planned) { return DotWriter(planned).write(); }

}  // namespace turnout
