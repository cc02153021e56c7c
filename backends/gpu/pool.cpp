#include "backends/gpu/pool.hpp"

#include <algorithm>

namespace turnout::gpu {
namespace {

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Bytes a block takes of the arena. Only for sizes no larger than the arena.
std::size_t rounded(std::size_t bytes) {
  return round_up(std::max<std::size_t>(bytes, 1), Pool::kAlignment);
}

}  // namespace

Pool::Pool(std::size_t bytes, std::size_t chunk_bytes)
    : bytes_(bytes / kAlignment * kAlignment), chunk_bytes_(chunk_bytes) {
  if (bytes_ > 0) add_free(0, bytes_);
}

void Pool::add_free(std::size_t begin, std::size_t end) {
  free_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

void Pool::remove_free(std::map<std::size_t, std::size_t>::iterator at) {
  by_size_.erase({at->second - at->first, at->first});
  free_.erase(at);
}

Pool::Range Pool::chunks(Range block, Range hole) const {
  const std::size_t first = block.begin / chunk_bytes_ * chunk_bytes_;
  const std::size_t last = round_up(block.end, chunk_bytes_);
  // The arena's last chunk may be a part of one: nothing else is in it.
  const std::size_t hole_end = hole.end == bytes_ ? last : hole.end / chunk_bytes_ * chunk_bytes_;
  const Range range{std::max(first, round_up(hole.begin, chunk_bytes_)), std::min(last, hole_end)};
  return range.empty() ? Range{} : range;
}

std::optional<Pool::Block> Pool::allocate(std::size_t bytes) {
  if (bytes > bytes_) return std::nullopt;
  const std::size_t taken = rounded(bytes);
  const auto fit = by_size_.lower_bound({taken, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto hole_at = free_.find(fit->second);
  const Range hole{hole_at->first, hole_at->second};
  const Range block{hole.begin, hole.begin + taken};
  remove_free(hole_at);
  if (block.end < hole.end) add_free(block.end, hole.end);
  live_.emplace(block.begin, bytes);
  in_use_ += taken;
  peak_ = std::max(peak_, in_use_);
  return Block{block.begin, chunks(block, hole)};
}

Pool::Range Pool::release(std::size_t offset) {
  const auto at = live_.find(offset);
  if (at == live_.end()) return {};
  const std::size_t taken = rounded(at->second);
  live_.erase(at);
  in_use_ -= taken;
  const Range block{offset, offset + taken};
  Range hole = block;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == block.end) {
    hole.end = next->second;
    remove_free(next++);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->second == block.begin) {
      hole.begin = previous->first;
      remove_free(previous);
    }
  }
  add_free(hole.begin, hole.end);
  return chunks(block, hole);
}

std::size_t Pool::taken_bytes(std::size_t offset) const { return rounded(live_.at(offset)); }

bool Pool::is_live(std::size_t offset, std::size_t bytes) const {
  auto at = live_.upper_bound(offset);
  if (at == live_.begin()) return false;
  --at;
  const std::size_t inside = offset - at->first;
  return inside <= at->second && bytes <= at->second - inside;
}

}  // namespace turnout::gpu
