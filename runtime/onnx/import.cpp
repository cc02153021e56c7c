#include "runtime/onnx/import.hpp"

#include <algorithm>
#include <cctype>
#include <new>

#include "ops/all_ops.hpp"
#include "runtime/io/file.hpp"
#include "runtime/onnx/importer.hpp"
#include "runtime/onnx/proto.hpp"
#include "runtime/onnx/tensor_proto.hpp"

namespace turnout {
namespace onnx_import {
namespace {

constexpr std::int64_t kNodeLimit = 1 << 18;  // functions that call each other may grow without end
constexpr int kDepthLimit = 32;

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return fmt::format("{}\n{}\n{}", normal_domain(domain), name, overload);
}

std::map<std::string, std::int64_t, std::less<>> read_opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
    const std::string& where) {
  std::map<std::string, std::int64_t, std::less<>> result;
  for (const auto& entry : imports) result[normal_domain(entry.domain())] = entry.version();
  const auto at = result.find("");
  if (at == result.end()) return result;
  if (at->second < kOldestOpset || at->second > kNewestOpset) {
    fail(ErrorCode::unsupported, "{}: opset {} is not between {} and {}", where, at->second,
         kOldestOpset, kNewestOpset);
  }
  return result;
}

void check_name(const std::string& name, std::string_view what) {
  if (!is_clean_text(name)) {
    fail(ErrorCode::invalid_model, "the name of a {} is not readable text (UTF-8)", what);
  }
}

void check_tensor(const onnx::ValueInfoProto& input) {
  if (input.type().has_tensor_type()) return;
  fail(ErrorCode::unsupported,
       "input '{}' is not a tensor (a sequence, map, optional or sparse one)", input.name());
}

// Some exporters write "?" for every dimension they don't know: no name, since sizes may differ.
bool is_symbol(const std::string& name) {
  return std::any_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c >= 0x80; });
}

std::vector<Dim> declared_dims(const onnx::TensorShapeProto& shape, const std::string& input) {
  std::vector<Dim> dims;
  for (const auto& dim : shape.dim()) {
    if (is_symbol(dim.dim_param())) {
      check_name(dim.dim_param(), "dimension");
      dims.emplace_back(dim.dim_param());
    } else if (dim.has_dim_value() && dim.dim_value() < -1) {
      fail(ErrorCode::invalid_model, "input '{}': dimension {}", input, dim.dim_value());
    } else {
      dims.emplace_back(dim.has_dim_value() ? dim.dim_value() : std::int64_t{-1});
    }
  }
  return dims;
}

}  // namespace

ModelImporter::ModelImporter(const onnx::ModelProto& model, std::filesystem::path directory,
                             const ImportOptions& options)
    : model_(model),
      directory_(std::move(directory)),
      options_(options),
      target_(all_ops(), model.graph().name()) {}

Graph ModelImporter::run() {
  if (!model_.has_graph()) fail(ErrorCode::invalid_model, "the model has no graph");
  const onnx::GraphProto& graph = model_.graph();
  check_name(graph.name(), "graph");
  const Opsets opsets = read_opsets(model_.opset_import(), "model");
  if (opsets.empty()) fail(ErrorCode::invalid_model, "the model imports no opset");
  for (const auto& function : model_.functions()) {
    functions_[function_key(function.domain(), function.name(), function.overload())] = &function;
  }
  reserve_names(graph);
  Scope scope;
  import_initializers(graph, scope);
  import_inputs(graph, scope);
  import_nodes(graph.node(), scope, opsets, "graph");
  if (graph.output_size() == 0) fail(ErrorCode::invalid_model, "the graph has no output");
  for (const auto& output : graph.output()) {
    const auto id = scope.find(output.name());
    if (!id) fail(ErrorCode::invalid_model, "output '{}' is never computed", output.name());
    target_.builder().output(*id, output.name());
  }
  return target_.builder().build();
}

void ModelImporter::reserve_names(const onnx::GraphProto& graph, int depth) {
  if (depth > kDepthLimit) fail(ErrorCode::unsupported, "subgraphs too deep");
  for (const auto& input : graph.input()) target_.reserve_value(input.name());
  for (const auto& initializer : graph.initializer()) target_.reserve_value(initializer.name());
  for (const auto& output : graph.output()) ++reads_[output.name()];
  for (const auto& node : graph.node()) {
    check_name(node.name(), "node");
    check_name(node.op_type(), "node's op");
    check_name(node.domain(), "node's domain");
    for (const std::string& input : node.input()) ++reads_[input];
    for (const std::string& output : node.output()) {
      check_name(output, "value");
      target_.reserve_value(output);
    }
    for (const auto& attr : node.attribute()) {
      check_name(attr.name(), "node's attribute");
      if (attr.has_g()) reserve_names(attr.g(), depth + 1);
    }
  }
}

