#include "runtime/report/html.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/report/html_chart.hpp"
#include "runtime/report/html_parts.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

// Scripts run only with the nonce, so a name that got past the escapes still could not.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-turnout'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
)";

struct Meaning {
  Evidence evidence;
  std::string_view text;
};

constexpr Meaning kMeanings[] = {
    {Evidence::measured, "timed on this machine, exactly this"},
    {Evidence::calibrated, "from curves fitted to measurements on this machine"},
    {Evidence::predicted, "from a model of a device that is not here, fed with its data sheet"},
    {Evidence::mixed, "partly measured, partly predicted"},
    {Evidence::fallback, "from a default that nobody measured"},
    {Evidence::spec, "a figure of a data sheet"},
    {Evidence::unprobed, "not known"},
};

std::string badge(Evidence evidence) {
  return fmt::format("<span class=\"badge {0}\">{0}</span>", to_string(evidence));
}

std::string swatch(const std::string& css) {
  return fmt::format("<i class=\"swatch {}\"></i>", css);
}

std::string device_name(const std::string& device, const DeviceStyles& styles) {
  return fmt::format("<span class=\"device\">{}<span class=\"name\">{}</span></span>",
                     swatch(styles.css(device)), escape_html(device));
}

bool cpu_was_compared(const Comparison& comparison, const std::string& device) {
  for (const CompareRow& row : comparison.rows) {
    if (row.device != device || !has_latency(row)) continue;
    for (const CompareRow& other : comparison.rows) {
      if (other.batch == row.batch && is_cpu(other.device) && has_latency(other)) return true;
    }
  }
  return false;
}

