#include "runtime/onnx/verify.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/io/tensor_pb.hpp"
#include "runtime/onnx/import.hpp"

namespace turnout {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

// input_0.pb, input_1.pb, ... as far as they go.
std::vector<std::filesystem::path> numbered(const std::filesystem::path& folder,
                                            std::string_view stem) {
  std::vector<std::filesystem::path> files;
  for (int i = 0;; ++i) {
    auto file = folder / fmt::format("{}_{}.pb", stem, i);
    if (!std::filesystem::exists(file)) return files;
    files.push_back(std::move(file));
  }
}

std::vector<std::filesystem::path> data_sets(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("test_data_set_")) {
      result.push_back(entry.path());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<Tensor> load_all(const std::filesystem::path& folder, std::string_view stem) {
  std::vector<Tensor> tensors;
  for (const auto& file : numbered(folder, stem)) tensors.push_back(load_tensor_pb(file));
  return tensors;
}

// Given inputs that the graph still has, in its order.
std::vector<Tensor> inputs_of(const Graph& graph, const std::vector<std::string>& names,
                              const std::vector<Tensor>& given) {
  std::vector<Tensor> inputs;
  for (ValueId id : graph.inputs()) {
    const auto at = std::find(names.begin(), names.end(), graph.value(id).name);
    inputs.push_back(given[static_cast<std::size_t>(at - names.begin())]);
  }
  return inputs;
}

void verify_data_set(const std::filesystem::path& model, const std::filesystem::path& folder,
                     const RunGraph& run, VerifyResult& result) {
  const std::vector<std::string> names = onnx_input_names(model);
  const std::vector<Tensor> given = load_all(folder, "input");
  if (given.size() != names.size()) {
    fail(ErrorCode::invalid_argument, "{} input files for {} inputs", given.size(), names.size());
  }
  NamedTensors by_name;
  for (std::size_t i = 0; i < names.size(); ++i) by_name.emplace(names[i], given[i]);
  const Graph graph = import_onnx_for(model, by_name);
  const std::vector<Tensor> inputs = inputs_of(graph, names, given);
  const std::vector<Tensor> expected = load_all(folder, "output");
  const std::vector<Tensor> outputs = run(graph, inputs);
  if (outputs.size() != expected.size()) {
    fail(ErrorCode::invalid_argument, "{} outputs, {} expected", outputs.size(), expected.size());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string text = difference(outputs[i], expected[i], kRelative, kAbsolute);
    if (text.empty()) continue;
    result = {VerifyResult::Status::failed,
              fmt::format("output '{}': {}", graph.output_names()[i], text)};
    return;
  }
}

}  // namespace

VerifyResult verify_onnx(const std::filesystem::path& folder, const RunGraph& run) {
  using Status = VerifyResult::Status;
  VerifyResult result;
  try {
    const auto model = folder / "model.onnx";
    if (!std::filesystem::exists(model)) {
      fail(ErrorCode::not_found, "there is no '{}'", model.string());
    }
    const auto sets = data_sets(folder);
    if (sets.empty()) fail(ErrorCode::not_found, "there is no test_data_set_0");
    for (const auto& set : sets) {
      verify_data_set(model, set, run, result);
      if (result.status != Status::passed) break;
    }
  } catch (const Error& error) {
    const bool unsupported = error.code() == ErrorCode::unsupported;
    result = {unsupported ? Status::unsupported : Status::failed, error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    result = {Status::failed, error.what()};
  }
  return result;
}

Bindings bindings_from(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.size() != graph.inputs().size()) {
    fail(ErrorCode::invalid_argument, "{} tensors for {} inputs", inputs.size(),
         graph.inputs().size());
  }
  Bindings sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    const Shape& shape = inputs[i].shape();
    const auto refuse = [&](std::string_view what) {
      fail(ErrorCode::invalid_argument, "input '{}': {} given, {}", value.name,
           to_string(inputs[i].spec()), what);
    };
    if (inputs[i].dtype() != value.spec.dtype) {
      refuse(fmt::format("{} needed", to_string(value.spec.dtype)));
    }
    if (static_cast<std::size_t>(shape.rank()) != value.dims.size()) {
      refuse(fmt::format("{} dimensions needed", value.dims.size()));
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Dim& dim = value.dims[static_cast<std::size_t>(axis)];
      const std::int64_t wanted =
          dim.fixed() ? dim.size : sizes.emplace(dim.symbol, shape[axis]).first->second;
      if (wanted != shape[axis]) refuse(fmt::format("size {} needed at axis {}", wanted, axis));
    }
  }
  return sizes;
}

std::string difference(const Tensor& got, const Tensor& expected, double relative,
                       double absolute) {
  if (got.spec() != expected.spec()) {
    return fmt::format("{}, expected {}", to_string(got.spec()), to_string(expected.spec()));
  }
  if (!is_floating(got.dtype())) {
    relative = absolute = 0;  // below as double: exact up to 2^53, so compare bytes first
    const auto* a = static_cast<const std::byte*>(got.address());
    const auto* b = static_cast<const std::byte*>(expected.address());
    if (std::equal(a, a + got.bytes(), b)) return "";
  }
  const std::vector<double> x = to_double(got), y = to_double(expected);
  std::size_t worst = 0, wrong = 0;
  double most = -1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double excess = std::abs(x[i] - y[i]) - (absolute + relative * std::abs(y[i]));
    if (excess <= 0) continue;  // not so for NaN
    ++wrong;
    if (most < 0 || excess > most) worst = i;
    most = std::max(most, excess);
  }
  if (wrong == 0 && is_floating(got.dtype())) return "";
  return fmt::format("{} of {} elements differ, most at [{}]: {} instead of {}",
                     std::max<std::size_t>(wrong, 1), x.size(), worst, x[worst], y[worst]);
}

}  // namespace turnout
