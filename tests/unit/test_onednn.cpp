#include "generated/turnout_config.hpp"

#include <catch2/catch_test_macros.hpp>

#if TURNOUT_HAS_ONEDNN

#include <thread>

#include "backends/cpu/onednn/layout.hpp"
#include "tests/support/host_cases.hpp"

using namespace turnout;
using namespace turnout::test;

namespace {

/// Layouts a value of this spec may arrive in, plain first.
std::vector<LayoutPtr> layouts_of(const TensorSpec& spec) {
  using Tag = dnnl::memory::format_tag;
  static const std::map<int, std::vector<Tag>> kTags = {
      {3, {Tag::nwc, Tag::nCw16c}},
      {4, {Tag::nhwc, Tag::nChw16c}},
      {5, {Tag::ndhwc, Tag::nCdhw16c}},
  };
  std::vector<LayoutPtr> layouts = {nullptr};
  const auto tags = kTags.find(spec.shape.rank());
  const auto type = onednn::data_type(spec.dtype);
  if (tags == kTags.end() || !type || spec.elements() == 0) return layouts;
  for (const Tag tag : tags->second) {
    layouts.push_back(
        onednn::make_layout(spec, onednn::Desc(onednn::to_dims(spec.shape), *type, tag)));
  }
  return layouts;
}

/// Every case the provider takes, with input 0 (and others of its shape) in every layout.
void check_layouts(Host& host, const std::string& op) {
  for (const HostCase& one : load_host_cases(op, true)) {
    const KernelEntry* entry = host.find(one.info(), "onednn");
    if (entry == nullptr) continue;
    const NodeInfo info = one.info();
    const auto want = one.reference();
    for (const LayoutPtr& layout : layouts_of(info.input(0))) {
      INFO(one.line() << ", arriving as " << (layout ? layout->name() : "plain"));
      std::vector<LayoutPtr> arriving;
      for (int i = 0; i < info.input_count(); ++i) {
        const bool same = info.has_input(i) && info.input(i) == info.input(0);
        arriving.push_back(same ? layout : nullptr);
      }
      const HostNode node(host, info, *entry, 2, true, arriving);
      one.check(node.run(one.inputs()), want);
    }
  }
}

}  // namespace

TEST_CASE("oneDNN's kernels compute what the references do") {
  Host host;
  // The least number of cases of each file that it has to take.
  const std::map<std::string, int> ops = {
      {"matmul", 18},
      {"conv", 18},
      {"conv_transpose", 4},
      {"max_pool", 6},
      {"average_pool", 5},
      {"softmax", 3},
      {"global_max_pool", 2},
      {"batch_normalization", 2},
      {"layer_normalization", 2},
      {"global_average_pool", 2},
  };
  for (const auto& [op, least] : ops) {
    INFO(op);
    CHECK(check_provider(host, "onednn", op) >= least);
  }
}

TEST_CASE("oneDNN's kernels take values in layouts of its own") {
  Host host;
  for (const std::string op : {"conv", "max_pool", "average_pool", "global_average_pool",
                               "global_max_pool", "batch_normalization", "softmax"}) {
    check_layouts(host, op);
  }
}

TEST_CASE("elementwise ops and concat of oneDNN compute what the references do") {
  Host host;
  for (const std::string op :
       {"sigmoid", "tanh", "leaky_relu", "elu", "hard_swish", "gelu", "swish", "add", "sub", "mul",
        "div", "concat", "transpose", "reduce_sum", "reduce_mean"}) {
    INFO(op);
    CHECK(check_provider(host, "onednn", op) >= 1);
    check_layouts(host, op);
  }
}

namespace {

constexpr std::string_view kConvLine =
    "conv f32[2,24,20,20] f32[40,24,3,3] f32[40] f32[2,40,20,20] pads=[1,1,1,1] activation=relu";

}  // namespace

