// Owns Kokkos already: Turnout must neither initialize it again nor finalize it.
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <turnout/turnout.hpp>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  {
    turnout::GraphBuilder builder(turnout::all_ops(), "tanh");
    builder.output(builder.add("tanh", {builder.input("x", turnout::DType::f32, {1 << 20})}));
    turnout::SessionOptions options;
    options.providers = {"kokkos"};
    const turnout::Session session(std::make_shared<turnout::System>(), builder.build(),
                                   turnout::CostModel(), options);
    const turnout::Tensor input = turnout::Tensor::zeros(session.inputs()[0].spec);
    session.run({&input, 1});
  }
  double sum = 0;
  Kokkos::parallel_reduce(
      100, [](int i, double& partial) { partial += i; }, sum);
  std::printf("Kokkos is %s, sum %.0f\n", Kokkos::is_initialized() ? "alive" : "dead", sum);
  return Kokkos::is_initialized() && sum == 4950 ? 0 : 1;
}