void ModelImporter::define(Scope& scope, const std::string& name, ValueId id) const {
  if (name.empty()) fail(ErrorCode::invalid_model, "a graph input or initializer has no name");
  if (!scope.values.emplace(name, id).second) {
    fail(ErrorCode::invalid_model, "value '{}' is defined twice", name);
  }
}

void ModelImporter::import_initializers(const onnx::GraphProto& graph, Scope& scope) {
  if (graph.sparse_initializer_size() > 0) {
    fail(ErrorCode::unsupported, "sparse initializers are not supported");
  }
  for (const auto& initializer : graph.initializer()) {
    const std::string& name = initializer.name();
    check_name(name, "initializer");
    Tensor tensor = to_tensor(initializer, directory_, fmt::format("initializer '{}'", name));
    define(scope, name, target_.constant(std::move(tensor), scope.prefix + name));
  }
}

void ModelImporter::import_inputs(const onnx::GraphProto& graph, Scope& scope) {
  std::set<std::string> seen;
  for (const auto& input : graph.input()) {
    check_name(input.name(), "input");
    if (!seen.insert(input.name()).second) {
      fail(ErrorCode::invalid_model, "input '{}' is defined twice", input.name());
    }
    const auto given = options_.constants.find(input.name());
    if (scope.values.count(input.name()) > 0) continue;  // an initializer: constant
    if (given != options_.constants.end()) {
      define(scope, input.name(), target_.constant(given->second, input.name()));
    } else {
      import_input(input, scope);
    }
  }
}

void ModelImporter::import_input(const onnx::ValueInfoProto& input, Scope& scope) {
  check_tensor(input);
  const auto& type = input.type().tensor_type();
  const auto dtype = dtype_of_onnx(type.elem_type());
  if (!dtype) {
    fail(ErrorCode::unsupported, "input '{}': elements of type {} are not supported", input.name(),
         onnx_dtype_name(type.elem_type()));
  }
  if (!type.has_shape()) {
    fail(ErrorCode::unsupported, "input '{}': its number of dimensions is not given", input.name());
  }
  define(scope, input.name(),
         target_.input(input.name(), *dtype, declared_dims(type.shape(), input.name())));
}

void ModelImporter::import_nodes(const Nodes& nodes, Scope& scope, const Opsets& opsets,
                                 const std::string& where) {
  for (const onnx::NodeProto* node : sorted_nodes(nodes, where)) import_node(*node, scope, opsets);
}

std::vector<ValueId> ModelImporter::resolve_inputs(const onnx::NodeProto& node,
                                                   const std::string& name,
                                                   const Scope& scope) const {
  std::vector<ValueId> inputs;
  for (const std::string& input : node.input()) {
    const auto id = input.empty() ? ValueId{} : scope.find(input);
    if (!id) {
      fail(ErrorCode::invalid_model, "node '{}': input '{}' is not defined", name, input);
    }
    inputs.push_back(*id);
  }
  return inputs;
}

// Outputs that something reads; others at the end are left out, others inside are empty.
std::vector<std::string> ModelImporter::output_names(const onnx::NodeProto& node,
                                                     const Scope& scope) {
  std::vector<std::string> names;
  for (const std::string& output : node.output()) {
    const bool first = names.empty();
    const bool is_read = first || !scope.prefix.empty() || reads_.count(output) > 0;
    const bool is_named = !output.empty() && is_read;
    names.push_back(!is_named              ? ""
                    : scope.prefix.empty() ? output
                                           : target_.fresh_value(scope.prefix + output));
  }
  while (names.size() > 1 && names.back().empty()) names.pop_back();
  return names;
}

void ModelImporter::import_node(const onnx::NodeProto& node, Scope& scope, const Opsets& opsets) {
  const std::string label = label_of(node);
  if (node.op_type().empty()) fail(ErrorCode::invalid_model, "node '{}' has no op", label);
  if (++nodes_ > kNodeLimit) fail(ErrorCode::unsupported, "more than {} nodes", kNodeLimit);
  const std::string domain = normal_domain(node.domain());
  const auto opset = opsets.find(domain);
  const std::vector<ValueId> inputs = resolve_inputs(node, label, scope);
  const std::vector<std::string> outputs = output_names(node, scope);
  const std::string name =
      target_.fresh_node(node.name().empty() ? scope.prefix + label : scope.prefix + node.name());
  if (const onnx::FunctionProto* function = find_function(node)) {
    inline_function(*function, node, name, inputs, outputs, scope);
    return;
  }
  if (opset == opsets.end()) {
    fail(ErrorCode::invalid_model, "node '{}': op '{}' is of domain '{}', which isn't imported",
         name, node.op_type(), domain);
  }
  const Conversion* conversion = domain.empty() ? find_conversion(node.op_type()) : nullptr;
  const Conversion none{};
  OnnxNode converted(target_, node, conversion ? *conversion : none, opset->second, name, inputs,
                     outputs);
  converted.set_import_subgraph(
      [&](const onnx::GraphProto& graph) { return import_subgraph(graph, scope, opsets); });
  if (conversion == nullptr) converted.unsupported("");
  if (!conversion->refusal.empty()) converted.unsupported(conversion->refusal);
  try {
    conversion->convert != nullptr ? conversion->convert(converted) : converted.finish(inputs);
  } catch (const Error& error) {  // of the GraphBuilder
    if (error.code() != ErrorCode::invalid_argument) throw;
    converted.invalid(error.what());
  }
  converted.check_complete();
  for (int i = 0; i < node.output_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (index >= outputs.size() || outputs[index].empty()) continue;
    define(scope, node.output(i), converted.results()[index]);
  }
}

