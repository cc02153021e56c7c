// Builds a graph, binds two batch sizes, prints both plans and runs from two threads.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <turnout/turnout.hpp>

using turnout::Tensor;

int main() {
  const turnout::OpRegistry& ops = turnout::all_ops();
  turnout::GraphBuilder builder(ops, "two_layers");
  const turnout::ValueId x = builder.input("x", turnout::DType::f32, {"N", 3});
  const Tensor weights = Tensor::of<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor bias = Tensor::of<float>({2}, std::vector<float>{-10, 1});
  const turnout::ValueId product = builder.add("matmul", {x, builder.constant(weights)});
  const turnout::ValueId sum = builder.add("add", {product, builder.constant(bias)});
  builder.output(builder.add("relu", {sum}), "y");
  const turnout::Graph model = builder.build();

  auto system = std::make_shared<turnout::System>();
  const turnout::CostModel costs(turnout::cpu_profile(system, 0));
  std::atomic<int> wrong = 0;
  for (const std::int64_t batch : {1, 64}) {
    turnout::SessionOptions options;
    options.dims["N"] = batch;
    options.contexts = 2;
    const turnout::Session session(system, model, costs, options);
    std::printf("batch %d\n%s", static_cast<int>(batch),
                to_text(turnout::explain(*system, model, costs, options, false), true).c_str());
    const auto work = [&](float value) {
      const std::vector<float> rows(static_cast<std::size_t>(batch * 3), value);
      const Tensor input = Tensor::of<float>({batch, 3}, rows);
      for (int run = 0; run < 100; ++run) {
        const std::vector<Tensor> outputs = session.run({&input, 1});
        const auto y = outputs[0].values<const float>();
        // value * (1 + 3 + 5) - 10 and value * (2 + 4 + 6) + 1
        if (std::abs(y[0] - std::fmax(0, 9 * value - 10)) > 1e-4F) ++wrong;
        if (std::abs(y[1] - (12 * value + 1)) > 1e-4F) ++wrong;
      }
    };
    std::thread other(work, 3.0F);
    work(2.0F);
    other.join();
  }
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
