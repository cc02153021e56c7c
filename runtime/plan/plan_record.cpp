// Plans and their differences as JSON.
#include "runtime/io/json_fields.hpp"
#include "runtime/plan/explain.hpp"
#include "runtime/plan/plan_diff.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

PlanRecord::Option read_option(const JsonFields& json) {
  PlanRecord::Option option;
  option.device = json.text("device");
  option.possible = json.flag("possible");
  if (option.possible) option.time = {json.number("seconds"), json.evidence("evidence")};
  return option;
}

PlanRecord::NodeRecord read_node(const JsonFields& json) {
  PlanRecord::NodeRecord node;
  node.name = json.text("name");
  node.op = json.text("op");
  node.device = json.text("device");
  node.provider = json.text("provider");
  for (const Json& option : json.list("options")) {
    node.options.push_back(read_option(JsonFields(option, json.where() + ": option")));
  }
  return node;
}

PlanRecord::Copy read_copy(const JsonFields& json) {
  return {json.text("value"),
          json.text("from"),
          json.text("to"),
          json.number("bytes"),
          {json.number("seconds"), json.evidence("evidence")}};
}

nlohmann::ordered_json option_json(const PlanRecord::Option& option) {
  if (!option.possible) return {{"possible", false}};
  return {{"possible", true},
          {"seconds", option.time.seconds},
          {"evidence", to_string(option.time.evidence)}};
}

nlohmann::ordered_json copy_json(const PlanRecord::Copy* copy) {
  if (copy == nullptr) return nullptr;
  return {{"bytes", copy->bytes},
          {"seconds", copy->time.seconds},
          {"evidence", to_string(copy->time.evidence)}};
}

}  // namespace

PlanRecord parse_plan(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonFields fields(json, where);
  if (!fields.has("format") || fields.text("format") != kPlanFormat) {
    fields.refuse(fmt::format("isn't what turnout plan --json writes (format '{}')", kPlanFormat));
  }
  PlanRecord plan;
  plan.where = where;
  plan.model = fields.text("model");
  const JsonFields dims(fields.object("dims"), where + ": dims");
  for (const auto& [name, size] : fields.object("dims").items()) {
    plan.dims[name] = dims.integer(name, 0, std::int64_t{1} << 40);
  }
  const Evidence evidence = fields.evidence("evidence");
  plan.serial = {fields.number("predicted_s"), evidence};
  plan.lanes = {fields.number("lanes_s"), evidence};
  for (const Json& node : fields.list("nodes")) {
    plan.nodes.push_back(
        read_node(JsonFields(node, fmt::format("{}: node {}", where, plan.nodes.size()))));
  }
  for (const Json& copy : fields.list("copies")) {
    plan.copies.push_back(
        read_copy(JsonFields(copy, fmt::format("{}: copy {}", where, plan.copies.size()))));
  }
  return plan;
}

std::string to_json(const PlanDiff& diff) {
  using Ordered = nlohmann::ordered_json;
  Ordered json = {{"model", diff.before->model}, {"same", diff.same}};
  for (const auto& [key, plan] : {std::pair{"before", diff.before}, {"after", diff.after}}) {
    json[key] = {{"file", plan->where},
                 {"lanes_s", plan->lanes.seconds},
                 {"serial_s", plan->serial.seconds},
                 {"evidence", to_string(plan->lanes.evidence)}};
  }
  json["moved"] = Ordered::array();
  for (const PlanDiff::Moved& node : diff.moved) {
    json["moved"].push_back(
        {{"node", node.node},
         {"op", node.op},
         {"from", node.from},
         {"to", node.to},
         {"before", {{"from", option_json(node.from_before)}, {"to", option_json(node.to_before)}}},
         {"after", {{"from", option_json(node.from_after)}, {"to", option_json(node.to_after)}}},
         {"why", node.why}});
  }
  json["only_before"] = diff.only_before;
  json["only_after"] = diff.only_after;
  json["copies"] = Ordered::array();
  for (const PlanDiff::CopyChange& copy : diff.copies) {
    json["copies"].push_back({{"value", copy.value},
                              {"from", copy.from},
                              {"to", copy.to},
                              {"before", copy_json(copy.before)},
                              {"after", copy_json(copy.after)}});
  }
  return json.dump(1, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace turnout
