#include "backends/cpu/onednn/pack.hpp"

#include <list>
#include <mutex>

namespace turnout::onednn {
namespace {

Tensor scaled(const Tensor& constant, float scale) {
  Tensor copy = Tensor::empty(constant.spec());
  const auto from = constant.values<const float>();
  const auto to = copy.values<float>();
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] * scale;
  return copy;
}

std::shared_ptr<Buffer> pack(const Recipe::Packing& packing) {
  const Tensor& constant = packing.constant;
  const Tensor source = packing.scale == 1 ? constant : scaled(constant, packing.scale);
  auto packed = allocate_host(packing.to.get_size());
  dnnl::memory from(packing.from, engine(), source.address());
  dnnl::memory to(packing.to, engine(), packed->address());
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return packed;
}

/// What was packed and still is in use. Constants are immutable, so a live source buffer and an
/// offset stand for their contents.
struct Entry {
  std::weak_ptr<Buffer> source;
  std::size_t offset_bytes;
  Desc from, to;
  float scale;
  std::weak_ptr<Buffer> packed;

  bool expired() const { return source.expired() || packed.expired(); }
  bool matches(const Recipe::Packing& wanted) const {
    return source.lock() == wanted.constant.buffer() &&
           offset_bytes == wanted.constant.offset_bytes() && from == wanted.from &&
           to == wanted.to && scale == wanted.scale;
  }
};

struct Cache {
  std::mutex mutex;
  std::list<Entry> entries;
};

Cache& cache() {
  static Cache instance;
  return instance;
}

}  // namespace

std::shared_ptr<Buffer> pack_constant(const Recipe::Packing& packing) {
  Cache& shared = cache();
  const std::scoped_lock lock(shared.mutex);
  shared.entries.remove_if([](const Entry& entry) { return entry.expired(); });
  for (const Entry& entry : shared.entries) {
    if (!entry.matches(packing)) continue;
    if (auto packed = entry.packed.lock()) return packed;
  }
  auto packed = pack(packing);
  shared.entries.push_back({packing.constant.buffer(), packing.constant.offset_bytes(),
                            packing.from, packing.to, packing.scale, packed});
  return packed;
}

}  // namespace turnout::onednn
