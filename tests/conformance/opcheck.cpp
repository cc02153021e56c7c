// Every case of tests/cases on one device, against the references.
//
//   opcheck DEVICE [--cases FOLDER] [--only TEXT] [--seconds N] [--json FILE]
//
// --only: cases whose "file:line" or text holds TEXT. --seconds: no case is begun after that, and
// those left out are counted. Exit code 1 when a case failed, 2 for wrong use.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "ops/all_ops.hpp"
#include "runtime/io/file.hpp"
#include "runtime/system.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/device_node.hpp"
#include "tests/support/host_device.hpp"

namespace turnout {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string device, cases = cases_folder(), only, json;
  double seconds = 1e9;
};

struct Failure {
  std::string where, why;
};

struct Result {
  int ran = 0, left_out = 0;
  std::map<std::string, std::map<std::string, int>> refused;  // op -> reason -> cases
  std::vector<Failure> failures;
  int refused_cases() const {
    int sum = 0;
    for (const auto& [op, reasons] : refused) {
      for (const auto& [reason, count] : reasons) sum += count;
    }
    return sum;
  }
};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Tensor> run_on(const DeviceSlot& slot, const KernelEntry& entry, const Case& test) {
  const NodeInfo info = test.graph.info(NodeId{0});
  const auto kernel = entry.prepare({info, *slot.device, slot.threads, {}, false});
  kernel->cost = cost_of(info);
  kernel->dtype = info.output(0).dtype;
  test::DeviceNode node{*slot.device, *kernel, info, {}};
  return node.run(test.inputs);
}

void check(const DeviceSlot& slot, const Case& test, Result& result) {
  const NodeInfo info = test.graph.info(NodeId{0});
  if (info.op->view || info.op->spec_only || info.op->decompose != nullptr) return;
  const auto selection = slot.kernels->select(info, slot.info(), slot.providers);
  if (selection.entry == nullptr) {
    std::string why = "no kernel";
    if (!selection.refusals.empty()) why = selection.refusals.back().reason;
    ++result.refused[test.op][why];
    return;
  }
  ++result.ran;
  std::string why;
  try {
    const std::vector<Tensor> got = run_on(slot, *selection.entry, test);
    const std::vector<Tensor> want = reference_outputs(test);
    for (std::size_t i = 0; i < want.size() && why.empty(); ++i) {
      why = test::difference(got[i], want[i], tolerance_of(info, want[i].dtype()));
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    why = error.what();
  }
  if (why.empty()) return;
  result.failures.push_back({test.where + ": " + test.text, why});
  fmt::print("FAILED {}: {}: {}\n  opcheck {} --only '{}'\n", test.where, test.text, why,
             slot.label, test.where);
}

Result check_all(const DeviceSlot& slot, const Options& options) {
  Result result;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& file : files_in(options.cases)) {
    for (const RandomData data : {RandomData::inputs, RandomData::known_after_first}) {
      for (const Case& test : read_cases(file, all_ops(), data)) {
        const bool wanted = (test.where + ": " + test.text).find(options.only) != std::string::npos;
        if (!wanted) continue;
        const double used =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (used > options.seconds) {
          ++result.left_out;
        } else {
          check(slot, test, result);
        }
      }
    }
  }
  return result;
}

void report(const DeviceSlot& slot, const Result& result, const Options& options) {
  for (const auto& [op, reasons] : result.refused) {
    for (const auto& [reason, count] : reasons) {
      fmt::print("refused {} ({}): {}\n", op, count, reason);
    }
  }
  fmt::print("{}: {}{}: {} cases ran, {} failed, {} refused with a reason, {} left out for time\n",
             slot.label, slot.info().title, slot.info().is_virtual ? " (virtual)" : "", result.ran,
             result.failures.size(), result.refused_cases(), result.left_out);
  if (options.json.empty()) return;
  Json failures = Json::array();
  for (const Failure& f : result.failures) failures.push_back({{"case", f.where}, {"why", f.why}});
  const Json json = {
      {"device", slot.label}, {"title", slot.info().title},  {"virtual", slot.info().is_virtual},
      {"ran", result.ran},    {"left_out", result.left_out}, {"refused", result.refused},
      {"failures", failures}};
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string_view parts[] = {text};
  write_file(options.json, parts);
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--cases" && more) {
      options.cases = argv[++i];
    } else if (word == "--only" && more) {
      options.only = argv[++i];
    } else if (word == "--json" && more) {
      options.json = argv[++i];
    } else if (word == "--seconds" && more) {
      options.seconds = std::atof(argv[++i]);
    } else if (word[0] != '-' && options.device.empty()) {
      options.device = word;
    } else {
      return false;
    }
  }
  return !options.device.empty();
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(
        stderr,
        "usage: opcheck DEVICE [--cases FOLDER] [--only TEXT] [--seconds N] [--json FILE]\n");
    return 2;
  }
  System system;
  const DeviceSlot slot = system.open(options.device);
  if (slot.info().is_host) {
    fail(ErrorCode::invalid_argument, "'{}' is the host: its kernels are checked by the unit tests",
         options.device);
  }
  const Result result = check_all(slot, options);
  report(slot, result, options);
  if (result.ran == 0) fail(ErrorCode::not_found, "no case ran");
  return result.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace turnout

int main(int argc, char** argv) {
  try {
    return turnout::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "opcheck: {}\n", error.what());
    return 1;
  }
}