// "cpu:onednn at batch 1 to 8, cpu:kokkos at batch 16".
std::string winners_text(const Comparison& comparison) {
  struct Run {
    std::string device;
    std::int64_t first, last;
  };
  std::vector<Run> runs;
  for (const std::int64_t batch : batches_of(comparison)) {
    const CompareRow* winner = comparison.winner(batch);
    if (winner == nullptr) continue;
    if (!runs.empty() && runs.back().device == winner->device) {
      runs.back().last = batch;
    } else {
      runs.push_back({winner->device, batch, batch});
    }
  }
  std::vector<std::string> parts;
  for (const Run& run : runs) {
    parts.push_back(run.first == run.last
                        ? fmt::format("{} at batch {}", run.device, run.first)
                        : fmt::format("{} at batch {} to {}", run.device, run.first, run.last));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "cpu: 10.1 µs at batch 1, 16.4 µs at batch 4."
std::string one_device_text(const Comparison& comparison) {
  std::vector<const CompareRow*> rows;
  for (const std::int64_t batch : batches_of(comparison)) {
    const CompareRow* row = comparison.winner(batch);
    if (row != nullptr) rows.push_back(row);
  }
  if (rows.empty()) return "No device gave a time.";
  const auto figure = [](const CompareRow& row) {
    return fmt::format("{} at batch {}", html_seconds(row.latency_seconds), row.batch);
  };
  std::string text = escape_html(rows.front()->device) + ": " + figure(*rows.front());
  if (rows.size() > 1) text += ", " + figure(*rows.back());
  return text + ".";
}

// From which batch on each device beats the CPU; the fastest ones where that isn't the question.
std::string main_result(const Comparison& comparison, const DeviceStyles& styles) {
  std::vector<std::string> parts;
  for (const Crossover& crossover : comparison.crossovers) {
    parts.push_back(fmt::format("{} {}", crossover.to, crossover_text(crossover)));
  }
  for (const std::string& device : styles.devices()) {
    if (base_device(device) == "auto" || is_cpu(device)) continue;
    const bool crosses =
        std::any_of(comparison.crossovers.begin(), comparison.crossovers.end(),
                    [&](const Crossover& crossover) { return crossover.to == device; });
    if (crosses || !cpu_was_compared(comparison, device)) continue;
    parts.push_back(fmt::format("{} at none of the tried batches", device));
  }
  if (!parts.empty()) {
    return fmt::format("Faster than the CPU: {}.",
                       escape_html(fmt::format("{}", fmt::join(parts, "; "))));
  }
  if (styles.devices().size() == 1) return one_device_text(comparison);
  const std::string winners = winners_text(comparison);
  return winners.empty() ? "No device gave a time."
                         : fmt::format("Fastest: {}.", escape_html(winners));
}

std::string caveat(const Comparison& comparison) {
  bool measured = false;
  bool predicted = false;
  for (const CompareRow& row : comparison.rows) {
    if (!has_latency(row)) continue;
    measured = measured || row.evidence == Evidence::measured;
    predicted = predicted || row.evidence != Evidence::measured;
  }
  const char* machine =
      comparison.machines.size() > 1 ? "the machine of their row" : "this machine";
  if (!predicted) {
    return measured ? fmt::format("All times were measured on {}.", machine) : std::string();
  }
  return fmt::format(
      "{}Dashed lines and hollow marks are not measurements: such a time comes from "
      "a model of the device.",
      measured ? fmt::format("Solid lines and filled marks were measured on {}. ", machine)
               : std::string());
}

std::string outputs_text(const Comparison& comparison) {
  if (!comparison.outputs_agree) {
    return "<p class=\"bad\">The outputs of the devices disagree; see the notes.</p>\n";
  }
  const bool any = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                               [](const CompareRow& row) { return row.difference >= 0; });
  return any ? "<p>The outputs of all executed devices agree.</p>\n"
             : "<p>No outputs were compared: no two devices executed the same batch.</p>\n";
}

std::string legend(const DeviceStyles& styles) {
  std::string html = "<div class=\"legend\"><ul id=\"devices\">";
  for (const std::string& device : styles.devices()) {
    html += fmt::format("<li data-device=\"{}\" data-css=\"{}\">{}</li>", escape_html(device),
                        styles.css(device), device_name(device, styles));
  }
  html += "</ul><ul>";
  for (const std::string_view style : {"measured", "mixed", "predicted"}) {
    html += fmt::format(
        "<li><svg class=\"key\" viewBox=\"0 0 40 12\" aria-hidden=\"true\"><path class=\"curve "
        "auto "
        "key {0}\" d=\"M0 6H40\"/><circle class=\"point key {0}\" cx=\"20\" cy=\"6\" "
        "r=\"4\"/></svg>"
        "{0}</li>",
        style);
  }
  return html + "</ul></div>\n";
}

std::string table_row(const CompareRow& row, const DeviceStyles& styles, bool wins) {
  std::string html =
      fmt::format("<tr{}><td class=\"n\">{}</td><td>{}</td>", wins ? " class=\"wins\"" : "",
                  row.batch, device_name(row.device, styles));
  if (!row.skipped.empty()) {
    return html + fmt::format("<td colspan=\"7\" class=\"skipped\">skipped: {}</td></tr>\n",
                              escape_html(row.skipped));
  }
  const double share =
      row.latency_seconds > 0 ? 100 * std::min(1.0, row.transfer_seconds / row.latency_seconds) : 0;
  const std::string spread = row.runs > 1 ? fmt::format("<small>\xC2\xB1{:.0f} %, {} runs</small>",
                                                        50 * row.spread, row.runs)
                                          : "";
  html += fmt::format("<td class=\"n\">{}{}{}</td>", html_seconds(row.latency_seconds),
                      wins ? "<b class=\"fastest\">fastest</b>" : "", spread);
  html += fmt::format(
      "<td class=\"n\">{}</td><td class=\"n\">{:.1f} %</td><td class=\"n\">{}</td>",
      has_latency(row) ? format_count(static_cast<double>(row.batch) / row.latency_seconds) : "-",
      share, format_bytes(static_cast<double>(row.memory_bytes)));
  std::string difference = row.executed ? "reference" : "not executed";
  if (row.difference >= 0) difference = fmt::format("{:.1e}", row.difference);
  return html + fmt::format("<td>{}</td><td class=\"n\">{}</td><td class=\"nodes\">{}</td></tr>\n",
                            badge(row.evidence), difference, escape_html(row.nodes));
}

std::string table(const Comparison& comparison, const DeviceStyles& styles) {
  std::string html =
      "<div class=\"scroll\"><table id=\"rows\"><thead><tr><th "
      "class=\"n\">batch</th><th>device</th>"
      "<th class=\"n\">latency</th><th class=\"n\">per second</th><th class=\"n\">transfers</th>"
      "<th class=\"n\">memory</th><th>evidence</th><th class=\"n\">difference</th>"
      "<th>nodes</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const CompareRow& row = comparison.rows[i];
    if (i > 0 && comparison.rows[i - 1].batch != row.batch) html += "</tbody><tbody>\n";
    html +=
        table_row(row, styles, styles.devices().size() > 1 && comparison.winner(row.batch) == &row);
  }
  return html + "</tbody></table></div>\n";
}

