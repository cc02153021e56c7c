// Why a node moved is told from its own times alone. Was it faster where it went already before?
//   before no, after yes   its own time
//   before yes, after yes  the copies that kept it back became worth it
//   after no               not for its own sake: it follows its neighbours and saves copies
#include "runtime/plan/plan_diff.hpp"

#include <algorithm>
#include <map>

#include "runtime/plan/explain.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

std::string time_text(const CostPart& part) {
  return fmt::format("{} ({})", format_seconds(part.seconds), to_string(part.evidence));
}

std::string why(const PlanDiff::Moved& node) {
  if (!node.from_after.possible) return fmt::format("{} can't run it any more", node.from);
  if (!node.to_before.possible) return fmt::format("{} couldn't run it before", node.to);
  const double before = node.to_before.time.seconds - node.from_before.time.seconds;
  const double after = node.to_after.time.seconds - node.from_after.time.seconds;
  if (before >= 0 && after < 0) {
    return fmt::format("its own time: {} was slower by {}, now it is faster by {}", node.to,
                       format_seconds(before), format_seconds(-after));
  }
  if (after < 0) {
    return fmt::format("{} was faster by {} before as well, now by {}: the copies became worth it",
                       node.to, format_seconds(-before), format_seconds(-after));
  }
  return fmt::format("for its neighbours: {} is slower by {}, but copies fall away", node.to,
                     format_seconds(after));
}

PlanRecord::Option option_of(const PlanRecord::NodeRecord& node, const std::string& device) {
  const PlanRecord::Option* option = node.on(device);
  return option == nullptr ? PlanRecord::Option{device, false, {}} : *option;
}

std::string option_text(const PlanRecord::Option& option) {
  return option.possible ? time_text(option.time) : "not possible";
}

std::string dims_text(const Bindings& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format(" {}={}", name, size);
  return text;
}

void diff_copies(PlanDiff& diff) {
  std::map<std::string, PlanDiff::CopyChange> changes;
  const auto change = [&](const PlanRecord::Copy& copy) -> PlanDiff::CopyChange& {
    PlanDiff::CopyChange& result = changes[copy.value + '\t' + copy.from + '\t' + copy.to];
    result.value = copy.value;
    result.from = copy.from;
    result.to = copy.to;
    return result;
  };
  for (const PlanRecord::Copy& copy : diff.before->copies) change(copy).before = &copy;
  for (const PlanRecord::Copy& copy : diff.after->copies) change(copy).after = &copy;
  for (const auto& [key, copy] : changes) {
    const bool same =
        copy.before != nullptr && copy.after != nullptr && copy.before->bytes == copy.after->bytes;
    if (!same) diff.copies.push_back(copy);
  }
}

}  // namespace

const PlanRecord::Option* PlanRecord::NodeRecord::on(std::string_view label) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.device == label; });
  return found == options.end() ? nullptr : &*found;
}

PlanDiff diff_plans(const PlanRecord& before, const PlanRecord& after) {
  if (before.model != after.model) {
    fail(ErrorCode::invalid_argument, "{} and {} are plans of different models: '{}' and '{}'",
         before.where, after.where, before.model, after.model);
  }
  PlanDiff diff;
  diff.before = &before;
  diff.after = &after;
  std::map<std::string, const PlanRecord::NodeRecord*> old_nodes;
  for (const PlanRecord::NodeRecord& node : before.nodes) old_nodes[node.name] = &node;
  for (const PlanRecord::NodeRecord& node : after.nodes) {
    const auto found = old_nodes.find(node.name);
    if (found == old_nodes.end()) {
      diff.only_after.push_back(node.name);
      continue;
    }
    const PlanRecord::NodeRecord& old_node = *found->second;
    old_nodes.erase(found);
    if (node.device == old_node.device || node.provider.empty()) {
      ++diff.same;
      continue;
    }
    PlanDiff::Moved moved{node.name, node.op, old_node.device, node.device, {}, {}, {}, {}, ""};
    moved.from_before = option_of(old_node, old_node.device);
    moved.to_before = option_of(old_node, node.device);
    moved.from_after = option_of(node, old_node.device);
    moved.to_after = option_of(node, node.device);
    moved.why = why(moved);
    diff.moved.push_back(std::move(moved));
  }
  for (const PlanRecord::NodeRecord& node : before.nodes) {
    if (old_nodes.count(node.name) > 0) diff.only_before.push_back(node.name);
  }
  diff_copies(diff);
  return diff;
}

std::string to_text(const PlanDiff& diff) {
  const PlanRecord& before = *diff.before;
  const PlanRecord& after = *diff.after;
  std::string text = fmt::format("plans of '{}'\n", before.model);
  for (const PlanRecord* plan : {&before, &after}) {
    text += fmt::format("  {}{}: time {}, serial sum {}\n", plan->where, dims_text(plan->dims),
                        time_text(plan->lanes), time_text(plan->serial));
  }
  text += fmt::format("\n{} nodes moved, {} stayed\n", diff.moved.size(), diff.same);
  for (const PlanDiff::Moved& node : diff.moved) {
    text += fmt::format("  {:<32} {:<18} {} -> {}\n", node.node, node.op, node.from, node.to);
    text += fmt::format("      before: {} on {}, {} on {}\n", option_text(node.from_before),
                        node.from, option_text(node.to_before), node.to);
    text += fmt::format("      after:  {} on {}, {} on {}\n", option_text(node.from_after),
                        node.from, option_text(node.to_after), node.to);
    text += "      " + node.why + "\n";
  }
  for (const std::string& name : diff.only_before) text += "  gone: " + name + "\n";
  for (const std::string& name : diff.only_after) text += "  new: " + name + "\n";
  if (!diff.copies.empty()) text += "\ncopies that changed\n";
  for (const PlanDiff::CopyChange& copy : diff.copies) {
    const auto side = [](const PlanRecord::Copy* plan) {
      return plan == nullptr
                 ? std::string("none")
                 : fmt::format("{} in {}", format_bytes(plan->bytes), time_text(plan->time));
    };
    text += fmt::format("  {:<32} {} -> {}: {}, then {}\n", copy.value, copy.from, copy.to,
                        side(copy.before), side(copy.after));
  }
  return text;
}

}  // namespace turnout
