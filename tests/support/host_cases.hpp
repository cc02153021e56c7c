#pragma once

#include <cstdlib>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/host_device.hpp"

// Drives tests/cases/*.txt through the kernels of one provider of the host.
namespace turnout::test {

/// A case with its graph and data.
class HostCase {
 public:
  explicit HostCase(Case one) : case_(std::move(one)) {}

  const std::string& line() const { return case_.text; }
  NodeInfo info() const { return case_.graph.info(NodeId{0}); }
  const std::vector<Tensor>& inputs() const { return case_.inputs; }

  std::vector<Tensor> reference() const { return evaluate(info(), pointers(case_.inputs)); }

  void check(const std::vector<Tensor>& got, const std::vector<Tensor>& want) const {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(difference(got[i], want[i], tolerance_of(info(), want[i].dtype())) == "");
    }
  }

 private:
  Case case_;
};

inline RandomData data_of(bool known) {
  return known ? RandomData::known_after_first : RandomData::inputs;
}

/// `known`: inputs after the first one are constants of the graph.
inline std::vector<HostCase> load_host_cases(const std::string& op, bool known) {
  const char* source = std::getenv("TURNOUT_SOURCE");
  std::vector<HostCase> cases;
  const std::string folder = std::string(source != nullptr ? source : ".") + "/tests/cases/";
  for (Case& one : read_cases(folder + op + ".txt", all_ops(), data_of(known))) {
    cases.emplace_back(std::move(one));
  }
  return cases;
}

inline HostCase parse_host_case(std::string_view line, bool known) {
  return HostCase(parse_case(std::string(line), "test", all_ops(), data_of(known)));
}

/// Runs every case of an op that the provider takes: with weights known and not, on one and two
/// threads, with plain layouts and with those the kernel chooses. Gives their number.
inline int check_provider(Host& host, const std::string& provider, const std::string& op) {
  int taken = 0;
  for (const bool known : {true, false}) {
    for (const HostCase& one : load_host_cases(op, known)) {
      const NodeInfo info = one.info();
      const KernelEntry* entry = host.find(info, provider);
      if (entry == nullptr) continue;
      const auto want = one.reference();
      for (const int threads : {1, 2}) {
        for (const bool may_choose : {false, true}) {
          INFO(one.line() << "\n  weights " << (known ? "known" : "not known") << ", threads "
                          << threads << (may_choose ? ", layouts chosen" : ", plain"));
          const HostNode node(host, info, *entry, threads, may_choose);
          one.check(node.run(one.inputs()), want);
        }
      }
      taken += known ? 1 : 0;
    }
  }
  return taken;
}

/// Four threads run one prepared kernel at the same time, each with data of its own.
inline void check_concurrent(Host& host, const std::string& provider, const HostCase& one) {
  INFO(one.line());
  const KernelEntry* entry = host.find(one.info(), provider);
  REQUIRE(entry != nullptr);
  const HostNode node(host, one.info(), *entry, 2, false);
  constexpr int kThreads = 4;
  std::vector<std::vector<Tensor>> inputs(kThreads, one.inputs());
  std::vector<std::vector<Tensor>> want(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    const auto at = static_cast<std::size_t>(t);
    Tensor x = Tensor::empty(one.inputs()[0].spec());
    for (float& v : x.values<float>()) v = static_cast<float>((&v - x.data<float>()) % (t + 3));
    inputs[at][0] = x;
    want[at] = evaluate(one.info(), pointers(inputs[at]));
  }
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, at = static_cast<std::size_t>(t)] {
      for (int round = 0; round < 20 && failures[at].empty(); ++round) {
        const auto got = node.run(inputs[at]);
        failures[at] = difference(got[0], want[at][0], tolerance_of(one.info(), got[0].dtype()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

}  // namespace turnout::test
