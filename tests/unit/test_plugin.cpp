// Backends in shared libraries: two plugins over the emulated driver in one process, each with a
// Kokkos of its own, and what the loader says of files that are no plugins of this build.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "backends/plugin/library_needs.hpp"
#include "backends/plugin/loader.hpp"
#include "backends/plugin/probe.hpp"
#include "core/plugin.hpp"
#include "generated/build_id.hpp"
#include "generated/turnout_config.hpp"
#include "ops/all_ops.hpp"
#include "runtime/report/compare.hpp"
#include "tests/support/device_conformance.hpp"
#include "tests/support/models.hpp"

using namespace turnout;
using namespace turnout::conformance;
using Catch::Matchers::ContainsSubstring;

namespace fs = std::filesystem;

namespace {

struct TemporaryFolder {
  TemporaryFolder() : path(fs::temp_directory_path() / fmt::format("turnout-plugin-{}", getpid())) {
    fs::create_directories(path);
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  fs::path path;
};

}  // namespace

TEST_CASE("architectures and the code they run") {
  using plugin::architecture_number;
  using plugin::runs_on;
  CHECK(architecture_number("sm_90") == 90);
  CHECK(architecture_number("gfx90a") == 0x90a);
  CHECK(architecture_number("sm_9x") == -1);
  CHECK(architecture_number("x86") == -1);
  CHECK(runs_on("sm_90", "sm_90"));
  CHECK(runs_on("sm_80", "sm_90"));  // by the intermediate form
  CHECK_FALSE(runs_on("sm_90", "sm_80"));
  CHECK(runs_on("gfx90a", "gfx90a"));
  CHECK_FALSE(runs_on("gfx90a", "gfx942"));
  CHECK_FALSE(runs_on("sm_80", "gfx90a"));
}

TEST_CASE("devices of the kernel driver's list") {
  const TemporaryFolder folder;
  CHECK_THAT(plugin::probe_kernel_nodes(folder.path / "none").why_none,
             ContainsSubstring("driver was not found"));
  const auto node = [&](const char* name, const char* text) {
    fs::create_directories(folder.path / name);
    std::ofstream(folder.path / name / "properties") << text;
  };
  node("0", "cpu_cores_count 16\ngfx_target_version 0\n");
  CHECK_THAT(plugin::probe_kernel_nodes(folder.path).why_none, ContainsSubstring("no device"));
  node("1", "simd_count 440\ngfx_target_version 90010\n");
  node("2", "gfx_target_version 90402\nsimd_count 1216\n");
  node("3", "not a list of properties");
  const plugin::Probe probe = plugin::probe_kernel_nodes(folder.path);
  CHECK(probe.architectures == std::vector<std::string>{"gfx90a", "gfx942"});
}

TEST_CASE("a driver that isn't there, or isn't one") {
  CHECK_THAT(plugin::probe_driver_library("libno-such-driver.so.1").why_none,
             ContainsSubstring("libno-such-driver.so.1"));
  CHECK_THAT(plugin::probe_driver_library("libc.so.6").why_none,
             ContainsSubstring("is not a driver"));
}

TEST_CASE("files that aren't plugins") {
  const TemporaryFolder folder;
  std::string text;
  CHECK(error_of([&] { load_plugin(folder.path / "none.so"); }, &text) == ErrorCode::not_found);
  CHECK_THAT(text, ContainsSubstring("none.so"));
  std::ofstream(folder.path / "text.so") << "no library";
  CHECK(error_of([&] { load_plugin(folder.path / "text.so"); }, &text) == ErrorCode::unsupported);
  CHECK_THAT(text, ContainsSubstring("text.so"));
}

TEST_CASE("the glibc that a file asks for") {
  using plugin::needed_glibc;
  using plugin::older_version;
  CHECK(older_version("2.4", "2.36"));
  CHECK(older_version("2.36", "2.38"));
  CHECK(older_version("2.2.5", "2.36"));
  CHECK_FALSE(older_version("2.36", "2.36"));
  CHECK_FALSE(older_version("2.41", "2.38"));
  const fs::path program = fs::canonical("/proc/self/exe");
  const std::string needed = needed_glibc(program);
  CHECK(needed.starts_with("2."));
  CHECK_FALSE(older_version(gnu_get_libc_version(), needed));

  // This program as a file of a newer system: in every name of a version another number.
  std::ifstream file(program, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string from = "GLIBC_" + needed;
  std::string to = "GLIBC_9";
  to.resize(from.size(), '9');
  for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
    bytes.replace(at, from.size(), to);
  }
  const TemporaryFolder folder;
  std::ofstream(folder.path / "newer.so", std::ios::binary) << bytes;
  CHECK(needed_glibc(folder.path / "newer.so") == to.substr(6));
  std::string text;
  CHECK(error_of([&] { load_plugin(folder.path / "newer.so"); }, &text) == ErrorCode::unsupported);
  CHECK_THAT(text, ContainsSubstring(fmt::format("needs glibc >= {} (this system has {})",
                                                 to.substr(6), gnu_get_libc_version())));

  // Cut anywhere it is a file without an answer, and never more than that.
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{20}, std::size_t{64}, std::size_t{5000}}) {
    std::ofstream(folder.path / "cut.so", std::ios::binary) << bytes.substr(0, length);
    CHECK(needed_glibc(folder.path / "cut.so").empty());
  }
  CHECK(needed_glibc(folder.path).empty());
  CHECK(needed_glibc(folder.path / "none.so").empty());
}

