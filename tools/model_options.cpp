#include "tools/model_options.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/io/file.hpp"
#include "runtime/io/npy.hpp"
#include "runtime/io/tensor_pb.hpp"
#include "runtime/onnx/import.hpp"

namespace turnout::tools {
namespace {

void check_input_names(const std::string& model, const std::vector<std::string>& names,
                       const NamedTensors& given) {
  for (const auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    fail(ErrorCode::invalid_argument, "model '{}' has no input '{}'; it has: {}", model, name,
         fmt::join(names, ", "));
  }
}

}  // namespace

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("model", model, "ONNX file")->required();
  command.add_option("--input", inputs, "NAME=FILE.npy or FILE.pb; may be given several times");
  command.add_option("--dim", dims,
                     "NAME=SIZE of a symbolic dimension; may be given several times");
  command.add_option("--providers", providers,
                     "the only CPU providers allowed, best first, e.g. openblas,kokkos");
  command.add_option("--threads", threads, "threads of the CPU (default: every core)")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--no-history", no_history,
                   "plan without the times that earlier runs measured, and keep none");
}

void ModelOptions::add_placement_to(CLI::App& command) {
  command.add_option("--pin", pins, "NODE=DEVICE; may be given several times");
  command.add_option("--place", place, "plan, or alternate: every node changes device (for tests)")
      ->check(CLI::IsMember({"plan", "alternate"}));
  command.add_option("--require-device", require_device,
                     "fail, with the reasons, unless every node runs on this device");
  command.add_flag("--no-fusion", no_fusion, "keep the model's nodes as they are");
}

std::shared_ptr<CostHistory> ModelOptions::history(System& system) const {
  return no_history ? std::make_shared<CostHistory>() : kept_history(system);
}

void ModelOptions::add_weights_to(CLI::App& command) {
  command.add_option("--weights", weights, "resident on the device, or streamed: copied each run")
      ->check(CLI::IsMember({"resident", "streamed"}));
  command
      .add_option("--expected-runs", expected_runs,
                  "a run bears one upload of resident weights divided by this (default: none)")
      ->check(CLI::Range(1.0, 1e18));
}

std::pair<Graph, NamedTensors> ModelOptions::load() const {
  NamedTensors given;
  for (const std::string& text : inputs) {
    const auto [name, file] = split_pair(text, "--input");
    const bool is_pb = std::filesystem::path(file).extension() == ".pb";
    given[name] = is_pb ? load_tensor_pb(file) : load_npy(file);
  }
  Graph graph = import_onnx_for(model, given);
  if (!given.empty()) check_input_names(graph.name(), onnx_input_names(model), given);
  const std::vector<std::string> missing = shape_deciding_inputs(graph);
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument,
         "model '{}': shapes depend on the value of input '{}': give it with --input {}=FILE",
         graph.name(), missing.front(), missing.front());
  }
  std::erase_if(given, [&](const auto& entry) {
    return std::none_of(graph.inputs().begin(), graph.inputs().end(),
                        [&](ValueId id) { return graph.value(id).name == entry.first; });
  });
  return {std::move(graph), std::move(given)};
}

SessionOptions ModelOptions::session() const {
  SessionOptions options;
  for (const std::string& text : dims) {
    const auto [name, size] = split_pair(text, "--dim");
    options.dims[name] = parse_size(size, "--dim " + name);
  }
  for (const std::string& text : pins) {
    const auto [node, device] = split_pair(text, "--pin");
    options.pins[node] = device;
  }
  if (!providers.empty()) options.providers = split_list(providers);
  options.alternate = place == "alternate";
  options.threads = threads;
  options.fuse = !no_fusion;
  options.weights = {weights == "streamed", expected_runs};
  if (options.weights.streamed && expected_runs > 0) {
    fail(ErrorCode::invalid_argument,
         "--expected-runs goes with resident weights: streamed ones are copied at every run");
  }
  return options;
}

std::vector<std::string> real_devices(System& system) {
  std::vector<std::string> labels;
  for (const auto& backend : system.backends()) {
    if (backend->name() == "virtual") continue;
    for (const std::string& name : backend->device_names()) labels.push_back(name);
  }
  return labels;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(',', begin);
    result.push_back(text.substr(begin, end - begin));
    if (result.back().empty()) {
      fail(ErrorCode::invalid_argument, "empty element in the list '{}'", text);
    }
    if (end == std::string::npos) return result;
    begin = end + 1;
  }
}

std::int64_t parse_size(const std::string& text, const std::string& what) {
  constexpr std::int64_t kMax = std::int64_t{1} << 31;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMax) {
    fail(ErrorCode::invalid_argument, "{}: '{}' is not a size", what, text);
  }
  return value;
}

std::vector<std::int64_t> parse_batches(const std::string& text) {
  const auto positive = [&](const std::string& number) {
    const std::int64_t value = parse_size(number, "--batch");
    if (value == 0) fail(ErrorCode::invalid_argument, "--batch: 0 is not a batch");
    return value;
  };
  const std::size_t dots = text.find("..");
  std::vector<std::int64_t> result;
  if (dots == std::string::npos) {
    for (const std::string& number : split_list(text)) result.push_back(positive(number));
    return result;
  }
  const std::int64_t first = positive(text.substr(0, dots));
  const std::int64_t last = positive(text.substr(dots + 2));
  if (last < first) fail(ErrorCode::invalid_argument, "--batch: '{}' runs backwards", text);
  result.push_back(first);
  for (std::int64_t power = 1; power <= last; power *= 2) {
    if (power > first) result.push_back(power);
  }
  if (result.back() != last) result.push_back(last);
  return result;
}

std::pair<std::int64_t, std::int64_t> parse_range(const std::string& text) {
  constexpr std::int64_t kMaxBatch = std::int64_t{1} << 20;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    fail(ErrorCode::invalid_argument, "--batch: '{}' isn't LOW..HIGH", text);
  }
  const std::int64_t first = parse_size(text.substr(0, dots), "--batch");
  const std::int64_t last = parse_size(text.substr(dots + 2), "--batch");
  if (first < 1 || last < first || last > kMaxBatch) {
    fail(ErrorCode::invalid_argument, "--batch: '{}' needs 1 <= LOW <= HIGH <= {}", text,
         kMaxBatch);
  }
  return {first, last};
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* option) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    fail(ErrorCode::invalid_argument, "{} '{}' isn't NAME=VALUE", option, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

void bind_from_inputs(const Graph& model, const NamedTensors& inputs, Bindings& dims) {
  for (ValueId id : model.inputs()) {
    const Value& value = model.value(id);
    const auto given = inputs.find(value.name);
    if (given == inputs.end()) continue;
    const Shape& shape = given->second.shape();
    if (shape.rank() != static_cast<int>(value.dims.size())) {
      fail(ErrorCode::invalid_argument, "input '{}' has to have {} dimensions, given: {}",
           value.name, value.dims.size(), to_string(given->second.spec()));
    }
    for (std::size_t i = 0; i < value.dims.size(); ++i) {
      if (!value.dims[i].fixed())
        dims.try_emplace(value.dims[i].symbol, shape[static_cast<int>(i)]);
    }
  }
}

void write_text(const std::string& path, const std::string& text) {
  const std::filesystem::path file(path);
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  const std::string_view parts[] = {text};
  write_file(file, parts);
}

}  // namespace turnout::tools
