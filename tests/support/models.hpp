#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/graph.hpp"
#include "generated/turnout_config.hpp"
#include "ops/all_ops.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/session.hpp"

namespace turnout::testing {

/// Uniform in [-scale, scale], the same for the same seed.
inline Tensor random_tensor(const Shape& shape, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  Tensor tensor = Tensor::empty({DType::f32, shape});
  for (float& value : tensor.values<float>()) value = uniform(engine);
  return tensor;
}

/// CPU providers that together take every op: none named (the defaults) where Kokkos is built,
/// otherwise with the reference, which runs only where it is named.
inline std::vector<std::string> every_provider(System& system) {
  if (config::kHasKokkos) return {};
  const auto built = system.kernels(*system.backends().front()).providers();
  return {built.begin(), built.end()};
}

/// Rows "x" [N, sizes[0]] through products, biases and relus to "y"; softmax at the end.
inline Graph mlp(const std::vector<std::int64_t>& sizes) {
  GraphBuilder b(all_ops(), "mlp");
  ValueId x = b.input("x", DType::f32, {"N", sizes[0]});
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const auto seed = static_cast<unsigned>(i);
    const float scale = 1 / std::sqrt(static_cast<float>(sizes[i - 1]));
    const ValueId w = b.constant(random_tensor({sizes[i - 1], sizes[i]}, seed, scale));
    const ValueId bias = b.constant(random_tensor({sizes[i]}, seed + 100));
    x = b.add("add", {b.add("matmul", {x, w}, {}, "product" + std::to_string(i)), bias});
    x = i + 1 < sizes.size() ? b.add("relu", {x}) : b.add("softmax", {x});
  }
  b.output(x, "y");
  return b.build();
}

/// "x" [N,3,12,12] through two convolutions with batch normalization, a residual sum, a pool and a
/// product: every kind of fusion, and a fork.
inline Graph small_cnn() {
  GraphBuilder b(all_ops(), "small_cnn");
  const auto conv = [&](ValueId x, std::int64_t in, std::int64_t out, unsigned seed) {
    const ValueId w = b.constant(random_tensor({out, in, 3, 3}, seed, 0.3F));
    return b.add("conv", {x, w}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  };
  const auto normalized = [&](ValueId x, std::int64_t channels, unsigned seed) {
    Tensor variance = random_tensor({channels}, seed + 3);
    for (float& value : variance.values<float>()) value = value * value + 0.5F;
    return b.add("batch_normalization",
                 {x, b.constant(random_tensor({channels}, seed)),
                  b.constant(random_tensor({channels}, seed + 1)),
                  b.constant(random_tensor({channels}, seed + 2)), b.constant(variance)});
  };
  const ValueId x = b.input("x", DType::f32, {"N", 3, 12, 12});
  const ValueId a = b.add("relu", {normalized(conv(x, 3, 16, 1), 16, 10)}, {}, "first");
  const ValueId c = normalized(conv(a, 16, 16, 2), 16, 20);
  const ValueId sum = b.add("relu", {b.add("add", {c, a})}, {}, "second");
  const ValueId pooled = b.add("global_average_pool", {sum}, {}, "pool");
  const ValueId flat = b.add("flatten", {pooled});
  const ValueId y =
      b.add("matmul", {flat, b.constant(random_tensor({16, 5}, 30))}, {}, "classifier");
  b.output(b.add("sigmoid", {y}), "y");
  b.output(sum, "features");
  return b.build();
}

/// Runs a graph node by node with the references of its ops: the oracle of every plan.
inline std::vector<Tensor> run_reference(const Graph& model, const Bindings& dims,
                                         const std::vector<Tensor>& inputs) {
  const Graph graph = model.bind(dims);
  std::vector<Tensor> values(graph.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = graph.values()[i].known;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::vector<const Tensor*> operands;
    for (ValueId id : node.inputs) operands.push_back(id.valid() ? &values[id.index] : nullptr);
    const std::vector<Tensor> outputs = evaluate(graph.info(NodeId{n}), operands);
    for (std::size_t i = 0; i < outputs.size(); ++i) values[node.outputs[i].index] = outputs[i];
  }
  std::vector<Tensor> result;
  for (ValueId id : graph.outputs()) result.push_back(values[id.index]);
  return result;
}

/// Figures of a made-up CPU, so that plans don't depend on the machine the tests run on.
inline CpuProfile made_up_cpu(double flops = 100e9) {
  CpuProfile profile;
  for (const char* provider : {"onednn", "openblas", "kokkos"}) {
    profile.gemm[provider] = {{1e3, flops / 10}, {1e9, flops}};
    profile.gemv[provider] = {{1e3, 60e9}, {1e8, 60e9}};
  }
  profile.stream = {{1e4, 20e9}, {1e8, 10e9}};
  profile.dispatch_seconds = 2e-6;
  profile.evidence = Evidence::calibrated;
  profile.source = "made up for a test";
  return profile;
}

}  // namespace turnout::testing
