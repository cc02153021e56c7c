// Kernels of device mode, compiled for the host's threads, against the references.
// TURNOUT_CASE='softmax f32[4,1000]' limits the test to the lines that begin so.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "backends/kokkos/device/launch.hpp"
#include "core/backend.hpp"
#include "ops/all_ops.hpp"
#include "tests/device/stand_in.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/host_device.hpp"
#include "tests/support/interpret.hpp"

using namespace turnout;
using namespace turnout::test;

// Ops that are replaced before they are run aren't tested here.
std::vector<Tensor> turnout::interpret(const Graph&, const std::vector<Tensor>&) {
  fail(ErrorCode::unsupported, "the op has no reference");
}

turnout::test::StandInStream::~StandInStream() { kokkos::release_stream(native_handle()); }
void turnout::test::StandInStream::synchronize() { kokkos::throw_faults(native_handle()); }

namespace {

struct Runtime {
  Runtime() { kokkos::initialise(0); }
  ~Runtime() { kokkos::finalise(); }
};

StandIn& stand_in() {
  static StandIn device;
  static Runtime runtime;
  return device;
}

// Functors that hold addresses of host memory, by what was running.
thread_local std::string running;
thread_local const int* fault_of_stream = nullptr;
std::mutex strangers_mutex;
std::set<std::string> strangers;

void look_for_strangers(const void* functor, std::size_t bytes) {
  const MappedRanges mapped;
  const auto fault = reinterpret_cast<std::uintptr_t>(fault_of_stream);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    std::uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(functor) + at, sizeof word);
    if (!mapped.hold(word) || stand_in().addresses().holds(word) || word == fault) continue;
    const std::scoped_lock lock(strangers_mutex);
    strangers.insert(fmt::format("{}: {:#x} at byte {} of {}", running, word, at, bytes));
  }
}

/// One node made ready; run() may be called from several threads at once.
class DeviceNode {
 public:
  DeviceNode(const NodeInfo& info, const KernelEntry& entry) : info_(info) {
    kernel_ = entry.prepare({info, stand_in(), 1, {}, false});
  }
  const PreparedKernel& kernel() const { return *kernel_; }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    Device& device = stand_in();
    const auto stream = device.make_stream();
    std::vector<std::shared_ptr<Buffer>> buffers;
    const auto place = [&](std::size_t bytes) -> Operand {
      buffers.push_back(device.allocate(bytes, MemoryKind::device));
      return {buffers.back()->address(), &device};
    };
    std::vector<Operand> in, out;
    for (int i = 0; i < info_.input_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool passed = at < inputs.size() && inputs[at].defined() &&
                          !info_.op->is_shape_input(i) && !kernel_->packs_input(i);
      in.push_back(passed ? place(inputs[at].bytes()) : Operand{});
      if (passed) {
        stream->copy(in.back().address, &device, inputs[at].address(), nullptr, inputs[at].bytes());
      }
    }
    std::vector<Tensor> results;
    for (int i = 0; i < info_.output_count(); ++i) {
      results.push_back(Tensor::empty(info_.output(i)));
      out.push_back(place(results.back().bytes()));
    }
    const Operand workspace =
        kernel_->workspace_bytes() > 0 ? place(kernel_->workspace_bytes()) : Operand{};
    fault_of_stream = kokkos::space_of(stream->native_handle()).fault;
    stream->launch(*kernel_, KernelArgs(in, out, workspace, &device));
    stream->synchronize();
    for (std::size_t i = 0; i < results.size(); ++i) {
      stream->copy(results[i].address(), nullptr, out[i].address, &device, results[i].bytes());
    }
    return results;
  }

 private:
  NodeInfo info_;
  std::unique_ptr<PreparedKernel> kernel_;
};

struct Kernels {
  KernelRegistry registry;
  Kernels() {
    stand_in();
    register_kokkos_kernels(registry);
  }
  KernelRegistry::Selection select(const NodeInfo& info) const {
    static const std::vector<std::string> kProviders{"kokkos"};
    return registry.select(info, stand_in().info(), kProviders);
  }
};

void check_case(const Case& one, const KernelEntry& entry) {
  const NodeInfo info = one.graph.info(NodeId{0});
  INFO(one.where << ": " << one.text << "\n  again: TURNOUT_CASE='" << one.text
                 << "' tests/test_kokkos_device");
  running = one.text;
  const DeviceNode node(info, entry);
  const std::vector<Tensor> want = reference_outputs(one);
  const std::vector<Tensor> got = node.run(one.inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("output " << i << " by " << node.kernel().implementation());
    CHECK(difference(got[i], want[i], tolerance_of(info, want[i].dtype())) == "");
  }
}

/// Lines whose node is refused, with what the kernel says.
const std::map<std::string, std::string> kRefused = {
    // Exponentials of integers: no model has them.
    {"reduce_log_sum_exp i32[3,4,5] i64{1} ints=1:5", "no kernel for i32"},
    {"reduce_log_sum_exp i64[3,4,5] i64{-1,0} ints=1:5", "no kernel for i64"},
};

