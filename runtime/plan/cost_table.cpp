#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/plan/plan.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : where_(where) {
    constexpr std::size_t kMaxBytes = 64 << 20;
    if (text.size() > kMaxBytes) refuse("larger than 64 MiB");
    json_ = Json::parse(text, nullptr, false);
    if (json_.is_discarded()) refuse("not valid JSON");
    if (!json_.is_object()) refuse("not a JSON object");
  }

  CostTable read() {
    CostTable table;
    for (const auto& [key, value] : json_.items()) {
      if (key != "devices" && key != "nodes" && key != "transfers") {
        refuse("unknown key '" + key + "'");
      }
    }
    if (!json_.contains("devices") || !json_["devices"].is_array() || json_["devices"].empty()) {
      refuse("'devices' has to be a list of names");
    }
    for (const Json& name : json_["devices"]) {
      if (!name.is_string()) refuse("'devices' has to be a list of names");
      table.devices.push_back(name.get<std::string>());
    }
    if (!json_.contains("nodes") || !json_["nodes"].is_object()) {
      refuse("'nodes' has to be an object");
    }
    for (const auto& [name, value] : json_["nodes"].items()) {
      table.node_seconds[name] = seconds(value, table.devices.size(), "node '" + name + "'");
    }
    if (!json_.contains("transfers")) return table;
    if (!json_["transfers"].is_object()) refuse("'transfers' has to be an object");
    for (const auto& [name, value] : json_["transfers"].items()) {
      const auto pair = seconds(value, 2, "transfer of '" + name + "'");
      table.transfers[name] = {pair[0], pair[1]};
    }
    return table;
  }

 private:
  std::vector<double> seconds(const Json& json, std::size_t count, const std::string& what) const {
    if (!json.is_array() || json.size() != count) {
      refuse(fmt::format("{} needs {} numbers", what, count));
    }
    std::vector<double> result;
    for (const Json& number : json) {
      const double value = number.is_number() ? number.get<double>() : -1;
      if (!(value >= 0) || !std::isfinite(value)) {
        refuse(what + " has a cost that isn't a finite number >= 0");
      }
      result.push_back(value);
    }
    return result;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::invalid_argument, "cost table {}: {}", where_, what);
  }

  std::string where_;
  Json json_;
};

}  // namespace

CostTable parse_cost_table(std::string_view json, std::string_view where) {
  return Reader(json, where).read();
}

}  // namespace turnout