std::vector<ValueId> ModelImporter::import_subgraph(const onnx::GraphProto& graph,
                                                    const Scope& outer, const Opsets& opsets) {
  if (++depth_ > kDepthLimit) fail(ErrorCode::unsupported, "subgraphs too deep");
  Scope scope{&outer, outer.prefix, {}};
  import_initializers(graph, scope);
  import_nodes(graph.node(), scope, opsets, fmt::format("subgraph '{}'", graph.name()));
  std::vector<ValueId> outputs;
  for (const auto& output : graph.output()) {
    const auto id = scope.find(output.name());
    if (!id) fail(ErrorCode::invalid_model, "output '{}' is never computed", output.name());
    outputs.push_back(*id);
  }
  --depth_;
  return outputs;
}

const onnx::FunctionProto* ModelImporter::find_function(const onnx::NodeProto& node) const {
  const auto at = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return at == functions_.end() ? nullptr : at->second;
}

void ModelImporter::inline_function(const onnx::FunctionProto& function,
                                    const onnx::NodeProto& call, const std::string& name,
                                    const std::vector<ValueId>& inputs,
                                    const std::vector<std::string>& outputs, Scope& scope) {
  if (++depth_ > kDepthLimit) {
    fail(ErrorCode::unsupported, "node '{}': functions call each other too deep", name);
  }
  const onnx::FunctionProto body = instantiate(function, call);
  Scope inside{nullptr, name + "/", {}};
  for (int i = 0; i < body.input_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    define(inside, body.input(i), index < inputs.size() ? inputs[index] : ValueId{});
  }
  const std::string where = fmt::format("function '{}'", body.name());
  import_nodes(body.node(), inside, read_opsets(body.opset_import(), where), where);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    const int index = static_cast<int>(i);
    const auto id = index < body.output_size() ? inside.find(body.output(index)) : std::nullopt;
    if (!id || !id->valid()) {
      fail(ErrorCode::invalid_model, "node '{}': {} gives no output {}", name, where, i);
    }
    const std::string node_name = i == 0 ? name : target_.fresh_node(fmt::format("{}/{}", name, i));
    const OpDef& identity = target_.builder().ops().get("identity");
    define(scope, call.output(index),
           target_.add(identity, {*id}, {}, node_name, {&outputs[i], 1})[0]);
  }
  --depth_;
}

}  // namespace onnx_import

namespace {

Graph import_model(std::string bytes, const std::filesystem::path& directory,
                   const ImportOptions& options, const std::string& what) {
  try {
    onnx::ModelProto model;
    parse_proto(bytes, model, what);
    std::string().swap(bytes);
    return onnx_import::ModelImporter(model, directory, options).run();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(what)) throw;
    throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: no memory to import it", what);
  }
}

}  // namespace

Graph import_onnx(const std::filesystem::path& file, const ImportOptions& options) {
  return import_model(read_file(file, kProtoLimit), std::filesystem::absolute(file).parent_path(),
                      options, fmt::format("model '{}'", file.string()));
}

Graph import_onnx(std::string_view bytes, const std::filesystem::path& base_directory,
                  const ImportOptions& options) {
  if (bytes.size() > kProtoLimit) {
    fail(ErrorCode::invalid_model, "model of {} bytes: above the limit of 2 GiB", bytes.size());
  }
  return import_model(std::string(bytes), base_directory, options, "model");
}

std::vector<std::string> onnx_input_names(const std::filesystem::path& file) {
  onnx::ModelProto model;
  parse_proto(read_file(file, kProtoLimit), model, fmt::format("model '{}'", file.string()));
  std::set<std::string_view> initializers;
  for (const auto& initializer : model.graph().initializer()) {
    initializers.insert(initializer.name());
  }
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) {
    if (initializers.count(input.name()) > 0) continue;
    onnx_import::check_tensor(input);
    names.push_back(input.name());
  }
  return names;
}

}  // namespace turnout
