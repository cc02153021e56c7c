// depth_to_space and space_to_depth: blocks of a plane become channels, and back. Both are a
// reshape, a transpose and a reshape; here written as where each output element comes from.
#include "ops/movement.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

// blocksize, if it is at least 1 and the input is [N, C, H, W].
std::int64_t block_size(const NodeInfo& info) {
  const std::int64_t block = info.attrs->integer("blocksize");
  if (info.input(0).shape.rank() != 4) {
    info.fail(fmt::format("input {} is not [N,C,H,W]", to_string(info.input(0))));
  }
  if (block < 1) info.fail(fmt::format("blocksize {}", block));
  return block;
}

bool channel_first(const NodeInfo& info) {
  const std::string& mode = info.attrs->text("mode");
  if (mode != "DCR" && mode != "CRD") info.fail(fmt::format("mode '{}' is not DCR or CRD", mode));
  return mode == "CRD";
}

std::vector<TensorSpec> infer_depth_to_space(const NodeInfo& info) {
  const std::int64_t block = block_size(info);
  channel_first(info);
  const Shape& x = info.input(0).shape;
  const std::int64_t area = checked_multiply(info, block, block);
  if (x[1] % area != 0) {
    info.fail(fmt::format("{} channels can't be divided by {}", x[1], area));
  }
  const std::vector<std::int64_t> dims = {x[0], x[1] / area, checked_multiply(info, x[2], block),
                                          checked_multiply(info, x[3], block)};
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

void reference_depth_to_space(const NodeInfo& info, std::span<const Tensor* const> inputs,
                              std::span<Tensor> outputs) {
  const std::int64_t block = block_size(info);
  const bool crd = channel_first(info);
  const Index strides = inputs[0]->shape().strides();
  const std::int64_t channels = outputs[0].shape()[1];
  gather_elements_from(outputs[0], *inputs[0], [&](const Index& index) {
    const std::int64_t place = index[2] % block * block + index[3] % block;
    const std::int64_t channel =
        crd ? index[1] * block * block + place : place * channels + index[1];
    return offset_of({index[0], channel, index[2] / block, index[3] / block}, strides);
  });
}

std::vector<TensorSpec> infer_space_to_depth(const NodeInfo& info) {
  const std::int64_t block = block_size(info);
  const Shape& x = info.input(0).shape;
  if (x[2] % block != 0 || x[3] % block != 0) {
    info.fail(fmt::format("{} can't be cut into blocks of {}", to_string(info.input(0)), block));
  }
  const std::int64_t area = checked_multiply(info, block, block);
  const std::vector<std::int64_t> dims = {x[0], checked_multiply(info, x[1], area), x[2] / block,
                                          x[3] / block};
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

void reference_space_to_depth(const NodeInfo& info, std::span<const Tensor* const> inputs,
                              std::span<Tensor> outputs) {
  const std::int64_t block = block_size(info);
  const Index strides = inputs[0]->shape().strides();
  const std::int64_t channels = inputs[0]->shape()[1];
  gather_elements_from(outputs[0], *inputs[0], [&](const Index& index) {
    const std::int64_t place = index[1] / channels;
    return offset_of({index[0], index[1] % channels, index[2] * block + place / block,
                      index[3] * block + place % block},
                     strides);
  });
}

OpDef block_op(std::string name, std::string doc, OpDef::Infer infer, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.attrs = {required_attr("blocksize", AttrType::integer, "Edge of a block.")};
  def.infer = infer;
  def.cost = movement_cost;
  def.reference = reference;
  def.tolerance = exact_tolerance;
  return def;
}

}  // namespace

void register_block_ops(OpRegistry& ops) {
  OpDef depth = block_op("depth_to_space", "Channels become blocks of the plane.",
                         infer_depth_to_space, reference_depth_to_space);
  depth.attrs.push_back(attr("mode", std::string("DCR"),
                             "DCR: places in the block change slower than output channels; CRD: "
                             "faster."));
  ops.add(std::move(depth));
  ops.add(block_op("space_to_depth", "Blocks of the plane become channels.", infer_space_to_depth,
                   reference_space_to_depth));
}

}  // namespace turnout
