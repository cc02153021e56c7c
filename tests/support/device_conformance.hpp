#pragma once

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.hpp"
#include "core/kernel.hpp"

// What every device has to do, whoever made it. check_device(device) is the suite; it has sections,
// so call it from a TEST_CASE of its own. The helpers serve other tests too.
namespace turnout::conformance {

/// y[i] = a * x[i] + b, floats: input 0 -> output 0.
class Scale final : public PreparedKernel {
 public:
  Scale(std::size_t count, float a, float b) : count_(count), a_(a), b_(b) {}
  void run(const KernelArgs& args, Stream&) const override {
    const auto* x = args.input<float>(0);
    auto* y = args.output<float>(0);
    for (std::size_t i = 0; i < count_; ++i) y[i] = a_ * x[i] + b_;
  }

 private:
  std::size_t count_;
  float a_, b_;
};

class Failing final : public PreparedKernel {
 public:
  void run(const KernelArgs&, Stream&) const override {
    fail(ErrorCode::unsupported, "this kernel always fails");
  }
};

/// Operands of one launch, which have to outlive it.
struct Launch {
  Launch(const Buffer& from, const Buffer& to, const Device& device)
      : input{from.address(), from.device()},
        output{to.address(), to.device()},
        args({&input, 1}, {&output, 1}, {}, device.info().is_host ? nullptr : &device) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Operand input;
  Operand output;
  KernelArgs args;
};

inline std::vector<float> ramp(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

inline std::shared_ptr<Buffer> allocate_floats(Device& device, std::size_t count) {
  return device.allocate(count * sizeof(float), MemoryKind::device);
}

inline void upload(Stream& stream, const Buffer& to, const std::vector<float>& from) {
  stream.copy(to.address(), to.device(), from.data(), nullptr, from.size() * sizeof(float));
}

// The stream reads them later.
void upload(Stream&, const Buffer&, std::vector<float>&&) = delete;

inline void download(Stream& stream, std::vector<float>& to, const Buffer& from) {
  stream.copy(to.data(), nullptr, from.address(), from.device(), to.size() * sizeof(float));
}

inline std::vector<float> scaled(std::vector<float> values, float a, float b) {
  for (float& value : values) value = a * value + b;
  return values;
}

/// The code of the Error that `f` throws; fails the test if it throws none. `text`: what() of it.
template <typename F>
ErrorCode error_of(F f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  FAIL("no Error was thrown");
  return ErrorCode::internal;
}

inline void check_memory(Device& device) {
  const Device::MemoryUse before = device.memory_use();
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::size_t asked = 0;
  for (const std::size_t bytes : {0UL, 1UL, 255UL, 256UL, 257UL, 4096UL, 3000001UL}) {
    buffers.push_back(device.allocate(bytes, MemoryKind::device));
    asked += bytes;
    const Buffer& buffer = *buffers.back();
    CHECK(buffer.bytes() == bytes);
    CHECK(buffer.address() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.address()) % 256 == 0);
    CHECK(buffer.device() == (device.info().is_host ? nullptr : &device));
  }
  for (const auto& a : buffers) {
    const auto* begin = static_cast<std::byte*>(a->address());
    for (const auto& b : buffers) {
      const auto* other = static_cast<std::byte*>(b->address());
      if (a != b) CHECK((begin + a->bytes() <= other || other + b->bytes() <= begin));
    }
  }
  CHECK(device.memory_use().bytes >= before.bytes + asked);
  const std::size_t peak = device.memory_use().peak_bytes;
  CHECK(peak >= before.bytes + asked);
  buffers.clear();
  CHECK(device.memory_use().bytes == before.bytes);
  CHECK(device.memory_use().peak_bytes == peak);

  const auto pinned = device.allocate(1000, MemoryKind::pinned_host);
  CHECK(pinned->device() == nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(pinned->address()) % 256 == 0);
  std::memset(pinned->address(), 1, 1000);
}

inline void check_out_of_memory(Device& device) {
  const std::size_t bytes = std::size_t{1} << 60;
  std::string text;
  const auto ask = [&] { device.allocate(bytes, MemoryKind::device); };
  CHECK(error_of(ask, &text) == ErrorCode::out_of_memory);
  CHECK_THAT(text, Catch::Matchers::StartsWith(device.info().name + ":"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring(std::to_string(bytes)));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("left"));
  allocate_floats(device, 10);  // still works
}

inline void check_copies(Device& device) {
  const auto stream = device.make_stream();
  CHECK(&stream->device() == &device);
  const auto a = allocate_floats(device, 1000);
  const auto b = allocate_floats(device, 1000);
  const std::vector<float> values = ramp(1000);
  std::vector<float> back(1000, -1.0F);
  upload(*stream, *a, values);
  // Inside the device, shifted by ten elements, then the whole to the host.
  stream->copy(b->address(), b->device(), a->address(), a->device(), 4000);
  stream->copy(static_cast<std::byte*>(b->address()) + 40, b->device(), a->address(), a->device(),
               3960);
  download(*stream, back, *b);
  stream->copy(nullptr, nullptr, nullptr, nullptr, 0);
  stream->synchronize();
  std::vector<float> expected = ramp(10);
  for (const float value : ramp(990)) expected.push_back(value);
  CHECK(back == expected);
  // Host to host.
  std::vector<float> other(1000);
  stream->copy(other.data(), nullptr, values.data(), nullptr, 4000);
  stream->synchronize();
  CHECK(other == values);
}

inline void check_fill(Device& device) {
  const auto stream = device.make_stream();
  const auto buffer = device.allocate(1000, MemoryKind::device);
  std::vector<unsigned char> back(1000);
  stream->fill(buffer->address(), std::byte{7}, 1000);
  stream->fill(static_cast<std::byte*>(buffer->address()) + 100, std::byte{9}, 50);
  stream->fill(buffer->address(), std::byte{1}, 0);
  stream->copy(back.data(), nullptr, buffer->address(), buffer->device(), 1000);
  stream->synchronize();
  for (std::size_t i = 0; i < back.size(); ++i) {
    REQUIRE(back[i] == (i >= 100 && i < 150 ? 9 : 7));
  }
}

// Long enough to make any queue grow; results depend on the order.
inline void check_launch_order(Device& device) {
  const auto stream = device.make_stream();
  const auto a = allocate_floats(device, 64);
  const auto b = allocate_floats(device, 64);
  const Launch forth(*a, *b, device);
  const Launch back(*b, *a, device);
  const Scale twice(64, 2, 0);
  const Scale half_and_one(64, 0.5F, 1);
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> values = ramp(64, static_cast<float>(round));
    std::vector<float> result(64);
    upload(*stream, *a, values);
    for (int i = 0; i < 1000; ++i) {
      stream->launch(twice, forth.args);
      stream->launch(half_and_one, back.args);
    }
    download(*stream, result, *a);
    stream->synchronize();
    CHECK(result == scaled(values, 1, 1000));
  }
}

