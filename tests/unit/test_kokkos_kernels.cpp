// Every line of tests/cases through the hand-written kernels, against the references.
// TURNOUT_CASE='softmax f32[4,1000]' limits the test to the lines that begin so.

#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "core/backend.hpp"
#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/host_device.hpp"

using namespace turnout;
using namespace turnout::test;

namespace {

const std::vector<std::string> kKokkos{"kokkos"};

/// Ops that have cases but no kernel, each with its reason.
const std::map<std::string, std::string> kWithoutKernel = {};

/// Lines whose node is refused, with what the kernel says.
const std::map<std::string, std::string> kRefused = {
    // Exponentials of integers: no model has them.
    {"reduce_log_sum_exp i32[3,4,5] i64{1} ints=1:5", "no kernel for i32"},
    {"reduce_log_sum_exp i64[3,4,5] i64{-1,0} ints=1:5", "no kernel for i64"},
};

std::vector<Case> chosen_cases(const std::string& file) {
  const char* wanted = std::getenv("TURNOUT_CASE");
  std::vector<Case> cases = read_cases(file, all_ops());
  if (wanted != nullptr) {
    std::erase_if(cases, [&](const Case& one) { return !one.text.starts_with(wanted); });
  }
  return cases;
}

std::vector<Tensor> operand_tensors(const Case& one) {
  std::vector<Tensor> tensors;
  for (const Tensor* tensor : operands(one)) tensors.push_back(tensor ? *tensor : Tensor());
  return tensors;
}

void check_case(Host& host, const Case& one, const KernelEntry& entry) {
  const NodeInfo info = one.graph.info(NodeId{0});
  const std::vector<Tensor> want = reference_outputs(one);
  for (const int threads : {1, 2}) {
    INFO(one.where << ": " << one.text << "\n  threads " << threads << "\n  again: TURNOUT_CASE='"
                   << one.text << "' tests/test_kokkos_kernels");
    const HostNode node(host, info, entry, threads, false);
    const std::vector<Tensor> got = node.run(operand_tensors(one));
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("output " << i << " by " << node.kernel().implementation());
      CHECK(difference(got[i], want[i], tolerance_of(info, want[i].dtype())) == "");
    }
  }
}

bool replaced_or_view(const OpDef& op) { return op.view || op.decompose != nullptr; }

}  // namespace

TEST_CASE("kernels agree with references on every case") {
  Host host;
  int checked = 0;
  std::map<std::string, std::string> refused;
  std::set<std::string> without;
  for (const std::string& file : cases_files()) {
    for (const Case& one : chosen_cases(file)) {
      const NodeInfo info = one.graph.info(NodeId{0});
      if (replaced_or_view(*info.op)) continue;
      const auto selection = host.registry.select(info, host.device.info(), kKokkos);
      if (selection.entry != nullptr) {
        check_case(host, one, *selection.entry);
        ++checked;
      } else if (selection.refusals.empty()) {
        without.insert(one.op);
      } else {
        refused[one.text] = selection.refusals[0].reason;
      }
    }
  }
  REQUIRE(checked > 0);
  if (std::getenv("TURNOUT_CASE") != nullptr) return;
  for (const std::string& op : without) {
    INFO(op << " has no kernel of the provider kokkos");
    CHECK(kWithoutKernel.contains(op));
  }
  for (const auto& [op, reason] : kWithoutKernel) {
    INFO(op << " has a kernel now: take it off the list");
    CHECK(without.contains(op));
  }
  for (const auto& [line, reason] : refused) {
    INFO(line << " is refused: " << reason);
    CHECK(kRefused.contains(line));
    if (kRefused.contains(line)) CHECK(kRefused.at(line) == reason);
  }
  for (const auto& [line, reason] : kRefused) {
    INFO(line << " is taken now: take it off the list");
    CHECK(refused.contains(line));
  }
}

TEST_CASE("large shapes take the paths that small ones miss") {
  Host host;
  for (const char* line :
       {// blocks, short rows made long, rows in pieces
        "transpose f32[400,300] perm=[1,0]", "transpose f16[30,37,2,29] perm=[2,3,0,1]",
        "transpose f64[20,3,900] perm=[0,2,1]", "transpose i8[2,300,3] perm=[0,2,1]",
        "slice f32[30000] i64{29999} i64{-30001} i64{0} i64{-3}", "expand f32[3,1] i64{3,9000}",
        "concat f32[3,5000] f32[3,1] axis=1", "tile f32[2,2,2,2,3] i64{2,2,2,2,2}",
        "pad f32[3,2000] i64{1,700,0,600} mode=wrap",
        // operands that repeat in short rows, on either side and in every width
        "sub f32[50000,3] f32[3]", "sub f32[3] f32[50000,3]", "add f16[30000,5] f16[5]",
        "less bf16[5000,64] bf16[64]", "mul i8[5000,7] i8[7] ints=-9:9", "pow f32[5000,3] i64[3]",
        "add f32[20000,1] f32[20000,3]", "add f32[90001] f32[90001]", "max f64[7,1,600] f64[5,600]",
        "where bool[100,1] f32[600] f32[100,600]", "cast f16[40001] to=i32 range=-99:99",
        "gelu f32[40001] range=-9:9", "tanh f16[9001] range=-9:9", "erf f32[9001] range=-5:5",
        // split reductions, by rows and by columns
        "reduce_mean f32[100000]", "reduce_sum f64[90000,2] i64{0}",
        "reduce_max i64[70000,3] i64{0}", "reduce_l2 f32[300,5,77] i64{0,2}",
        "reduce_log_sum_exp f32[70000] range=-90:90",
        "reduce_prod f32[3,40000] i64{1} range=0.9999:1.0001", "reduce_min f16[40,3000] i64{0}",
        "softmax f16[7,3000]", "softmax f32[3,700,70] axis=1",
        "layer_normalization f32[5,3000] f32[3000]", "top_k f32[50,700] i64{9} outputs=2",
        "gather f32[3,700,5] i64[900] ints=-700:699 axis=1",
        "resize f32[2,3,40,50] - - i64{2,3,90,1100} mode=cubic"}) {
    const Case one = parse_cases(line, "large", all_ops()).at(0);
    const NodeInfo info = one.graph.info(NodeId{0});
    INFO(line);
    const auto selection = host.registry.select(info, host.device.info(), kKokkos);
    REQUIRE(selection.entry != nullptr);
    check_case(host, one, *selection.entry);
  }
}

TEST_CASE("one prepared kernel runs from several threads at once") {
  Host host;
  for (const char* line :
       {"add f32[64,4096] f32[4096]", "reduce_mean f32[3,40000] i64{1}", "softmax f32[64,1000]",
        "top_k f32[64,1000] i64{5} outputs=2", "transpose f32[8,64,64,3] perm=[0,3,1,2]"}) {
    INFO(line);
    const Case one = parse_cases(line, "test", all_ops()).at(0);
    const NodeInfo info = one.graph.info(NodeId{0});
    const auto selection = host.registry.select(info, host.device.info(), kKokkos);
    REQUIRE(selection.entry != nullptr);
    const HostNode node(host, info, *selection.entry, 2, false);
    const std::vector<Tensor> inputs = operand_tensors(one);
    const Tensor want = reference_outputs(one)[0];
    std::vector<std::string> differences(4);
    std::vector<std::thread> threads;
    for (std::string& found : differences) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20 && found.empty(); ++round) {
          found = difference(node.run(inputs)[0], want, tolerance_of(info, want.dtype()));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& found : differences) CHECK(found == "");
  }
}
