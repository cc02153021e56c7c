// The emulated GPU: guarded memory, late work, virtual clock, injected faults.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include "core/backend.hpp"
#include "core/roofline.hpp"
#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("virtual device") { SKIP("this build has no virtual devices"); }

#else

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "backends/gpu/device.hpp"
#include "backends/gpu/profile.hpp"
#include "tests/support/device_conformance.hpp"

using namespace turnout;
using namespace turnout::conformance;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Fixture {
  std::unique_ptr<Backend> backend = make_virtual_backend();
  gpu::GpuDevice& device = open("virtual:v100");

  gpu::GpuDevice& open(std::string_view name) {
    return dynamic_cast<gpu::GpuDevice&>(backend->open(name));
  }
};

bool all_nan(const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isnan(value)) return false;
  }
  return true;
}

// The signal that ends a child process that runs `f`; 0 if it comes to its end.
template <typename F>
int signal_of_child(F f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // Not the handlers of Catch2 and the sanitizers, which would report a failure.
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    f();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

std::vector<float> read(Stream& stream, const Buffer& buffer, std::size_t count) {
  std::vector<float> values(count);
  download(stream, values, buffer);
  stream.synchronize();
  return values;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "names, kernels and figures", "[virtual]") {
  CHECK(backend->name() == "virtual");
  CHECK(backend->device_names().size() == shipped_profiles().size());
  CHECK(&backend->open("virtual:v100") == &device);
  CHECK(&backend->open("virtual:t4") != &device);
  CHECK(device.info().is_virtual);
  CHECK_FALSE(device.info().is_host);
  CHECK(backend->default_providers() == std::vector<std::string>{"kokkos"});
  KernelRegistry registry;
  backend->register_kernels(registry);
  REQUIRE(registry.providers().size() == 1);
  CHECK(registry.providers()[0] == "kokkos");
  CHECK(error_of([&] { backend->open("v100"); }) == ErrorCode::not_found);
  CHECK(error_of([&] { backend->open("virtual:"); }) == ErrorCode::not_found);
  CHECK(error_of([&] { backend->open("virtual:/no/such.json"); }) == ErrorCode::not_found);
}

TEST_CASE_METHOD(Fixture, "the host can't touch device memory", "[virtual]") {
  const auto buffer = allocate_floats(device, 1000);
  auto* address = static_cast<volatile float*>(buffer->address());
  CHECK(is_fault(signal_of_child([&] { static_cast<void>(address[0]); })));
  CHECK(is_fault(signal_of_child([&] { address[999] = 1; })));
  // The same bytes where kernels see them.
  auto* seen = static_cast<float*>(buffer->address()) + device.access_offset() / 4;
  CHECK(signal_of_child([&] { seen[999] = 1; }) == 0);
}

TEST_CASE_METHOD(Fixture, "freed memory is out of a kernel's reach", "[virtual]") {
  auto buffer = device.allocate(16 * kMiB, MemoryKind::device);
  auto* seen = static_cast<volatile std::byte*>(buffer->address()) + device.access_offset();
  seen[8 * kMiB] = std::byte{1};
  buffer.reset();
  CHECK(is_fault(signal_of_child([&] { static_cast<void>(seen[8 * kMiB]); })));
}

TEST_CASE_METHOD(Fixture, "AddressSanitizer knows where blocks end", "[virtual]") {
#if defined(__SANITIZE_ADDRESS__)
  const auto allowed = [&](const Buffer& buffer, std::size_t at) {
    const auto* seen = static_cast<std::byte*>(buffer.address()) + device.access_offset();
    return __asan_address_is_poisoned(seen + at) == 0;
  };
  auto a = device.allocate(1001, MemoryKind::device);
  const auto b = device.allocate(5 * kMiB, MemoryKind::device);
  CHECK(allowed(*a, 0));
  CHECK(allowed(*a, 1000));
  CHECK_FALSE(allowed(*a, 1001));
  CHECK(allowed(*b, 5 * kMiB - 1));
  CHECK_FALSE(allowed(*b, 5 * kMiB));
  for (int round = 0; round < 20; ++round) {  // what is freed and taken again is whole
    a.reset();
    a = device.allocate(1001 + static_cast<std::size_t>(round) * 200 * kMiB / 1000,
                        MemoryKind::device);
    for (std::size_t at = 0; at < a->bytes(); at += 100) REQUIRE(allowed(*a, at));
    CHECK_FALSE(allowed(*a, a->bytes()));
  }
#else
  SKIP("this build has no AddressSanitizer");
#endif
}

TEST_CASE_METHOD(Fixture, "a process with little address space", "[virtual]") {
  // The device has 16 GB and needs twice as many addresses; the child may have 10 GiB more.
  const pid_t child = fork();
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const std::size_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const rlimit limit{bytes + 10240 * kMiB, bytes + 10240 * kMiB};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    int verdict = 3;
    try {
      const auto small = device.allocate(1000 * kMiB, MemoryKind::device);
      verdict = 4;
      device.allocate(6000 * kMiB, MemoryKind::device);
    } catch (const Error& error) {
      const std::string_view text = error.what();
      const bool clear = text.find("may not reserve more addresses") != std::string_view::npos;
      if (verdict == 4 && clear && error.code() == ErrorCode::out_of_memory) verdict = 0;
    }
    _exit(verdict);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE_METHOD(Fixture, "kernels take operands of their device alone", "[virtual]") {
  gpu::GpuDevice& other = open("virtual:t4");
  const auto mine = allocate_floats(device, 10);
  const auto theirs = allocate_floats(other, 10);
  const auto host = allocate_host(40);
  const auto stream = device.make_stream();
  const Scale kernel(10, 1, 0);
  for (const auto& wrong : {host, theirs}) {
    const Launch launch(*wrong, *mine, device);
    std::string text;
    CHECK(error_of([&] { launch.args.input<float>(0); }, &text) == ErrorCode::internal);
    CHECK_THAT(text, ContainsSubstring("a copy is missing"));
    CHECK(error_of([&] { stream->launch(kernel, launch.args); }, &text) == ErrorCode::internal);
    CHECK_THAT(text, ContainsSubstring("a copy is missing"));
  }
  const Operand operand{host->address(), nullptr};
  const KernelArgs host_args({&operand, 1}, {&operand, 1}, {}, nullptr);
  CHECK(error_of([&] { stream->launch(kernel, host_args); }) == ErrorCode::internal);
  const Launch fine(*mine, *mine, device);
  stream->launch(kernel, fine.args);
  stream->synchronize();
}

TEST_CASE_METHOD(Fixture, "copies and fills are checked when asked for", "[virtual]") {
  gpu::GpuDevice& other = open("virtual:t4");
  const auto a = device.allocate(1000, MemoryKind::device);
  const auto b = other.allocate(1000, MemoryKind::device);
  std::vector<std::byte> host(4096);
  const auto stream = device.make_stream();
  const auto refused = [&](void* to, const Device* to_device, const void* from,
                           const Device* from_device, std::size_t bytes) {
    return error_of([&] { stream->copy(to, to_device, from, from_device, bytes); }) ==
           ErrorCode::internal;
  };
  auto* start = static_cast<std::byte*>(a->address());
  CHECK(refused(start, &device, host.data(), nullptr, 1001));
  CHECK(refused(start + 1, &device, host.data(), nullptr, 1000));
  CHECK(refused(start - 1, &device, host.data(), nullptr, 2));
  CHECK(refused(host.data(), nullptr, start + 1000, &device, 1));
  CHECK(refused(host.data(), &device, start, &device, 10));
  CHECK(refused(host.data(), nullptr, start, nullptr, 10));
  CHECK(refused(host.data(), nullptr, b->address(), nullptr, 10));
  CHECK(refused(host.data(), nullptr, b->address(), &device, 10));
  CHECK(refused(host.data(), nullptr, b->address(), &other, 10));
  CHECK(refused(b->address(), &other, b->address(), &other, 10));
  CHECK(error_of([&] { stream->fill(start, std::byte{0}, 1001); }) == ErrorCode::internal);
  CHECK(error_of([&] { stream->fill(host.data(), std::byte{0}, 1); }) == ErrorCode::internal);
  const auto event = other.make_event();
  CHECK(error_of([&] { stream->record(*event); }) == ErrorCode::internal);
  const auto unused = device.make_event();
  CHECK(error_of([&] { stream->wait(*unused); }) == ErrorCode::internal);
  CHECK(error_of([&] { unused->synchronize(); }) == ErrorCode::internal);
  stream->synchronize();  // none of it was queued
}

TEST_CASE_METHOD(Fixture, "memory freed while work on it is queued", "[virtual]") {
  const auto stream = device.make_stream();
  std::vector<std::byte> host(100);
  auto a = device.allocate(100, MemoryKind::device);
  stream->copy(host.data(), nullptr, a->address(), &device, 100);
  a.reset();
  std::string text;
  CHECK(error_of([&] { stream->synchronize(); }, &text) == ErrorCode::internal);
  CHECK_THAT(text, ContainsSubstring("any more"));
  auto b = allocate_floats(device, 10);
  auto c = allocate_floats(device, 10);
  const Launch launch(*b, *c, device);
  const Scale kernel(10, 1, 0);
  stream->launch(kernel, launch.args);
  b.reset();
  CHECK(error_of([&] { stream->synchronize(); }) == ErrorCode::internal);
  stream->synchronize();
}

TEST_CASE_METHOD(Fixture, "fresh and freed memory is poisoned", "[virtual]") {
  const auto stream = device.make_stream();
  const auto keep = allocate_floats(device, 1000);  // the chunk stays mapped
  auto a = allocate_floats(device, 1000);
  CHECK(all_nan(read(*stream, *a, 1000)));
  const std::vector<float> values = ramp(1000);
  upload(*stream, *a, values);
  CHECK(read(*stream, *a, 1000) == values);
  a.reset();
  a = allocate_floats(device, 1000);
  CHECK(all_nan(read(*stream, *a, 1000)));
  const auto large = allocate_floats(device, 3 * kMiB);
  CHECK(all_nan(read(*stream, *large, 3 * kMiB)));
}

TEST_CASE_METHOD(Fixture, "nothing is done before somebody waits", "[virtual]") {
  const auto up = device.make_stream();
  const auto down = device.make_stream();
  const auto uploaded = device.make_event();
  const auto a = allocate_floats(device, 100);
  const std::vector<float> values = ramp(100);
  std::vector<float> result(100);
  upload(*up, *a, values);
  up->record(*uploaded);
  SECTION("a missing wait shows as poison") {
    download(*down, result, *a);
    down->synchronize();
    CHECK(all_nan(result));
    up->synchronize();
    CHECK(read(*down, *a, 100) == ramp(100));
  }
  SECTION("with the wait the copy is right") {
    down->wait(*uploaded);
    download(*down, result, *a);
    down->synchronize();
    CHECK(result == ramp(100));
  }
  SECTION("an event's wait does what is before it and no more") {
    const auto b = allocate_floats(device, 100);
    upload(*up, *b, values);
    uploaded->synchronize();
    CHECK(read(*down, *a, 100) == ramp(100));
    CHECK(all_nan(read(*down, *b, 100)));
    up->synchronize();
    CHECK(read(*down, *b, 100) == ramp(100));
  }
  SECTION("work of a stream that goes away isn't done") {
    down->wait(*uploaded);
    auto gone = device.make_stream();
    const auto event = device.make_event();
    gone->record(*event);
    down->wait(*event);
    gone.reset();
    CHECK(error_of([&] { down->synchronize(); }) == ErrorCode::internal);
    CHECK(error_of([&] { event->synchronize(); }) == ErrorCode::internal);
    down->synchronize();
  }
}

TEST_CASE_METHOD(Fixture, "a missing wait of a writer is noticed, too", "[virtual]") {
  // `work` reads a buffer that `up` writes anew without waiting for the read.
  const auto up = device.make_stream();
  const auto work = device.make_stream();
  const auto uploaded = device.make_event();
  const auto read_done = device.make_event();
  const auto a = allocate_floats(device, 100);
  const auto b = allocate_floats(device, 100);
  const Launch launch(*a, *b, device);
  const Scale kernel(100, 1, 0);
  const std::vector<float> first = ramp(100);
  const std::vector<float> second = ramp(100, 500);
  const auto run = [&](bool wait) {
    upload(*up, *a, first);
    up->record(*uploaded);
    work->wait(*uploaded);
    work->launch(kernel, launch.args);
    work->record(*read_done);
    if (wait) up->wait(*read_done);
    upload(*up, *a, second);
    work->synchronize();
    up->synchronize();
    return read(*work, *b, 100);
  };
  CHECK(run(true) == first);
  CHECK(run(false) == first);  // late work is lucky here
  gpu::Faults faults;
  faults.others_first = true;
  device.set_faults(faults);
  CHECK(run(true) == first);
  CHECK(run(false) == second);
}

TEST_CASE_METHOD(Fixture, "long ways of waits over many streams", "[virtual]") {
  // A value goes round eight streams a hundred times, each adding one, before anybody waits.
  constexpr int kStreams = 8;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < kStreams; ++i) streams.push_back(device.make_stream());
  const auto a = allocate_floats(device, 16);
  const Launch launch(*a, *a, device);
  const Scale plus_one(16, 1, 1);
  const std::vector<float> values = ramp(16);
  upload(*streams[0], *a, values);
  for (int i = 0; i < 800; ++i) {
    Stream& stream = *streams[static_cast<std::size_t>(i % kStreams)];
    if (i > 0) stream.wait(*events.back());
    stream.launch(plus_one, launch.args);
    events.push_back(device.make_event());
    stream.record(*events.back());
  }
  for (const bool others_first : {false, true}) {
    gpu::Faults faults;
    faults.others_first = others_first;
    device.set_faults(faults);
    streams[7]->synchronize();
    CHECK(read(*streams[7], *a, 16) == ramp(16, 800));
  }
}

TEST_CASE_METHOD(Fixture, "errors reach those who depend on the work, once", "[virtual]") {
  const auto one = device.make_stream();
  const auto two = device.make_stream();
  const auto failed = device.make_event();
  const auto done = device.make_event();
  const auto a = allocate_floats(device, 10);
  const Launch launch(*a, *a, device);
  const Failing failing;
  std::vector<float> result(10, 5.0F);
  one->launch(failing, launch.args);
  download(*one, result, *a);  // left out
  one->record(*failed);
  two->wait(*failed);
  download(*two, result, *a);  // left out
  two->record(*done);
  CHECK(error_of([&] { failed->synchronize(); }) == ErrorCode::unsupported);
  CHECK(error_of([&] { done->synchronize(); }) == ErrorCode::unsupported);
  CHECK(error_of([&] { two->synchronize(); }) == ErrorCode::unsupported);
  CHECK(error_of([&] { one->synchronize(); }) == ErrorCode::unsupported);
  CHECK(result == std::vector<float>(10, 5.0F));
  one->synchronize();
  two->synchronize();
  const std::vector<float> values = ramp(10);
  upload(*one, *a, values);
  one->record(*failed);
  two->wait(*failed);
  CHECK(read(*two, *a, 10) == ramp(10));
  failed->synchronize();
}

namespace {

class SelfWaiting final : public PreparedKernel {
 public:
  void run(const KernelArgs&, Stream& stream) const override { stream.synchronize(); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a kernel that waits for its own stream", "[virtual]") {
  const auto stream = device.make_stream();
  const SelfWaiting kernel;
  stream->launch(kernel, KernelArgs({}, {}, {}, &device));
  CHECK(error_of([&] { stream->synchronize(); }) == ErrorCode::internal);
  stream->synchronize();
}

TEST_CASE_METHOD(Fixture, "the clock: prices and overlap", "[virtual]") {
  const DeviceInfo& info = device.info();
  const std::size_t count = 1 * kMiB;
  const double bytes = static_cast<double>(count) * 4;
  const auto a = allocate_floats(device, count);
  const auto b = allocate_floats(device, count);
  std::vector<float> up_values(count);
  std::vector<float> down_values(count);
  Scale kernel(0, 1, 0);
  kernel.cost.flops = 1e10;
  const Launch launch(*a, *a, device);
  const double up_seconds = copy_seconds(info, bytes, true);
  const double down_seconds = copy_seconds(info, bytes, false);
  const double kernel_seconds = roofline_seconds(info, kernel.cost, kernel.dtype);

  const auto s = device.make_stream();
  const auto begin = device.make_event();
  const auto end = device.make_event();
  const auto elapsed = [&] { return end->seconds() - begin->seconds(); };
  s->record(*begin);
  CHECK(begin->seconds() == 0);

  SECTION("one stream: the sum") {
    upload(*s, *a, up_values);
    s->launch(kernel, launch.args);
    download(*s, down_values, *a);
    s->record(*end);
    end->synchronize();
    CHECK_THAT(elapsed(), WithinRel(up_seconds + kernel_seconds + down_seconds, 1e-12));
  }
  SECTION("three streams: the longest") {
    const auto up = device.make_stream();
    const auto down = device.make_stream();
    const auto up_done = device.make_event();
    const auto down_done = device.make_event();
    download(*down, down_values, *b);
    down->record(*down_done);
    upload(*up, *a, up_values);
    up->record(*up_done);
    s->launch(kernel, launch.args);
    s->wait(*up_done);
    s->wait(*down_done);
    s->record(*end);
    s->synchronize();
    CHECK_THAT(elapsed(), WithinRel(std::max({up_seconds, kernel_seconds, down_seconds}), 1e-12));
  }
  SECTION("an engine does one thing at a time") {
    const auto other = device.make_stream();
    const auto other_end = device.make_event();
    s->launch(kernel, launch.args);
    other->launch(kernel, launch.args);
    other->record(*other_end);
    upload(*s, *a, up_values);
    upload(*other, *b, up_values);
    other->record(*end);
    other->synchronize();
    CHECK_THAT(other_end->seconds(), WithinRel(2 * kernel_seconds, 1e-12));
    CHECK_THAT(
        elapsed(),
        WithinRel(std::max(2 * kernel_seconds, kernel_seconds + up_seconds) + up_seconds, 1e-12));
    s->synchronize();
  }
  SECTION("work issued after the host has waited starts after it") {
    upload(*s, *a, up_values);
    s->synchronize();
    const auto other = device.make_stream();
    other->launch(kernel, launch.args);
    other->record(*end);
    end->synchronize();
    CHECK_THAT(elapsed(), WithinRel(up_seconds + kernel_seconds, 1e-12));
  }
  SECTION("a slow link") {
    gpu::Faults faults;
    faults.link_slowdown = 3;
    device.set_faults(faults);
    upload(*s, *a, up_values);
    s->launch(kernel, launch.args);
    s->record(*end);
    end->synchronize();
    CHECK_THAT(elapsed(), WithinRel(3 * up_seconds + kernel_seconds, 1e-12));
  }
  SECTION("inside the device: bytes read and written at the memory's rate") {
    s->copy(b->address(), &device, a->address(), &device, count * 4);
    s->record(*end);
    end->synchronize();
    Cost cost;
    cost.bytes_read = cost.bytes_written = bytes;
    CHECK_THAT(elapsed(), WithinRel(roofline_seconds(info, cost, DType::u8), 1e-12));
  }
}

TEST_CASE_METHOD(Fixture, "memory ends where the profile says", "[virtual]") {
  gpu::GpuDevice& h200 = open("virtual:h200");
  const auto memory = static_cast<std::size_t>(h200.info().memory_bytes.value);
  CHECK(memory > 100'000 * kMiB);
  // All but 3 MiB; only the poisoned ends of it are ever touched.
  auto large = h200.allocate(memory - 3 * kMiB, MemoryKind::device);
  std::string text;
  const auto ask = [&] { h200.allocate(4 * kMiB, MemoryKind::device); };
  CHECK(error_of(ask, &text) == ErrorCode::out_of_memory);
  CHECK_THAT(text, ContainsSubstring("virtual:h200: 4194304 bytes asked for, 3145728 of"));
  const auto rest = h200.allocate(3 * kMiB, MemoryKind::device);
  CHECK(h200.memory_use().bytes == memory / 256 * 256);
  CHECK(error_of([&] { h200.allocate(1, MemoryKind::device); }) == ErrorCode::out_of_memory);
  const auto stream = h200.make_stream();
  const std::vector<float> values = ramp(100);
  upload(*stream, *rest, values);
  auto* end = static_cast<std::byte*>(large->address()) + large->bytes() - 400;
  stream->copy(end, &h200, rest->address(), &h200, 400);
  std::vector<float> back(100);
  stream->copy(back.data(), nullptr, end, &h200, 400);
  stream->synchronize();
  CHECK(back == ramp(100));
  large.reset();
  CHECK(h200.memory_use().bytes == 3 * kMiB);
  large = h200.allocate(memory - 3 * kMiB, MemoryKind::device);
}

TEST_CASE_METHOD(Fixture, "every shipped device at the same time", "[virtual]") {
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::unique_ptr<Stream>> streams;
  const std::vector<std::string> names = backend->device_names();
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < names.size(); ++i) {
    values.push_back(ramp(1000, static_cast<float>(i)));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    Device& each = backend->open(names[i]);
    buffers.push_back(allocate_floats(each, 1000));
    streams.push_back(each.make_stream());
    upload(*streams[i], *buffers[i], values[i]);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    CHECK(read(*streams[i], *buffers[i], 1000) == values[i]);
  }
}

TEST_CASE_METHOD(Fixture, "a stream waits for another device's event", "[virtual]") {
  gpu::GpuDevice& other = open("virtual:mi300x");
  const auto a = allocate_floats(device, 100);
  const auto b = allocate_floats(other, 100);
  const std::vector<float> values = ramp(100);
  std::vector<float> staging(100);
  std::vector<float> result(100);
  const auto from = device.make_stream();
  const auto to = other.make_stream();
  const auto staged = device.make_event();
  upload(*from, *a, values);
  download(*from, staging, *a);
  from->record(*staged);
  to->wait(*staged);
  upload(*to, *b, staging);
  download(*to, result, *b);
  const auto end = other.make_event();
  to->record(*end);
  to->synchronize();
  CHECK(result == values);
  CHECK(end->seconds() > staged->seconds());
  // Of a device that shares nothing with this one.
  const auto stranger = make_virtual_backend();
  Device& far = stranger->open("virtual:l4");
  const auto c = allocate_floats(far, 100);
  const auto far_stream = far.make_stream();
  const auto far_event = far.make_event();
  const std::vector<float> others = ramp(100, 7);
  upload(*far_stream, *c, others);
  download(*far_stream, staging, *c);
  far_stream->record(*far_event);
  to->wait(*far_event);
  upload(*to, *b, staging);
  CHECK(read(*to, *b, 100) == others);
}

TEST_CASE_METHOD(Fixture, "injected faults", "[virtual]") {
  gpu::Faults faults;
  SECTION("the n-th allocation fails") {
    faults.fail_allocation = 2;
    device.set_faults(faults);
    const auto a = allocate_floats(device, 1);
    const auto b = allocate_floats(device, 1);
    std::string text;
    CHECK(error_of([&] { allocate_floats(device, 1); }, &text) == ErrorCode::out_of_memory);
    CHECK_THAT(text, ContainsSubstring("virtual:v100: 4 bytes asked for"));
    const auto c = allocate_floats(device, 1);
  }
  SECTION("the device is lost") {
    const auto stream = device.make_stream();
    const auto a = allocate_floats(device, 10);
    const Launch launch(*a, *a, device);
    const Scale kernel(10, 2, 0);
    const std::vector<float> values = ramp(10);
    upload(*stream, *a, values);
    faults.lose_device_after = 3;
    device.set_faults(faults);
    for (int i = 0; i < 3; ++i) stream->launch(kernel, launch.args);
    CHECK(read(*stream, *a, 10) == scaled(ramp(10), 8, 0));
    stream->launch(kernel, launch.args);
    std::string text;
    CHECK(error_of([&] { stream->synchronize(); }, &text) == ErrorCode::device_lost);
    CHECK_THAT(text, ContainsSubstring("virtual:v100"));
    CHECK(error_of([&] { read(*stream, *a, 10); }) == ErrorCode::device_lost);
    CHECK(error_of([&] { allocate_floats(device, 1); }) == ErrorCode::device_lost);
    device.set_faults({});
    stream->synchronize();
    CHECK(read(*stream, *a, 10) == scaled(ramp(10), 8, 0));
  }
}

TEST_CASE_METHOD(Fixture, "memory that caches hold is asked for again", "[virtual]") {
  gpu::Faults faults;
  faults.refuse_until_trim = true;
  device.set_faults(faults);
  CHECK(allocate_floats(device, 1)->address() != nullptr);
}

TEST_CASE_METHOD(Fixture, "peers copy without the host", "[virtual]") {
  gpu::GpuDevice& other = open("virtual:a100-80-sxm");
  const auto a = allocate_floats(device, 100);
  const auto b = allocate_floats(other, 100);
  const auto from = device.make_stream();
  const auto to = other.make_stream();
  const std::vector<float> values = ramp(100);
  upload(*from, *a, values);
  const auto there = device.make_event();
  from->record(*there);
  to->wait(*there);
  to->copy(b->address(), b->device(), a->address(), a->device(), 400);
  CHECK(read(*to, *b, 100) == values);
  // The way back is pushed by the owner.
  to->fill(b->address(), std::byte{0}, 400);
  to->copy(a->address(), a->device(), b->address(), b->device(), 400);
  to->synchronize();
  CHECK(read(*from, *a, 100) == std::vector<float>(100, 0));
  // A device of another driver can't be reached.
  const auto stranger = make_virtual_backend();
  Device& far = stranger->open("virtual:l4");
  const auto c = allocate_floats(far, 100);
  CHECK(error_of([&] { to->copy(b->address(), b->device(), c->address(), c->device(), 400); }) ==
        ErrorCode::internal);
}

TEST_CASE_METHOD(Fixture, "captured work runs again and again", "[virtual]") {
  const auto stream = device.make_stream();
  const auto other = device.make_stream();
  REQUIRE(stream->can_capture());
  const auto a = allocate_floats(device, 10);
  const auto b = allocate_floats(device, 10);
  const Launch first(*a, *b, device);
  const Launch second(*b, *a, device);
  const Scale twice(10, 2, 0), plus(10, 1, 1);
  const std::vector<float> values = ramp(10);
  upload(*stream, *a, values);
  stream->synchronize();
  stream->begin_capture();
  stream->launch(twice, first.args);
  stream->launch(plus, second.args);
  const auto event = device.make_event();
  CHECK(error_of([&] { stream->record(*event); }) == ErrorCode::internal);
  CHECK(error_of([&] { stream->synchronize(); }) == ErrorCode::internal);
  const auto work = stream->end_capture();
  CHECK(read(*stream, *a, 10) == values);  // nothing was done yet
  for (int i = 0; i < 3; ++i) stream->launch(*work);
  CHECK(read(*stream, *a, 10) == scaled(values, 8, 7));
  other->launch(*work);  // any stream of the device
  CHECK(read(*other, *a, 10) == scaled(values, 16, 15));
  // It takes the time of its parts.
  const auto begin = device.make_event();
  const auto end = device.make_event();
  const auto time = [&](auto run) {
    stream->record(*begin);
    run();
    stream->record(*end);
    stream->synchronize();
    return end->seconds() - begin->seconds();
  };
  const double apart = time([&] {
    stream->launch(twice, first.args);
    stream->launch(plus, second.args);
  });
  CHECK_THAT(time([&] { stream->launch(*work); }), WithinRel(apart, 1e-9));
}

TEST_CASE_METHOD(Fixture, "how often the host waits is counted", "[virtual]") {
  const auto stream = device.make_stream();
  const auto event = device.make_event();
  const std::int64_t before = device.synchronize_count();
  stream->record(*event);
  CHECK(device.synchronize_count() == before);
  event->synchronize();
  stream->synchronize();
  CHECK(device.synchronize_count() == before + 2);
}

TEST_CASE_METHOD(Fixture, "threads share one device through events", "[virtual]") {
  // One thread produces, one consumes; both streams are worked on by whoever waits.
  constexpr int kRounds = 200;
  const auto a = allocate_floats(device, 64);
  const auto b = allocate_floats(device, 64);
  const Launch launch(*a, *b, device);
  std::vector<std::unique_ptr<Scale>> kernels;
  std::vector<std::unique_ptr<Event>> events;
  const auto produce = device.make_stream();
  const auto consume = device.make_stream();
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> results(kRounds, std::vector<float>(64));
  for (int i = 0; i < kRounds; ++i) inputs.push_back(ramp(64, static_cast<float>(i)));
  const Scale kernel(64, 2, 0);
  for (int i = 0; i < kRounds; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i > 0) produce->wait(*events.back());
    upload(*produce, *a, inputs[at]);
    produce->launch(kernel, launch.args);
    events.push_back(device.make_event());
    produce->record(*events.back());
    consume->wait(*events.back());
    download(*consume, results[at], *b);
    events.push_back(device.make_event());
    consume->record(*events.back());
  }
  std::thread one([&] { produce->synchronize(); });
  std::thread two([&] { consume->synchronize(); });
  one.join();
  two.join();
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i] == scaled(inputs[i], 2, 0));
  }
}

#endif