// Upload on one stream, kernel on a second, download on a third; the same events again and again.
inline void check_events(Device& device) {
  const auto up = device.make_stream();
  const auto work = device.make_stream();
  const auto down = device.make_stream();
  const auto uploaded = device.make_event();
  const auto computed = device.make_event();
  const auto downloaded = device.make_event();
  const auto a = allocate_floats(device, 100);
  const auto b = allocate_floats(device, 100);
  const Launch launch(*a, *b, device);
  const Scale kernel(100, 3, 1);
  double last = -1;
  for (int round = 0; round < 5; ++round) {
    const std::vector<float> values = ramp(100, static_cast<float>(round));
    std::vector<float> result(100);
    upload(*up, *a, values);
    up->record(*uploaded);
    work->wait(*uploaded);
    work->launch(kernel, launch.args);
    work->record(*computed);
    down->wait(*computed);
    download(*down, result, *b);
    down->record(*downloaded);
    downloaded->synchronize();
    CHECK(result == scaled(values, 3, 1));
    CHECK(uploaded->seconds() <= computed->seconds());
    CHECK(computed->seconds() <= downloaded->seconds());
    CHECK(downloaded->seconds() >= last);
    last = downloaded->seconds();
  }
  for (const auto& stream : {up.get(), work.get(), down.get()}) stream->synchronize();
}

// An error comes out at the launch or at the next synchronize(), once.
inline void check_kernel_errors(Device& device) {
  const auto stream = device.make_stream();
  const auto a = allocate_floats(device, 10);
  const auto b = allocate_floats(device, 10);
  const Launch launch(*a, *b, device);
  const Failing failing;
  const auto run = [&] {
    stream->launch(failing, launch.args);
    stream->synchronize();
  };
  CHECK(error_of(run) == ErrorCode::unsupported);
  stream->synchronize();
  const Scale kernel(10, 2, 0);
  std::vector<float> result(10);
  const std::vector<float> values = ramp(10);
  upload(*stream, *a, values);
  stream->launch(kernel, launch.args);
  download(*stream, result, *b);
  stream->synchronize();
  CHECK(result == scaled(values, 2, 0));
}

inline void check_threads(Device& device) {
  constexpr int kThreads = 4;
  std::vector<int> right(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&device, &right, t] {
      const auto stream = device.make_stream();
      for (int round = 0; round < 50; ++round) {
        const std::size_t count = 100 + static_cast<std::size_t>(t * 37 + round);
        const auto a = allocate_floats(device, count);
        const auto b = allocate_floats(device, count);
        const Launch launch(*a, *b, device);
        const Scale kernel(count, 2, static_cast<float>(t));
        const std::vector<float> values = ramp(count, static_cast<float>(round));
        std::vector<float> result(count);
        upload(*stream, *a, values);
        stream->launch(kernel, launch.args);
        download(*stream, result, *b);
        stream->synchronize();
        if (result == scaled(values, 2, static_cast<float>(t))) {
          ++right[static_cast<std::size_t>(t)];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(kThreads, 50));
}

inline void check_device(Device& device) {
  INFO("device " << device.info().name);
  SECTION("memory") { check_memory(device); }
  SECTION("out of memory") { check_out_of_memory(device); }
  SECTION("copies") { check_copies(device); }
  SECTION("fill") { check_fill(device); }
  SECTION("launch order") { check_launch_order(device); }
  SECTION("events") { check_events(device); }
  SECTION("kernel errors") { check_kernel_errors(device); }
  SECTION("threads") { check_threads(device); }
}

}  // namespace turnout::conformance
