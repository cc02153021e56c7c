#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/onnx/import.hpp"
#include "runtime/report/compare.hpp"
#include "runtime/session.hpp"

namespace turnout::tools {

/// Options that run, plan and compare share: the model, its inputs and sizes, threads, providers.
struct ModelOptions {
  std::string model;
  std::vector<std::string> inputs;  ///< NAME=FILE
  std::vector<std::string> dims;    ///< NAME=SIZE
  std::vector<std::string> pins;    ///< NODE=DEVICE
  std::string providers;            ///< comma list
  std::string place = "plan";
  int threads = 0;
  bool no_fusion = false;
  bool no_history = false;
  std::string require_device;
  std::string weights = "resident";
  double expected_runs = 0;

  void add_to(CLI::App& command);
  void add_placement_to(CLI::App& command);
  void add_weights_to(CLI::App& command);

  /// The model and the given inputs that it still takes: those that decide shapes are constants of
  /// the graph. Error invalid_argument for an input the model doesn't have and for one that
  /// decides shapes and isn't given.
  std::pair<Graph, NamedTensors> load() const;
  /// What earlier runs measured, or nothing where that isn't wanted.
  std::shared_ptr<CostHistory> history(System& system) const;
  /// Everything but devices and batch.
  SessionOptions session() const;
};

/// "cpu" and the devices of every backend that aren't virtual.
std::vector<std::string> real_devices(System& system);

std::vector<std::string> split_list(const std::string& text);
/// "1,8,64", or "1..1024" for the powers of two in between, ends included. Error for anything else.
std::vector<std::int64_t> parse_batches(const std::string& text);
/// "LOW..HIGH" of batches, 1 <= LOW <= HIGH <= 2^20. Error for anything else.
std::pair<std::int64_t, std::int64_t> parse_range(const std::string& text);
/// "NAME=VALUE", split at the last '=' (ONNX names may hold any character).
std::pair<std::string, std::string> split_pair(const std::string& text, const char* option);
std::int64_t parse_size(const std::string& text, const std::string& what);

/// Sizes of symbols that follow from given inputs, where `dims` doesn't name them.
void bind_from_inputs(const Graph& model, const NamedTensors& inputs, Bindings& dims);

/// Writes a text file whole or not at all, making its folder.
void write_text(const std::string& path, const std::string& text);

}  // namespace turnout::tools
