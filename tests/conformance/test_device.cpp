// The device suite on every device of this build.
#include "tests/support/device_conformance.hpp"

#include <catch2/generators/catch_generators_range.hpp>

#include "core/backend.hpp"

using namespace turnout;

TEST_CASE("every device of this build") {
  // The body runs once per device and section, each time with backends of its own.
  const auto backends = make_backends();
  std::vector<std::pair<std::size_t, std::string>> devices;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    for (const std::string& name : backends[i]->device_names()) devices.emplace_back(i, name);
  }
  REQUIRE(!devices.empty());
  const auto [backend, name] = GENERATE_COPY(from_range(devices));
  Device& device = backends[backend]->open(name);
  CHECK(device.info().name == name);
  CHECK(&backends[backend]->open(name) == &device);
  conformance::check_device(device);
}

TEST_CASE("backends say what they don't know") {
  for (const auto& backend : make_backends()) {
    std::string text;
    const std::string name = std::string(backend->name()) + ":no-such-device";
    CHECK(conformance::error_of([&] { backend->open(name); }, &text) == ErrorCode::not_found);
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("no-such-device"));
    KernelRegistry registry;
    backend->register_kernels(registry);
    if (backend->device_names().empty()) {  // a plugin's, with no such hardware here
      CHECK_FALSE(backend->missing().empty());
      continue;
    }
    REQUIRE(!backend->default_providers().empty());
    for (const std::string& provider : backend->default_providers()) {
      CHECK(registry.kernel_count(provider) > 0);
    }
  }
}