TEST_CASE("a convolution that may choose picks layouts, and says so") {
  Host host;
  const HostCase one = parse_host_case(kConvLine, true);
  const KernelEntry* entry = host.find(one.info(), "onednn");
  REQUIRE(entry != nullptr);
  const HostNode plain(host, one.info(), *entry, 1, false);
  CHECK(plain.kernel().input_layout(0) == nullptr);
  CHECK(plain.kernel().output_layout(0) == nullptr);
  CHECK(plain.kernel().packs_input(1));
  CHECK(plain.kernel().packed_bytes() >= one.inputs()[1].bytes());
  const HostNode chosen(host, one.info(), *entry, 1, true);
  REQUIRE(chosen.kernel().output_layout(0) != nullptr);
  CHECK(chosen.kernel().output_layout(0)->name().starts_with("onednn:"));
  CHECK(chosen.kernel().implementation() != "");
  one.check(chosen.run(one.inputs()), one.reference());
  // A consumer that is given this layout takes it as it is.
  const TensorSpec& spec = one.info().output(0);
  const HostCase pool = parse_host_case(
      fmt::format("max_pool {} kernel_shape=[2,2] strides=[2,2]", to_string(spec)), false);
  const HostNode next(host, pool.info(), *host.find(pool.info(), "onednn"), 1, true,
                      {chosen.kernel().output_layout(0)});
  CHECK(same_layout(next.kernel().input_layout(0), chosen.kernel().output_layout(0)));
}

TEST_CASE("reorders bring a value from one layout to another and back") {
  Host host;
  const TensorSpec spec{DType::f32, {2, 21, 5, 7}};  // 21 channels: blocks of 16 with padding
  const auto layouts = layouts_of(spec);
  REQUIRE(layouts.size() == 3);
  CHECK_FALSE(layouts[1]->equals(*layouts[2]));
  CHECK(same_layout(layouts[1], layouts_of(spec)[1]));
  CHECK(layouts[2]->bytes() == std::size_t{2} * 32 * 5 * 7 * 4);
  const Tensor plain = Tensor::empty(spec);
  for (std::int64_t i = 0; i < plain.elements(); ++i) {
    plain.values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i);
  }
  for (const LayoutPtr& from : layouts) {
    for (const LayoutPtr& to : layouts) {
      const Tensor a = reorder(host, spec, plain, nullptr, from);
      const Tensor b = reorder(host, spec, a, from, to);
      const Tensor back = reorder(host, spec, b, to, nullptr);
      CHECK(std::ranges::equal(plain.values<float>(), Tensor(spec, back.buffer()).values<float>()));
    }
  }
}

TEST_CASE("several threads may run one prepared oneDNN kernel") {
  Host host;
  for (const std::string_view line :
       {kConvLine, std::string_view("matmul f32[16,300] f32[300,70] f32[70] activation=gelu")}) {
    check_concurrent(host, "onednn", parse_host_case(line, true));
  }
}

TEST_CASE("kernels of one constant share what they packed") {
  Host host;
  const HostCase one = parse_host_case("matmul f32[4,300] f32[300,70]", true);
  const KernelEntry* entry = host.find(one.info(), "onednn");
  REQUIRE(entry != nullptr);
  const HostNode a(host, one.info(), *entry, 1, false);
  const auto use = one.inputs()[1].buffer().use_count();
  const HostNode b(host, one.info(), *entry, 1, false);
  CHECK(a.kernel().packed_bytes() > 0);
  one.check(b.run(one.inputs()), one.reference());
  CHECK(one.inputs()[1].buffer().use_count() >= use);
}

TEST_CASE("refusals of oneDNN have reasons") {
  Host host;
  for (const std::string_view line :
       {"matmul f64[3,4] f64[4,5]", "matmul f32[0,4] f32[4,5]", "matmul i64[3,4] i64[4,5]",
        "max_pool f32[1,2,6,7] kernel_shape=[2,3] outputs=2", "mul i32[3] i32[3]"}) {
    const HostCase one = parse_host_case(line, false);
    std::vector<KernelRegistry::Refusal> refusals;
    const std::vector<std::string> providers = {"onednn"};
    CHECK(host.registry.accepting(one.info(), host.device.info(), providers, &refusals).empty());
    REQUIRE(refusals.size() == 1);
    CHECK(refusals[0].reason.size() > 10);
  }
}

#else

TEST_CASE("oneDNN") { SKIP("this build has no oneDNN"); }

#endif
