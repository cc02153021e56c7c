// Loads a model, runs it, prints its plan: consumer_model MODEL.onnx BATCH [PROVIDER...]
#include <cstdio>
#include <cstdlib>
#include <turnout/turnout.hpp>

#include "core/graph.hpp"

static_assert(consumer::kOwnCore == 1);

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  auto system = std::make_shared<turnout::System>();
  const turnout::Graph model = turnout::import_onnx(std::filesystem::path(argv[1]));
  turnout::SessionOptions options;
  options.providers.assign(argv + 3, argv + argc);
  const turnout::CostModel costs = turnout::machine_costs(system, options.devices, 0);
  options.dims[turnout::batch_symbol_of(model)] = std::atoi(argv[2]);
  const turnout::Session session(system, model, costs, options);
  std::vector<turnout::Tensor> inputs;
  for (const auto& input : session.inputs()) {
    inputs.push_back(turnout::make_input(input.name, input.spec, nullptr, false));
  }
  const std::vector<turnout::Tensor> outputs = session.run(inputs);
  std::printf("output %s\n", turnout::to_string(outputs.at(0).spec()).c_str());
  std::printf("%s", to_text(turnout::explain(*system, model, costs, options, false), true).c_str());
}
