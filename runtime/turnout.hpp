#pragma once

/// Everything a program that embeds Turnout needs:
///
///   auto system = std::make_shared<turnout::System>();
///   turnout::Graph model = turnout::import_onnx("model.onnx");
///   turnout::SessionOptions options;
///   options.dims["N"] = 8;
///   options.devices = {"cpu", "virtual:h100"};
///   turnout::CostModel costs = turnout::machine_costs(system, options.devices, 0);
///   turnout::Session session(system, model, costs, options);
///   std::vector<turnout::Tensor> outputs = session.run(inputs);
///   std::string why = turnout::to_text(turnout::explain(*system, model, costs, options, true),
///   true);

#include "core/error.hpp"
#include "core/graph.hpp"
#include "core/tensor.hpp"
#include "ops/all_ops.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/cost/cpu_probe.hpp"
#include "runtime/io/npy.hpp"
#include "runtime/onnx/import.hpp"
#include "runtime/plan/explain.hpp"
#include "runtime/report/compare.hpp"
#include "runtime/session.hpp"
#include "runtime/system.hpp"
