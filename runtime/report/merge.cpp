#include "runtime/report/merge.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "runtime/io/json_fields.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 40;
constexpr std::size_t kMaxMachines = 26;

Machine read_machine(const JsonFields& json) {
  Machine machine;
  machine.cpu = json.text("cpu");
  machine.cores = static_cast<int>(json.integer("cores", 0, 1 << 20));
  machine.system = json.text("system");
  machine.version = json.text("version");
  machine.build = json.text("build");
  machine.providers = json.texts("providers");
  return machine;
}

CompareRow read_row(const JsonFields& json) {
  CompareRow row;
  row.device = json.text("device");
  row.batch = json.integer("batch", 1, kMaxBatch);
  if (json.has("skipped")) {
    row.skipped = json.text("skipped");
    return row;
  }
  row.latency_seconds = json.number("latency_s");
  row.transfer_seconds = json.number("transfer_s");
  row.memory_bytes =
      static_cast<std::size_t>(json.integer("memory_bytes", 0, std::int64_t{1} << 50));
  row.evidence = json.evidence("evidence");
  if (json.has("predicted_s")) {
    row.predicted_seconds = json.number("predicted_s");
    row.predicted_evidence = json.evidence("predicted_evidence");
  }
  row.executed = json.flag("executed");
  row.runs = static_cast<int>(json.integer("runs", 0, 1 << 30));
  row.spread = json.number("spread");
  // null: outputs of other shapes, or NaN on one side alone.
  if (json.is_null("difference"))
    row.difference = std::numeric_limits<double>::infinity();
  else if (json.has("difference"))
    row.difference = json.number("difference");
  row.nodes = json.text("nodes");
  if (!json.has("node_times")) return row;
  for (const Json& entry : json.list("node_times")) {
    const JsonFields node(entry, json.where() + ": node");
    row.node_times.push_back({node.text("name"), node.text("op"), node.text("device"),
                              node.text("provider"), node.number("seconds"),
                              node.evidence("evidence")});
  }
  return row;
}

Crossover read_crossover(const JsonFields& json) {
  return {json.text("from"), json.text("to"), json.integer("batch", 1, kMaxBatch),
          json.integer("low", 1, kMaxBatch), json.integer("high", 1, kMaxBatch)};
}

// The letter's index of a machine, which is added if it is new.
std::size_t machine_index(std::vector<Machine>& machines, const Machine& machine) {
  const auto at = std::find(machines.begin(), machines.end(), machine);
  if (at != machines.end()) return static_cast<std::size_t>(at - machines.begin());
  if (machines.size() == kMaxMachines) {
    fail(ErrorCode::invalid_argument, "more than {} machines", kMaxMachines);
  }
  machines.push_back(machine);
  return machines.size() - 1;
}

void check_same(const Comparison& first, const Comparison& other, const std::string& first_name,
                const std::string& other_name) {
  const auto refuse = [&](const char* what, const std::string& a, const std::string& b) {
    fail(ErrorCode::invalid_argument, "{} and {} have different {}: {} and {}", first_name,
         other_name, what, a, b);
  };
  if (first.model_digest != other.model_digest) {
    refuse("models", fmt::format("'{}' ({})", first.model, first.model_digest),
           fmt::format("'{}' ({})", other.model, other.model_digest));
  }
  if (first.input_digest != other.input_digest) {
    refuse("inputs", first.input_digest, other.input_digest);
  }
}

}  // namespace

Comparison parse_comparison(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonFields fields(json, where);
  if (fields.has("machines")) fields.refuse("is a report of several machines already");
  if (!fields.has("format")) {
    fields.refuse("isn't what turnout compare --json writes ('format' is missing)");
  }
  if (fields.text("format") != kCompareFormat) {
    fields.refuse(fmt::format("has the format '{}', not '{}'", fields.text("format").substr(0, 40),
                              kCompareFormat));
  }
  Comparison result;
  result.model = fields.text("model");
  result.model_digest = fields.text("model_digest");
  result.input_digest = fields.text("input_digest");
  result.machines = {read_machine(JsonFields(fields.object("machine"), where + ": machine"))};
  for (const Json& entry : fields.list("rows")) {
    result.rows.push_back(
        read_row(JsonFields(entry, fmt::format("{}: row {}", where, result.rows.size()))));
  }
  for (const Json& entry : fields.list("crossovers")) {
    result.crossovers.push_back(read_crossover(JsonFields(entry, where + ": crossover")));
  }
  result.outputs_agree = fields.flag("outputs_agree");
  result.notes = fields.texts("notes");
  return result;
}

Comparison merge(std::span<const Comparison> comparisons, std::span<const std::string> names) {
  if (comparisons.empty()) fail(ErrorCode::invalid_argument, "nothing to report on");
  Comparison result;
  result.model = comparisons[0].model;
  result.model_digest = comparisons[0].model_digest;
  result.input_digest = comparisons[0].input_digest;
  std::set<std::tuple<std::string, std::int64_t>> seen;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& comparison = comparisons[i];
    check_same(comparisons[0], comparison, names[0], names[i]);
    const std::size_t index = machine_index(result.machines, comparison.machines.at(0));
    const std::string host(1, static_cast<char>('A' + index));
    const auto label = [&](const std::string& device) {
      return fmt::format("{} [{}]", device, host);
    };
    for (CompareRow row : comparison.rows) {
      row.host = host;
      row.device = label(row.device);
      if (!seen.insert({row.device, row.batch}).second) {
        fail(ErrorCode::invalid_argument, "{} has '{}' at batch {}, which another file has too",
             names[i], row.device, row.batch);
      }
      result.rows.push_back(std::move(row));
    }
    for (Crossover crossover : comparison.crossovers) {
      crossover.from = label(crossover.from);
      crossover.to = label(crossover.to);
      result.crossovers.push_back(std::move(crossover));
    }
    for (const std::string& note : comparison.notes) result.notes.push_back(host + ": " + note);
    result.outputs_agree = result.outputs_agree && comparison.outputs_agree;
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const CompareRow& a, const CompareRow& b) { return a.batch < b.batch; });
  return result;
}

}  // namespace turnout