std::string explanations(const Comparison& comparison) {
  std::string html =
      "<p class=\"small\">Latency is the median of the runs; \xC2\xB1 is half the distance between "
      "the "
      "quartiles. Transfers are the share of the latency spent copying between devices. Difference "
      "is "
      "the largest difference of an output to the reference's, the first device that executed the "
      "batch, relative to its "
      "range.</p>\n<dl class=\"meanings\">";
  for (const Meaning& meaning : kMeanings) {
    const bool rare = meaning.evidence == Evidence::spec || meaning.evidence == Evidence::unprobed;
    const auto has = [&](const CompareRow& row) { return row.evidence == meaning.evidence; };
    if (rare && std::none_of(comparison.rows.begin(), comparison.rows.end(), has)) continue;
    std::string text(meaning.text);
    const std::size_t here = text.find("this machine");
    if (comparison.machines.size() > 1 && here != std::string::npos) text.replace(here, 4, "its");
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", badge(meaning.evidence), text);
  }
  return html + "</dl>\n";
}

// Which machine each letter stands for; of a single comparison, the machine.
std::string machines(const Comparison& comparison) {
  if (comparison.machines.empty()) return "";
  std::string html = "<section><h2>Machines</h2><ul id=\"machines\">";
  for (std::size_t m = 0; m < comparison.machines.size(); ++m) {
    const std::string letter =
        comparison.machines.size() > 1 ? fmt::format("{}: ", static_cast<char>('A' + m)) : "";
    html += "<li>" + letter + escape_html(describe(comparison.machines[m])) + "</li>";
  }
  return html + "</ul></section>\n";
}

std::string notes(const Comparison& comparison) {
  if (comparison.notes.empty()) return "";
  std::string html = "<section><h2>Notes</h2><ul id=\"notes\">";
  for (const std::string& note : comparison.notes) html += "<li>" + escape_html(note) + "</li>";
  return html + "</ul></section>\n";
}

}  // namespace

std::string to_html(const Comparison& comparison) {
  const DeviceStyles styles(comparison);
  const std::string model =
      escape_html(comparison.model.empty() ? "unnamed model" : comparison.model);
  std::string html(kHead);
  html +=
      fmt::format("<title>{} - turnout compare</title>\n<style>{}</style></head>\n<body><main>\n",
                  model, kHtmlStyle);
  html += fmt::format(
      "<header><h1 class=\"name\">{}</h1>\n<p id=\"result\">{}</p>\n<p>{}</p>\n{}</header>\n",
      model, main_result(comparison, styles), caveat(comparison), outputs_text(comparison));
  const std::string chart = latency_chart(comparison, styles);
  html += "<section><h2>Latency against batch</h2>\n" + legend(styles);
  html += fmt::format("<div class=\"chart\">{}<div id=\"tip\" hidden></div></div></section>\n",
                      chart.empty() ? "<p>No device gave a time.</p>" : chart);
  html +=
      "<section><h2>Time of each op</h2>\n<p class=\"small\">Measured ones come from runs that "
      "time every "
      "step, so "
      "they need not add up to the latency.</p>\n<div id=\"ops\"><noscript>Drawn by a script, "
      "which does "
      "not run here.</noscript></div></section>\n";
  html += "<section><h2>All figures</h2>\n" + table(comparison, styles) + explanations(comparison) +
          "</section>\n" + notes(comparison) + machines(comparison);
  html += fmt::format(
      "</main>\n<script type=\"application/json\" id=\"comparison\">{}</script>\n"
      "<script nonce=\"turnout\">{}</script>\n</body></html>\n",
      escape_json(to_json(comparison)), kHtmlScript);
  return html;
}

}  // namespace turnout
