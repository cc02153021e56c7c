#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace turnout::gpu {

/// Divides an arena into blocks: best fit, neighbours that become free are joined. Deals in offsets
/// alone and touches no memory. Also says which chunks of the arena need memory behind them: those
/// that a block in use touches.
///
/// Example, chunks of 4: allocate(6) -> block [0,6), map [0,8). allocate(4) -> block [6,10), map
/// [8,12). release(0) -> unmap [0,4): chunk [4,8) still has a block in use.
///
/// Not thread-safe: the device locks it.
class Pool {
 public:
  static constexpr std::size_t kAlignment = 256;

  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool empty() const { return begin >= end; }
  };
  struct Block {
    std::size_t offset = 0;
    Range map;  ///< whole chunks, to be mapped before use; may be empty
  };

  /// `chunk_bytes`: a multiple of kAlignment.
  Pool(std::size_t bytes, std::size_t chunk_bytes);

  /// The smallest free range that fits, or nothing. A block of 0 bytes takes one alignment unit.
  std::optional<Block> allocate(std::size_t bytes);
  /// Gives a block back. Returns the whole chunks that no block in use touches any more.
  Range release(std::size_t offset);
  /// True if [offset, offset + bytes) lies inside one block in use (its size as asked for).
  bool is_live(std::size_t offset, std::size_t bytes) const;
  /// What the block in use at `offset` takes of the arena.
  std::size_t taken_bytes(std::size_t offset) const;

  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_in_use() const { return in_use_; }
  std::size_t peak_bytes() const { return peak_; }
  std::size_t largest_free_bytes() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void add_free(std::size_t begin, std::size_t end);
  void remove_free(std::map<std::size_t, std::size_t>::iterator at);
  /// Chunks that overlap `block` and lie wholly in `hole`.
  Range chunks(Range block, Range hole) const;

  std::size_t bytes_;
  std::size_t chunk_bytes_;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::map<std::size_t, std::size_t> free_;                // begin -> end
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // free ranges: bytes, begin
  std::map<std::size_t, std::size_t> live_;                // begin -> bytes asked for
};

}  // namespace turnout::gpu