#if TURNOUT_HAS_VIRTUAL

namespace {

const fs::path kPlugins = TURNOUT_TEST_PLUGINS;

// Symbols that a library defines for others, by `nm -D`.
std::vector<std::string> exported_symbols(const fs::path& file) {
  std::vector<std::string> names;
  FILE* pipe = popen(fmt::format("nm -D --defined-only '{}'", file.string()).c_str(), "r");
  REQUIRE(pipe != nullptr);
  char address[64], kind[8], name[1024];
  while (std::fscanf(pipe, "%63s %7s %1023s", address, kind, name) == 3) names.emplace_back(name);
  REQUIRE(pclose(pipe) == 0);
  return names;
}

Shape with_batch(std::int64_t batch, const Shape& matrix) {
  return batch == 0 ? matrix : Shape({batch, matrix[0], matrix[1]});
}

// One node at a time on a backend's first device, held against the op's reference.
struct SessionDevice {
  explicit SessionDevice(Backend& of) : backend(of), device(of.open(of.device_names().front())) {
    backend.register_kernels(kernels);
  }

  /// The provider that ran it.
  std::string check(const char* op, const AttrMap& attrs, const std::vector<Shape>& shapes) {
    GraphBuilder builder(all_ops(), "one");
    std::vector<ValueId> values;
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) {
      std::vector<Dim> dims;
      for (int i = 0; i < shape.rank(); ++i) dims.emplace_back(shape[i]);
      values.push_back(builder.input("x" + std::to_string(values.size()), DType::f32, dims));
      inputs.push_back(testing::random_tensor(shape, static_cast<unsigned>(values.size())));
    }
    builder.output(builder.add(op, values, attrs, "node"), "y");
    const Graph graph = builder.build().bind({});
    const NodeInfo info = graph.info(NodeId{0});
    const auto providers = backend.default_providers();
    const auto selected = kernels.select(info, device.info(), providers);
    REQUIRE(selected.entry != nullptr);
    const auto kernel = selected.entry->prepare({info, device, 1, {}, false});
    const auto stream = device.make_stream();
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<Operand> operands;
    for (const Tensor& input : inputs) {
      buffers.push_back(device.allocate(input.bytes(), MemoryKind::device));
      stream->copy(buffers.back()->address(), &device, input.address(), nullptr, input.bytes());
      operands.push_back({buffers.back()->address(), &device});
    }
    Tensor y = Tensor::empty(info.output(0));
    const auto result = device.allocate(y.bytes(), MemoryKind::device);
    const auto scratch = device.allocate(kernel->workspace_bytes() + 1, MemoryKind::device);
    const Operand output{result->address(), &device};
    const KernelArgs args(operands, {&output, 1}, {scratch->address(), &device}, &device);
    stream->launch(*kernel, args);
    stream->copy(y.address(), nullptr, result->address(), &device, y.bytes());
    stream->synchronize();
    const std::vector<Tensor> got = {y};
    CHECK(output_difference(got, testing::run_reference(graph, {}, inputs)) < 1e-6);
    return selected.entry->provider;
  }

  Backend& backend;
  Device& device;
  KernelRegistry kernels;
};

// y = relu(x) by the backend's own kernel.
std::vector<float> relu(Backend& backend, Device& device, const std::vector<float>& x) {
  KernelRegistry kernels;
  backend.register_kernels(kernels);
  const OpRegistry& ops = all_ops();
  const OpDef& op = ops.get("relu");
  const TensorSpec spec{DType::f32, Shape({static_cast<std::int64_t>(x.size())})};
  const AttrMap attrs;
  NodeInfo info;
  info.op = &op;
  info.attrs = &attrs;
  info.name = "relu";
  info.inputs = {&spec};
  info.outputs = {&spec};
  const auto providers = backend.default_providers();
  const auto selected = kernels.select(info, device.info(), providers);
  REQUIRE(selected.entry != nullptr);
  const auto kernel = selected.entry->prepare({info, device, 2, {}, false});
  const auto stream = device.make_stream();
  const auto a = allocate_floats(device, x.size());
  const auto b = allocate_floats(device, x.size());
  const Launch launch(*a, *b, device);
  std::vector<float> y(x.size());
  upload(*stream, *a, x);
  stream->launch(*kernel, launch.args);
  download(*stream, y, *b);
  stream->synchronize();
  return y;
}

}  // namespace