const char* kLarge[] = {
    "transpose f32[400,300] perm=[1,0]", "transpose f16[30,37,2,29] perm=[2,3,0,1]",
    "transpose f64[20,3,900] perm=[0,2,1]", "transpose i8[2,300,3] perm=[0,2,1]",
    "slice f32[30000] i64{29999} i64{-30001} i64{0} i64{-3}", "expand f32[3,1] i64{3,9000}",
    "tile f32[2,2,2,2,3] i64{2,2,2,2,2}", "pad f32[3,2000] i64{1,700,0,600} mode=wrap",
    "sub f32[50000,3] f32[3]", "pow f32[5000,3] i64[3]", "cast f16[40001] to=i32 range=-99:99",
    // split reductions, by rows and by columns; lines of threads and of teams
    "reduce_mean f32[100000]", "reduce_sum f64[90000,2] i64{0}", "reduce_max i64[70000,3] i64{0}",
    "reduce_l2 f32[300,5,77] i64{0,2}", "reduce_log_sum_exp f32[70000] range=-90:90",
    "reduce_prod f32[3,40000] i64{1} range=0.9999:1.0001", "reduce_min f16[40,3000] i64{0}",
    "reduce_sum i32[30000] i64{0} ints=-1000000:1000000", "arg_max f32[3,5000] axis=1",
    "arg_min f32[5000,3] axis=0", "cum_sum f32[3,5000] i64(1)", "cum_sum i32[700,9] i64(0)",
    "cum_sum f64[2,3000] i64(1) exclusive=1 reverse=1",
    "cum_prod f32[2,300] i64(1) range=0.99:1.01", "softmax f16[7,3000]",
    "softmax f32[3,700,70] axis=1", "softmax f32[3,700,5000] axis=1", "hardmax f32[5,3000]",
    "log_softmax f32[70000,9]", "layer_normalization f32[5,3000] f32[3000]",
    "top_k f32[50,700] i64{9} outputs=2",
    "group_normalization f32[2,16,300] f32[16] f32[16] num_groups=4",
    "scatter_nd f32[500] i64[300,1] f32[300] ints=0:499", "global_average_pool f32[2,3,70,70]",
    "gather f32[3,700,5] i64[900] ints=-700:699 axis=1",
    // products: several tiles, split k, batches, transposed operands
    "matmul f32[130,70] f32[70,150]", "matmul f32[3,1000] f32[1000,70]",
    "matmul f64[65,300] f64[300,5]", "matmul i32[70,300] i32[300,66] ints=-99:99",
    "matmul f16[70,600] f16[600,40] f16[40] activation=relu",
    "matmul f32[5,700,20] f32[5,700,33] f32[33] f32[5,20,33] trans_a=1 activation=gelu",
    "matmul bf16[2,3,40,130] bf16[3,70,130] trans_b=1",
    "conv f32[2,130,9,9] f32[70,130,3,3] f32[70] pads=[1,1,1,1] activation=relu",
    "conv f32[3,64,14,14] f32[128,32,3,3] group=2 strides=[2,2]",
    "conv f16[1,70,5,6,7] f16[20,70,2,2,2] dilations=[1,2,1]",
    "conv f32[1,256,7] f32[16,256,3] f32[16] f32[1,16,5]",
    "conv f32[2,32,20,20] f32[32,1,5,5] group=32 pads=[2,2,2,2]",
    "conv_transpose f32[2,20,9,9] f32[20,6,4,4] strides=[2,2] pads=[1,1,1,1]"};

}  // namespace

TEST_CASE("kernels of device mode agree with references on every case") {
  const Kernels kernels;
  kokkos::set_functor_audit(look_for_strangers);
  const char* wanted = std::getenv("TURNOUT_CASE");
  int checked = 0;
  std::map<std::string, std::string> refused;
  for (const std::string& file : cases_files()) {
    for (const RandomData data : {RandomData::inputs, RandomData::known_after_first}) {
      for (const Case& one : read_cases(file, all_ops(), data)) {
        if (wanted != nullptr && !one.text.starts_with(wanted)) continue;
        const NodeInfo info = one.graph.info(NodeId{0});
        if (info.op->view || info.op->decompose != nullptr) continue;
        const auto selection = kernels.select(info);
        if (selection.entry == nullptr) {
          refused[one.text] = selection.refusals.at(0).reason;
        } else {
          check_case(one, *selection.entry);
          ++checked;
        }
      }
    }
  }
  kokkos::set_functor_audit(nullptr);
  std::printf("%d cases ran in device mode\n", checked);
  for (const std::string& stranger : strangers) FAIL_CHECK("an address of the host: " << stranger);
  CHECK(stand_in().memory_use().bytes == 0);
  if (wanted != nullptr) return;
  CHECK(checked > 2000);
  CHECK(refused == kRefused);
}

