#pragma once

#include "backends/cpu/onednn/descs.hpp"

namespace turnout::onednn {

/// A value stored as a oneDNN memory descriptor says ("onednn:aBcd16b").
class OneDnnLayout final : public Layout {
 public:
  explicit OneDnnLayout(Desc desc) : desc_(std::move(desc)) {}

  std::string_view provider() const override { return "onednn"; }
  std::string name() const override;
  std::size_t bytes() const override { return desc_.get_size(); }
  bool equals(const Layout& other) const override;
  const Desc& desc() const { return desc_; }

 private:
  Desc desc_;
};

/// Null for the plain layout of `spec`.
LayoutPtr make_layout(const TensorSpec& spec, const Desc& desc);
/// The descriptor behind a layout; the plain one for null and for layouts of other providers or
/// of values with other dimensions.
Desc layout_desc(const TensorSpec& spec, const LayoutPtr& layout);

}  // namespace turnout::onednn