TEST_CASE("a plugin exports one symbol") {
  for (const char* name : {"turnout_emulated_a.so", "turnout_emulated_b.so"}) {
    CHECK(exported_symbols(kPlugins / name) == std::vector<std::string>{kPluginSymbol});
  }
}

TEST_CASE("two plugins in one process") {
  Backend& a = load_plugin(kPlugins / "turnout_emulated_a.so", "profiles=v100,mi210");
  Backend& b = load_plugin(kPlugins / "turnout_emulated_b.so", "profiles=h100;threads=1");
  CHECK(a.device_names() == std::vector<std::string>{"emulated:0", "emulated:1"});
  CHECK(b.device_names() == std::vector<std::string>{"emulated:0"});
  CHECK(&a.open("emulated") == &a.open("emulated:0"));
  CHECK(error_of([&] { a.open("emulated:2"); }) == ErrorCode::not_found);
  std::vector<float> x = ramp(100000, -50000);
  std::vector<float> expected = x;
  for (float& value : expected) value = std::max(value, 0.0F);
  for (int round = 0; round < 3; ++round) {
    CHECK(relu(a, a.open("emulated:0"), x) == expected);
    CHECK(relu(b, b.open("emulated:0"), x) == expected);
    CHECK(relu(a, a.open("emulated:1"), x) == expected);
  }
  // An error thrown inside one is this program's Error.
  std::string text;
  CHECK(error_of([&] { a.open("emulated:0").allocate(std::size_t{1} << 60, MemoryKind::device); },
                 &text) == ErrorCode::out_of_memory);
}

TEST_CASE("products of a plugin's library: every form it takes, and what it refuses") {
  Backend& backend = load_plugin(kPlugins / "turnout_emulated_b.so", "profiles=h100");
  SessionDevice device(backend);
  // [batch] x [3,5] x [5,4], transposed or not, with bias and residual.
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool batched : {false, true}) {
        const Shape a = with_batch(batched ? 2 : 0, trans_a ? Shape({5, 3}) : Shape({3, 5}));
        const Shape b = with_batch(batched ? 2 : 0, trans_b ? Shape({4, 5}) : Shape({5, 4}));
        const AttrMap attrs = {{"trans_a", std::int64_t{trans_a}},
                               {"trans_b", std::int64_t{trans_b}},
                               {"alpha", 0.5},
                               {"activation", std::string("relu")}};
        CHECK(device.check("matmul", attrs, {a, b}) == "emulated_blas");
        CHECK(device.check("matmul", attrs, {a, b, Shape({4})}) == "emulated_blas");
        CHECK(device.check("matmul", attrs, {a, b, Shape({3, 1})}) == "kokkos");  // bias by row
      }
    }
  }
  CHECK(device.check("matmul", {{"activation", std::string("tanh")}},
                     {Shape({3, 5}), Shape({5, 4})}) == "kokkos");
}

TEST_CASE("the device suite on a plugin's devices") {
  static Backend& late = load_plugin(kPlugins / "turnout_emulated_a.so", "profiles=v100");
  check_device(late.open("emulated:0"));
}

TEST_CASE("the device suite on a device whose streams are threads") {
  static Backend& threads =
      load_plugin(kPlugins / "turnout_emulated_a.so", "profiles=v100;threads=1");
  check_device(threads.open("emulated:0"));
}

TEST_CASE("a plugin refuses what it can't serve, with the reason") {
  const fs::path file = kPlugins / "turnout_emulated_a.so";
  std::string text;
  CHECK(error_of([&] { load_plugin(file); }, &text) == ErrorCode::unsupported);
  CHECK_THAT(text, ContainsSubstring("no profiles were given"));
  CHECK(error_of([&] { load_plugin(file, "speed=high"); }, &text) == ErrorCode::unsupported);
  CHECK_THAT(text, ContainsSubstring("speed=high"));
  CHECK(error_of([&] { load_plugin(file, "profiles=h9000"); }, &text) == ErrorCode::unsupported);
  CHECK_THAT(text, ContainsSubstring("h9000"));

  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginSymbol));
  REQUIRE(entry != nullptr);
  std::array<char, 100> error{};
  Backend* backend = nullptr;
  PluginRequest request{kPluginAbi + 1, kBuildId, "", error.data(), error.size()};
  CHECK(entry(&request, &backend) == static_cast<int>(PluginStatus::mismatch));
  CHECK_THAT(error.data(), ContainsSubstring("ABI"));
  request.abi_version = kPluginAbi;
  request.build_id = "another build";
  CHECK(entry(&request, &backend) == static_cast<int>(PluginStatus::mismatch));
  CHECK_THAT(error.data(), ContainsSubstring("another build"));
  CHECK(backend == nullptr);
}

#endif
