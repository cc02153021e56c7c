#include "runtime/report/advise_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/plan/evidence_error.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

std::string energy_text(double joules) {
  if (joules <= 0) return "-";
  return joules < 1 ? fmt::format("{:.3g} mJ", joules * 1e3) : fmt::format("{:.3g} J", joules);
}

std::string memory_text(const Advice& advice) {
  const std::string needed = format_bytes(advice.memory_bytes);
  if (advice.memory_limit_bytes <= 0) return needed;
  return fmt::format("{} of {}", needed, format_bytes(advice.memory_limit_bytes));
}

std::string row_text(const Advice& advice, bool with_price) {
  std::string text = fmt::format(
      "  {:>3}{} {:<24} {:>9} +-{:<4} {:>9} at {:<6} {:>10} {:>24} {:<10}", advice.rank,
      advice.undecided ? "=" : " ", advice.device, format_seconds(advice.latency_seconds),
      fmt::format("{:.0f}%", 100 * advice.error), format_count(advice.items_per_s),
      advice.best_batch, energy_text(advice.joules_per_item), memory_text(advice),
      to_string(advice.evidence));
  if (with_price) {
    text += advice.price_per_rate > 0 ? fmt::format(" {:>10.4g}", advice.price_per_rate)
                                      : fmt::format(" {:>10}", "-");
  }
  return text + "\n";
}

}  // namespace

std::string to_text(const AdviceReport& report) {
  const bool with_price =
      std::any_of(report.ranked.begin(), report.ranked.end(),
                  [](const Advice& advice) { return advice.price_per_rate > 0; });
  std::string text = fmt::format(
      "devices for '{}' by {}, the whole model on one, batch {} to {}\n"
      "  errors assumed: {}; '=' can't be told from the first within them\n\n"
      "       {:<24} {:>9} {:<6} {:>9}    {:<6} {:>10} {:>24} {:<10}{}\n",
      report.model, to_string(report.objective), report.batches.front(), report.batches.back(),
      relative_errors_text(), "device", "latency", "", "items/s", "batch", "energy <=", "memory",
      "evidence", with_price ? "  price/rate" : "");
  for (const Advice& advice : report.ranked) {
    if (advice.refusal.empty()) text += row_text(advice, with_price);
  }
  for (const Advice& advice : report.ranked) {
    if (advice.refusal.empty()) continue;
    text +=
        fmt::format("  {:>3}  {:<24} not ranked: {}\n", advice.rank, advice.device, advice.refusal);
  }
  return text + fmt::format(
                    "\nlatency at batch {}; the rest at the batch of most items/s. Energy is an "
                    "upper bound an item: the sheet's TDP * time, the host left out.\n",
                    report.batches.front());
}

std::string to_json(const AdviceReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"model", report.model},
               {"objective", to_string(report.objective)},
               {"batches", report.batches},
               {"ranked", Json::array()}};
  for (const Advice& advice : report.ranked) {
    Json entry = {{"rank", advice.rank}, {"device", advice.device}, {"title", advice.title}};
    if (!advice.refusal.empty()) entry["refusal"] = advice.refusal;
    if (advice.items_per_s > 0) {
      entry["evidence"] = to_string(advice.evidence);
      entry["relative_error"] = advice.error;
      entry["undecided"] = advice.undecided;
      entry["latency_batch"] = advice.latency_batch;
      entry["latency_s"] = advice.latency_seconds;
      entry["best_batch"] = advice.best_batch;
      entry["items_per_s"] = advice.items_per_s;
      entry["joules_per_item_at_most"] =
          advice.joules_per_item > 0 ? Json(advice.joules_per_item) : Json();
      entry["price_per_item_per_s"] =
          advice.price_per_rate > 0 ? Json(advice.price_per_rate) : Json();
      entry["memory_bytes"] = advice.memory_bytes;
      entry["memory_limit_bytes"] =
          advice.memory_limit_bytes > 0 ? Json(advice.memory_limit_bytes) : Json();
      entry["fits_to_batch"] = advice.fits_to;
    }
    json["ranked"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace turnout
