// The pool of device memory, against a plain list of blocks.
#include <map>
#include <random>

#include <catch2/catch_test_macros.hpp>

#include "generated/turnout_config.hpp"

#if !TURNOUT_HAS_VIRTUAL

TEST_CASE("pool") { SKIP("this build has no virtual devices"); }

#else

#include "backends/gpu/pool.hpp"

using turnout::gpu::Pool;

namespace {

constexpr std::size_t kChunk = 4096;

}  // namespace

TEST_CASE("a block takes the smallest range that fits; neighbours join", "[pool]") {
  Pool pool(100 * 256, kChunk);
  const auto a = pool.allocate(20 * 256);
  const auto b = pool.allocate(256);
  const auto c = pool.allocate(10 * 256);
  const auto d = pool.allocate(256);
  REQUIRE((a && b && c && d));
  pool.release(a->offset);
  pool.release(c->offset);
  const auto e = pool.allocate(9 * 256 + 1);
  REQUIRE(e);
  CHECK(e->offset == c->offset);
  pool.release(e->offset);
  pool.release(b->offset);
  CHECK(pool.largest_free_bytes() == 68 * 256);
  CHECK(pool.allocate(31 * 256)->offset == a->offset);
  pool.release(a->offset);
  pool.release(d->offset);
  CHECK(pool.largest_free_bytes() == 100 * 256);
  CHECK(pool.bytes_in_use() == 0);
  CHECK(pool.peak_bytes() == 32 * 256);
}

TEST_CASE("odd sizes", "[pool]") {
  Pool pool(1000, kChunk);
  CHECK(pool.bytes() == 768);
  CHECK_FALSE(pool.allocate(769));
  CHECK_FALSE(pool.allocate(~std::size_t{0}));
  const auto nothing = pool.allocate(0);
  REQUIRE(nothing);
  CHECK(pool.is_live(nothing->offset, 0));
  CHECK_FALSE(pool.is_live(nothing->offset, 1));
  const auto all = pool.allocate(512);
  REQUIRE(all);
  CHECK_FALSE(pool.allocate(0));
  CHECK(pool.is_live(all->offset + 511, 1));
  CHECK_FALSE(pool.is_live(all->offset + 511, 2));
  CHECK_FALSE(pool.is_live(all->offset + 512, 1));
  CHECK_FALSE(pool.is_live(5000, 1));
  Pool empty(0, kChunk);
  CHECK_FALSE(empty.allocate(0));
}

TEST_CASE("random use: blocks don't overlap, and what they touch is mapped", "[pool]") {
  constexpr std::size_t kBytes = 20 * kChunk + 3 * 256;  // the last chunk is a part of one
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Pool pool(kBytes, kChunk);
    std::map<std::size_t, std::size_t> live;
    std::vector<bool> mapped(21, false);
    for (int step = 0; step < 2000; ++step) {
      if (live.empty() || random() % 5 < 3) {
        const std::size_t bytes = random() % (random() % 4 == 0 ? 5 * kChunk : 1000);
        const std::size_t taken = std::max<std::size_t>((bytes + 255) / 256 * 256, 256);
        const std::size_t largest = pool.largest_free_bytes();
        const auto block = pool.allocate(bytes);
        REQUIRE(block.has_value() == (taken <= largest));
        if (!block) continue;
        const std::size_t begin = block->offset;
        REQUIRE(begin % 256 == 0);
        REQUIRE(begin + taken <= kBytes);
        const auto next = live.lower_bound(begin);
        if (next != live.end()) REQUIRE(begin + taken <= next->first);
        if (next != live.begin()) {
          const auto previous = std::prev(next);
          REQUIRE(previous->first + std::max<std::size_t>(previous->second, 1) <= begin);
        }
        live.emplace(begin, bytes);
        REQUIRE((block->map.begin % kChunk == 0 && block->map.end % kChunk == 0));
        for (std::size_t c = block->map.begin / kChunk; c < block->map.end / kChunk; ++c) {
          REQUIRE_FALSE(mapped[c]);
          mapped[c] = true;
        }
      } else {
        auto at = live.begin();
        std::advance(at, random() % live.size());
        const Pool::Range unmap = pool.release(at->first);
        live.erase(at);
        for (std::size_t c = unmap.begin / kChunk; c < unmap.end / kChunk; ++c) {
          REQUIRE(mapped[c]);
          mapped[c] = false;
        }
      }
      // Mapped: exactly the chunks that a block touches.
      std::vector<bool> touched(21, false);
      std::size_t in_use = 0;
      for (const auto& [begin, bytes] : live) {
        const std::size_t taken = std::max<std::size_t>((bytes + 255) / 256 * 256, 256);
        in_use += taken;
        for (std::size_t c = begin / kChunk; c <= (begin + taken - 1) / kChunk; ++c) {
          touched[c] = true;
        }
      }
      REQUIRE(mapped == touched);
      REQUIRE(pool.bytes_in_use() == in_use);
    }
  }
}

#endif
