// Every test folder of the onnx package, run by the ops' references. What isn't supported is listed
// with its reason in onnx_unsupported.txt, and nothing else may be: a listed test that passes is a
// failure too.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "runtime/onnx/verify.hpp"
#include "tests/support/interpret.hpp"

using namespace turnout;
namespace fs = std::filesystem;

namespace {

fs::path source_folder() {
  const char* source = std::getenv("TURNOUT_SOURCE");
  return source == nullptr ? fs::current_path() : fs::path(source);
}

// Where the onnx package keeps its test data: named by TURNOUT_ONNX_TESTS, or in the build's venv.
fs::path data_folder() {
  if (const char* given = std::getenv("TURNOUT_ONNX_TESTS")) return given;
  const fs::path lib = source_folder() / "build/venv/lib";
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(lib, none)) {
    const fs::path data = entry.path() / "site-packages/onnx/backend/test/data";
    if (fs::exists(data)) return data;
  }
  return {};
}

std::vector<fs::path> test_folders(const fs::path& data) {
  std::vector<fs::path> result;
  for (const char* group : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(data / group, none)) {
      if (fs::exists(entry.path() / "model.onnx")) result.push_back(entry.path());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

// "node/test_relu", as in the list.
std::string label_of(const fs::path& folder) {
  return (folder.parent_path().filename() / folder.filename()).string();
}

// Lines "= reason" begin a group; the other lines are its tests.
std::map<std::string, std::string> read_list(const fs::path& file) {
  std::map<std::string, std::string> result;
  std::ifstream stream(file);
  std::string line, reason;
  while (std::getline(stream, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("= ")) {
      reason = line.substr(2);
    } else {
      result[line] = reason;
    }
  }
  return result;
}

// The reason without the names of files, nodes and values, so that like tests come together.
std::string group_of(std::string reason) {
  for (const char* prefix : {"model '", "node '", "tensor '", "input '", "initializer '"}) {
    const std::string_view word(prefix);
    if (!reason.starts_with(word)) continue;
    reason.erase(0, reason.find('\'', word.size()) + 1);
    reason.erase(0, reason.starts_with(": ") ? 2 : 1);
  }
  if (reason.starts_with("model: ")) reason.erase(0, 7);
  const auto opset = reason.find(", opset ");
  if (opset != std::string::npos) reason.erase(opset, reason.find(')') - opset);
  return reason;
}

}  // namespace

TEST_CASE("ONNX test folders agree with the references", "[onnx]") {
  const fs::path data = data_folder();
  if (data.empty()) SKIP("the onnx package is not there; TURNOUT_ONNX_TESTS names its test data");
  const auto listed = read_list(source_folder() / "tests/conformance/onnx_unsupported.txt");
  const bool print = std::getenv("TURNOUT_ONNX_LIST") != nullptr;
  const char* only = std::getenv("TURNOUT_ONNX_ONLY");
  std::map<std::string, std::vector<std::string>> groups;
  std::set<std::string> seen;
  int passed = 0, failed = 0, unsupported = 0;
  for (const fs::path& folder : test_folders(data)) {
    const std::string label = label_of(folder);
    if (only != nullptr && label.find(only) == std::string::npos) continue;
    const VerifyResult result = verify_onnx(folder, interpret);
    const bool is_listed = listed.count(label) > 0;
    seen.insert(label);
    INFO("TURNOUT_ONNX_ONLY=" << label << " repeats it");
    if (result.status == VerifyResult::Status::passed) {
      ++passed;
      if (is_listed && !print) FAIL_CHECK(label << " is listed as unsupported, but passes");
    } else if (result.status == VerifyResult::Status::unsupported) {
      ++unsupported;
      groups[group_of(result.reason)].push_back(label);
      if (!is_listed && !print) FAIL_CHECK(label << ": not supported: " << result.reason);
    } else {
      ++failed;
      FAIL_CHECK(label << ": " << result.reason);
    }
  }
  if (print) {
    for (const auto& [reason, labels] : groups) {
      std::cout << "= " << reason << "\n";
      for (const std::string& label : labels) std::cout << label << "\n";
    }
  }
  for (const auto& [label, reason] : listed) {
    if (only == nullptr && seen.count(label) == 0) {
      FAIL_CHECK(label << " is listed as unsupported, but doesn't exist");
    }
  }
  std::cerr << passed << " passed, " << failed << " failed, " << unsupported << " unsupported\n";
  CHECK(passed > 0);
}
