#include "backends/cpu/onednn/layout.hpp"

#include <algorithm>
#include <numeric>

namespace turnout::onednn {

// oneDNN's own way of writing a layout: one letter a dimension, outermost first, capital where the
// dimension is split into blocks, whose sizes follow: aBcd16b.
std::string OneDnnLayout::name() const {
  const Dims strides = desc_.get_strides();
  const Dims blocks = desc_.get_inner_blks();
  const Dims blocked = desc_.get_inner_idxs();
  std::vector<std::size_t> order(strides.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  std::string text = "onednn:";
  for (const std::size_t axis : order) {
    const bool split = std::find(blocked.begin(), blocked.end(),
                                 static_cast<dnnl::memory::dim>(axis)) != blocked.end();
    text += static_cast<char>((split ? 'A' : 'a') + static_cast<int>(axis));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    text += std::to_string(blocks[i]) + static_cast<char>('a' + static_cast<int>(blocked[i]));
  }
  return text;
}

bool OneDnnLayout::equals(const Layout& other) const {
  const auto* same_kind = dynamic_cast<const OneDnnLayout*>(&other);
  return same_kind != nullptr && desc_ == same_kind->desc_;
}

LayoutPtr make_layout(const TensorSpec& spec, const Desc& desc) {
  if (desc == plain_desc(spec)) return nullptr;
  return std::make_shared<OneDnnLayout>(desc);
}

Desc layout_desc(const TensorSpec& spec, const LayoutPtr& layout) {
  const auto* own = dynamic_cast<const OneDnnLayout*>(layout.get());
  if (own != nullptr && own->desc().get_dims() == to_dims(spec.shape)) return own->desc();
  return plain_desc(spec);
}

}  // namespace turnout::onednn
