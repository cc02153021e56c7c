// Kokkos kernels on a virtual device, driven by streams, against the references: every case whose
// op has such a kernel.
#include <cstdio>
#include <map>

#include <catch2/catch_test_macros.hpp>

#include "core/backend.hpp"
#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("kernels on a virtual device") { SKIP("this build has no virtual devices"); }

#else

#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/device_node.hpp"
#include "tests/support/host_device.hpp"

using namespace turnout;

TEST_CASE("every case with a Kokkos kernel, on a virtual device", "[virtual]") {
  const auto backend = make_virtual_backend();
  Device& device = backend->open("virtual:mi300x");
  KernelRegistry registry;
  backend->register_kernels(registry);
  const std::vector<std::string> providers = backend->default_providers();
  int ran = 0;
  std::map<std::string, int> without_kernel;
  for (const std::string& path : cases_files()) {
    for (const RandomData data : {RandomData::inputs, RandomData::known_after_first}) {
      for (const Case& test : read_cases(path, all_ops(), data)) {
        INFO(test.where << ": " << test.text);
        const NodeInfo info = test.graph.info(NodeId{0});
        const KernelEntry* entry = registry.select(info, device.info(), providers).entry;
        if (info.op->view) continue;
        if (entry == nullptr) {
          ++without_kernel[test.op];
          continue;
        }
        const auto kernel = entry->prepare({info, device, 1, {}, false});
        test::DeviceNode node{device, *kernel, info, {}};
        const std::vector<Tensor> got = node.run(test.inputs);
        const std::vector<Tensor> want = reference_outputs(test);
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          CHECK(test::difference(got[i], want[i], tolerance_of(info, want[i].dtype())) == "");
        }
        ++ran;
      }
    }
  }
  std::printf("%d cases ran on %s; left out, their ops have no Kokkos kernel for them:", ran,
              device.info().name.c_str());
  for (const auto& [op, count] : without_kernel) std::printf(" %s (%d)", op.c_str(), count);
  std::printf("\n");
  CHECK(ran > 100);
  CHECK(device.memory_use().bytes == 0);
}

#endif