TEST_CASE("large shapes take the paths of device mode that small ones miss") {
  const Kernels kernels;
  kokkos::set_functor_audit(look_for_strangers);
  const char* wanted = std::getenv("TURNOUT_CASE");
  for (const char* line : kLarge) {
    if (wanted != nullptr && !std::string_view(line).starts_with(wanted)) continue;
    INFO(line);
    const Case one = parse_case(line, "large", all_ops());
    const auto selection = kernels.select(one.graph.info(NodeId{0}));
    REQUIRE(selection.entry != nullptr);
    check_case(one, *selection.entry);
  }
  kokkos::set_functor_audit(nullptr);
  for (const std::string& stranger : strangers) FAIL_CHECK("an address of the host: " << stranger);
}

TEST_CASE("the audit sees addresses of the host") {
  stand_in();
  struct Holder {
    const int* address;
    std::int64_t number;
    void operator()(std::int64_t) const {}
  };
  strangers.clear();
  running = "planted";
  const int local = 0;
  const Holder holder{&local, 7};
  look_for_strangers(&holder, sizeof holder);
  CHECK(strangers.size() == 1);
  strangers.clear();
}

TEST_CASE("in device mode an index out of range is an error of the stream") {
  const Kernels kernels;
  for (const std::string line :
       {"gather f32[5,6] i64[4] ints=5:9", "gather f32[5,6] i32[4] ints=-9:-6",
        "gather f32[0,6] i64[4] ints=0:0", "gather_elements f32[5,6] i64[5,6] ints=6:9 axis=1",
        "gather_nd f32[5,6] i64[3,2] ints=6:9",
        "scatter_elements f32[5,6] i64[2,6] f32[2,6] ints=5:9",
        "scatter_elements f32[5,6] i64[2,6] f32[2,6] ints=5:9 reduction=add",
        "scatter_nd f32[5,6] i64[3,1] f32[3,6] ints=5:9",
        "reverse_sequence f32[4,3,2] i64[3] ints=5:9"}) {
    INFO(line);
    const Case one = parse_case(line, "test", all_ops());
    const auto selection = kernels.select(one.graph.info(NodeId{0}));
    REQUIRE(selection.entry != nullptr);
    const DeviceNode node(one.graph.info(NodeId{0}), *selection.entry);
    const std::string op = line.substr(0, line.find(' '));
    CHECK_THROWS_WITH(node.run(one.inputs),
                      Catch::Matchers::ContainsSubstring("[" + op + "] an index is out of range"));
  }
  // The error is gone with that.
  const Case sound = parse_case("gather f32[5,6] i64[4] ints=0:4", "test", all_ops());
  check_case(sound, *kernels.select(sound.graph.info(NodeId{0})).entry);
}

TEST_CASE("kernels of device mode are for devices") {
  const Kernels kernels;
  const Case one = parse_case("add f32[3] f32[3]", "test", all_ops());
  DeviceInfo host;
  host.name = "cpu";
  host.is_host = true;
  const std::vector<std::string> providers{"kokkos"};
  const auto selection = kernels.registry.select(one.graph.info(NodeId{0}), host, providers);
  CHECK(selection.entry == nullptr);
  REQUIRE(selection.refusals.size() == 1);
  CHECK(selection.refusals[0].reason == "built for a device, not for cpu");
}

TEST_CASE("prepared kernels of device mode run from several threads, each with a stream") {
  const Kernels kernels;
  for (const char* line : {"add f32[64,409] f32[409]", "reduce_mean f32[3,40000] i64{1}",
                           "softmax f32[64,1000]", "matmul f32[70,200] f32[200,70]"}) {
    INFO(line);
    const Case one = parse_case(line, "test", all_ops());
    const NodeInfo info = one.graph.info(NodeId{0});
    const DeviceNode node(info, *kernels.select(info).entry);
    const Tensor want = reference_outputs(one)[0];
    std::vector<std::string> differences(4);
    std::vector<std::thread> threads;
    for (std::string& found : differences) {
      threads.emplace_back([&] {
        for (int round = 0; round < 5 && found.empty(); ++round) {
          found = difference(node.run(one.inputs)[0], want, tolerance_of(info, want.dtype()));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& found : differences) CHECK(found == "");
  }
}

TEST_CASE("a stream's space is kept until it is released") {
  StandIn& device = stand_in();
  const auto stream = device.make_stream();
  void* handle = stream->native_handle();
  const kokkos::StreamSpace* space = &kokkos::space_of(handle);
  CHECK(&kokkos::space_of(handle) == space);
  const auto other = device.make_stream();
  CHECK(&kokkos::space_of(other->native_handle()) != space);
  kokkos::release_stream(handle);
  kokkos::throw_faults(handle);  // of a stream that isn't known: nothing
  std::vector<std::unique_ptr<Stream>> many;
  const auto use_many = [&] {
    for (int i = 0; i < 300; ++i) {
      many.push_back(device.make_stream());
      kokkos::space_of(many.back()->native_handle());
    }
  };
  CHECK_THROWS_WITH(use_many(), Catch::Matchers::ContainsSubstring("at most 256 streams"));
  many.clear();
  kokkos::space_of(handle);
}
