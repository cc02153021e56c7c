#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/cost/accuracy.hpp"
#include "runtime/io/file.hpp"
#include "runtime/system.hpp"
#include "tools/commands.hpp"
#include "tools/model_options.hpp"

namespace turnout::tools {
namespace {

using Json = nlohmann::ordered_json;
using gpu_model::PredictedRow;
using gpu_model::Prediction;

struct PredictCommand {
  std::string devices;
  std::vector<std::string> tables;
  std::size_t calibrate_with = 0;
  std::string leave_out;
  std::string json;
  bool quiet = false;
};

std::string shape_text(const gpu_model::OpRow& row) {
  const gpu_model::OpShape& s = row.shape;
  if (!row.refusal.empty()) return row.refusal;
  if (!s.is_conv) {
    return fmt::format("{} x {} x {} {}{}", s.m, s.n, s.k, s.transpose_a ? 'T' : 'N',
                       s.transpose_b ? 'T' : 'N');
  }
  return fmt::format("{}x{}x{}x{} to {}, {}x{}, pad {}x{}, stride {}x{}", s.batch, s.in_channels,
                     s.height, s.width, s.out_channels, s.filter_h, s.filter_w, s.pad_h, s.pad_w,
                     s.stride_h, s.stride_w);
}

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.4g}", *seconds * 1e3) : "-";
}

void print(const std::string& device, const Prediction& prediction, bool quiet) {
  fmt::print("{}: predicted from its spec sheet; model learned on {}\n", device,
             prediction.learned_from);
  if (!prediction.calibration.empty()) {
    fmt::print("calibrated with {} rows: {}\n", prediction.calibration.size(),
               fmt::join(prediction.calibration, ", "));
  }
  if (!quiet) {
    fmt::print("{:>5} {:<16} {:<52} {:>12} {:>10} {:>7}  {}\n", "row", "op and pass", "shape",
               "predicted ms", "given ms", "error", "evidence");
  }
  for (std::size_t i = 0; i < prediction.rows.size() && !quiet; ++i) {
    const PredictedRow& row = prediction.rows[i];
    std::string error = "-";
    if (row.seconds && row.row.seconds) {
      error = fmt::format("{:+.0f} %", (*row.seconds / *row.row.seconds - 1) * 100);
    }
    fmt::print("{:>5} {:<16} {:<52} {:>12} {:>10} {:>7}  {}\n", i, row.row.op + " " + row.row.pass,
               shape_text(row.row), milliseconds(row.seconds), milliseconds(row.row.seconds), error,
               row.seconds ? to_string(row.evidence) : "refused");
  }
  for (const auto& [what, count, mean, median] : errors_of(prediction)) {
    fmt::print("error {:<16} mean {:5.1f} %  median {:5.1f} %  of {} rows\n", what, mean * 100,
               median * 100, count);
  }
}

Json to_json(const Prediction& prediction) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < prediction.rows.size(); ++i) {
    const PredictedRow& row = prediction.rows[i];
    const auto number = [](const std::optional<double>& seconds) {
      return seconds ? Json(*seconds * 1e3) : Json(nullptr);
    };
    Json entry = {{"index", i},
                  {"op", row.row.op},
                  {"pass", row.row.pass},
                  {"predicted_ms", number(row.seconds)},
                  {"given_ms", number(row.row.seconds)},
                  {"evidence", row.seconds ? to_string(row.evidence) : "refused"}};
    if (!row.row.refusal.empty()) entry["reason"] = row.row.refusal;
    rows.push_back(std::move(entry));
  }
  Json errors = Json::array();
  for (const auto& [what, count, mean, median] : errors_of(prediction)) {
    errors.push_back({{"what", what}, {"rows", count}, {"mean", mean}, {"median", median}});
  }
  return {{"rows", std::move(rows)},
          {"calibration", prediction.calibration},
          {"learned_from", prediction.learned_from},
          {"errors", std::move(errors)}};
}

void check(const PredictCommand& command, const std::vector<std::string>& devices) {
  if (devices.empty() || devices.size() > 2) {
    fail(ErrorCode::invalid_argument, "--device takes one device, or two to compare, not {}",
         devices.size());
  }
  if (devices.size() != command.tables.size()) {
    fail(ErrorCode::invalid_argument, "{} devices need as many tables, but --ops gives {}",
         devices.size(), command.tables.size());
  }
}

Prediction predict_one(System& system, const PredictCommand& command, const std::string& device,
                       const std::string& file) {
  constexpr std::uint64_t kMaxBytes = 64 << 20;
  const DeviceSlot slot = system.open(device);
  if (slot.info().is_host) {
    fail(ErrorCode::invalid_argument,
         "--device '{}': times are predicted for GPUs alone, such as "
         "virtual:t4",
         device);
  }
  const auto rows = gpu_model::parse_op_table(read_file(file, kMaxBytes), file);
  return predict(slot.info(), rows, command.calibrate_with, command.leave_out);
}

void run(const PredictCommand& command) {
  const std::vector<std::string> devices = split_list(command.devices);
  check(command, devices);
  System system;
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    predictions.push_back(predict_one(system, command, devices[i], command.tables[i]));
    print(devices[i], predictions.back(), command.quiet);
  }
  Json json = to_json(predictions[0]);
  if (predictions.size() == 2) {
    const gpu_model::Decisions decisions = decisions_of(predictions[0], predictions[1]);
    fmt::print(
        "which of the two is faster: {:.1f} % right, {} of {} shapes; {} more are within a "
        "factor of 0.8 to 1.25\n",
        decisions.accuracy() * 100, decisions.right, decisions.counted, decisions.close);
    json["other"] = to_json(predictions[1]);
    json["decisions"] = {{"accuracy", decisions.accuracy()},
                         {"right", decisions.right},
                         {"counted", decisions.counted},
                         {"close", decisions.close}};
  }
  if (!command.json.empty()) {
    const std::string text = json.dump(1) + "\n";
    write_text(command.json, text);
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "predict", "Times of GEMM and convolutions on a GPU that is known by its spec sheet alone");
  auto options = std::make_shared<PredictCommand>();
  command
      ->add_option("--device", options->devices, "e.g. virtual:t4; two, comma between, to compare")
      ->required();
  command
      ->add_option("--ops", options->tables,
                   "CSV table of ops, in DeepBench's form; one for each device")
      ->required()
      ->delimiter(',');
  command->add_option("--calibrate-with", options->calibrate_with,
                      "this many rows, chosen from the shapes, count as measured and correct the "
                      "others");
  command->add_option("--leave-out", options->leave_out,
                      "learn nothing from the published tables of this device (v100, p100, mi25); "
                      "a device's own are always left out");
  command->add_flag("--quiet", options->quiet, "print the errors only");
  command->add_option("--json", options->json, "write rows, calibration and errors to this file");
  command->callback([options] { run(*options); });
}

}  // namespace turnout::tools
