// Dispatch of loops, and indices that come from data.

#include <atomic>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/support.hpp"
#include "ops/all_ops.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/host_device.hpp"

using namespace turnout;
using namespace turnout::kokkos;

namespace {

struct Count {
  int* calls;
  void operator()(std::int64_t i) const { ++calls[i]; }
};

/// Every index once, whatever the number of threads and the length.
bool covers(const Parallel& parallel, std::int64_t n, double item_ns) {
  std::vector<int> calls(static_cast<std::size_t>(n) + 1, 0);
  parallel_for(parallel, n, item_ns, Count{calls.data()});
  return std::count(calls.begin(), calls.end(), 1) == n && calls.back() == 0;
}

constexpr double kShort = 0.001, kLong = 1e9;  // stay on the caller; use threads

struct NoteThread {
  std::atomic<int>* others;
  std::thread::id caller;
  void operator()(std::int64_t) const {
    if (std::this_thread::get_id() != caller) ++*others;
  }
};

int calls_elsewhere(int threads, double item_ns) {
  std::atomic<int> others = 0;
  parallel_for(Parallel(threads), 64, item_ns, NoteThread{&others, std::this_thread::get_id()});
  return others;
}

}  // namespace

TEST_CASE("loops call every index once") {
  for (const int threads : {1, 2, 3, 7}) {
    const Parallel parallel(threads);
    for (const std::int64_t n : {0, 1, 2, 3, 6, 7, 8, 1000}) {
      INFO("threads " << threads << ", n " << n);
      CHECK(covers(parallel, n, kShort));
      CHECK(covers(parallel, n, kLong));
    }
  }
}

TEST_CASE("short loops and single threads stay on the caller, long ones don't") {
  CHECK(calls_elsewhere(1, kLong) == 0);
  CHECK(calls_elsewhere(2, kShort) == 0);
  CHECK(calls_elsewhere(2, kLong) == 32);
}

TEST_CASE("more threads dispatch at once than there are Kokkos instances") {
  constexpr int kThreads = 12;
  const Parallel parallel(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        if (!covers(parallel, 257, kLong)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

namespace {

struct Visit {
  Loops<2> loops;
  std::vector<std::int64_t>* seen;  // index in a dense tensor, then the two offsets
  void operator()(std::int64_t item) const {
    for_rows(loops, item, [&](const RowPlace<2>& place) {
      for (std::int64_t i = 0; i < place.length; ++i) {
        seen->push_back(place.dense + i);
        for (int k = 0; k < 2; ++k) seen->push_back(place.offsets[k] + i * loops.row_stride(k));
      }
    });
  }
};

/// Offsets of both operands at every element, in order, by definition.
std::vector<std::int64_t> all_offsets(const Shape& shape, const Strides& a, const Strides& b) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, offset_a = 0, offset_b = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      offset_a += rest % shape[axis] * a[at];
      offset_b += rest % shape[axis] * b[at];
      rest /= shape[axis];
    }
    result.insert(result.end(), {i, offset_a, offset_b});
  }
  return result;
}

}  // namespace

TEST_CASE("collapsed loops visit the same elements in the same order") {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {3, 1}},
      {{2, 3, 4}, {4}},       {{2, 3, 4}, {2, 1, 1}},
      {{1, 1}, {}},           {{}, {}},
      {{2, 0, 3}, {3}},       {{3, 20000}, {3, 1}},
      {{5000, 2, 2}, {2}},    {{2, 1, 3, 1, 2, 2, 1, 2}, {3, 1, 1, 2, 1, 2}}};
  for (const auto& [shape, operand] : shapes) {
    INFO(to_string(shape) << " with " << to_string(operand));
    const Strides a = dense_strides(shape), b = broadcast_strides(operand, shape);
    std::vector<std::int64_t> seen;
    const Visit visit{make_loops<2>(shape, {a, b}), &seen};
    for (std::int64_t item = 0; item < visit.loops.items; ++item) visit(item);
    CHECK(seen == all_offsets(shape, a, b));
  }
  const auto merged = make_loops<2>(
      {8, 64, 56, 56},
      {dense_strides({8, 64, 56, 56}), broadcast_strides({64, 1, 1}, {8, 64, 56, 56})});
  CHECK(merged.rank == 3);
  CHECK(merged.length() == 56 * 56);
}

TEST_CASE("indices out of range are an error, and nothing outside is touched") {
  test::Host host;
  const std::vector<std::string> lines = {
      "gather f32[5,6] i64[4] ints=5:9",
      "gather f32[5,6] i32[4] ints=-9:-6",
      "gather f32[0,6] i64[4] ints=0:0",
      "gather_elements f32[5,6] i64[5,6] ints=6:9 axis=1",
      "gather_nd f32[5,6] i64[3,2] ints=6:9",
      "scatter_elements f32[5,6] i64[2,6] f32[2,6] ints=5:9",
      "scatter_nd f32[5,6] i64[3,1] f32[3,6] ints=5:9",
      "reverse_sequence f32[4,3,2] i64[3] ints=5:9",
  };
  const std::vector<std::string> providers{"kokkos"};
  for (const std::string& line : lines) {
    INFO(line);
    const Case one = parse_cases(line, "test", all_ops()).at(0);
    const NodeInfo info = one.graph.info(NodeId{0});
    const auto selection = host.registry.select(info, host.device.info(), providers);
    REQUIRE(selection.entry != nullptr);
    for (const int threads : {1, 2}) {
      const test::HostNode node(host, info, *selection.entry, threads, false);
      std::vector<Tensor> inputs;
      for (const Tensor* tensor : operands(one)) inputs.push_back(*tensor);
      CHECK_THROWS_WITH(node.run(inputs), Catch::Matchers::ContainsSubstring("out of range"));
    }
  }
}
