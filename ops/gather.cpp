// Ops that read at indices, which come from data: out of range is an error of the run.
#include <algorithm>

#include "ops/families.hpp"
#include "ops/gather.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

using Dims = std::vector<std::int64_t>;

int gather_axis(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
}

std::vector<TensorSpec> infer_gather(const NodeInfo& info) {
  require_index_type(info, 1);
  const Shape& data = info.input(0).shape;
  const Shape& indices = info.input(1).shape;
  const int axis = gather_axis(info);
  Dims dims(data.begin(), data.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + axis + 1, data.end());
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

void reference_gather(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const Shape& data = inputs[0]->shape();
  const int axis = gather_axis(info);
  const std::int64_t inner = data.elements(axis + 1, data.rank());
  const Dims indices = to_int64(*inputs[1]);
  const auto count = static_cast<std::int64_t>(indices.size());
  for (std::int64_t i = 0; i < outputs[0].elements(); ++i) {
    const std::int64_t outer = i / inner / count;
    const std::int64_t index = indices[static_cast<std::size_t>(i / inner % count)];
    const std::int64_t row = outer * data[axis] + checked_index(info, index, data[axis]);
    copy_element(outputs[0], i, *inputs[0], row * inner + i % inner);
  }
}

std::vector<TensorSpec> infer_gather_elements(const NodeInfo& info) {
  require_index_type(info, 1);
  require_inside(info, info.input(1).shape, gather_axis(info));
  return {{info.input(0).dtype, info.input(1).shape}};
}

void reference_gather_elements(const NodeInfo& info, std::span<const Tensor* const> inputs,
                               std::span<Tensor> outputs) {
  const Shape& data = inputs[0]->shape();
  const int axis = gather_axis(info);
  const Index strides = data.strides();
  const Dims indices = to_int64(*inputs[1]);
  for_each_index(outputs[0].shape(), [&](Index index, std::int64_t i) {
    index[static_cast<std::size_t>(axis)] =
        checked_index(info, indices[static_cast<std::size_t>(i)], data[axis]);
    copy_element(outputs[0], i, *inputs[0], offset_of(index, strides));
  });
}

std::vector<TensorSpec> infer_gather_nd(const NodeInfo& info) {
  require_dtype(info, 1, DType::i64);
  const Shape& data = info.input(0).shape;
  const Shape& indices = info.input(1).shape;
  const std::int64_t batch = info.attrs->integer("batch_dims");
  if (data.rank() < 1 || indices.rank() < 1 || batch < 0 ||
      batch >= std::min(data.rank(), indices.rank())) {
    info.fail(fmt::format("batch_dims {} for {} and {}", batch, to_string(info.input(0)),
                          to_string(info.input(1))));
  }
  const std::int64_t depth = indices.dim(-1);
  if (depth > data.rank() - batch) {
    info.fail(fmt::format("index tuples of {} into {}", depth, to_string(info.input(0))));
  }
  for (int axis = 0; axis < batch; ++axis) {
    if (data[axis] != indices[axis]) info.fail(fmt::format("batch dimension {} differs", axis));
  }
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + batch + depth, data.end());
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

void reference_gather_nd(const NodeInfo& info, std::span<const Tensor* const> inputs,
                         std::span<Tensor> outputs) {
  const Shape& data = inputs[0]->shape();
  const Shape& shape = inputs[1]->shape();
  const auto batch = static_cast<int>(info.attrs->integer("batch_dims"));
  const auto depth = static_cast<int>(shape.dim(-1));
  const std::int64_t slice = data.elements(batch + depth, data.rank());
  const std::int64_t tuples = shape.elements(batch, shape.rank() - 1);  // per batch entry
  const Dims indices = to_int64(*inputs[1]);
  for (std::int64_t i = 0; i < outputs[0].elements(); ++i) {
    const std::int64_t tuple = i / slice;
    std::int64_t row = tuple / tuples;
    for (int d = 0; d < depth; ++d) {
      const std::int64_t index = indices[static_cast<std::size_t>(tuple * depth + d)];
      row = row * data[batch + d] + checked_index(info, index, data[batch + d]);
    }
    copy_element(outputs[0], i, *inputs[0], row * slice + i % slice);
  }
}

OpDef gather_op(std::string name, std::string doc, OpDef::Infer infer, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.cost = [](const NodeInfo& info) {
    Cost cost = movement_cost(info);
    cost.bytes_read += static_cast<double>(info.input(1).bytes());
    return cost;
  };
  def.reference = reference;
  def.tolerance = exact_tolerance;
  return def;
}

}  // namespace

std::int64_t checked_index(const NodeInfo& info, std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) {
    info.fail(fmt::format("index {} is out of range for a dimension of {}", index, size));
  }
  return index < 0 ? index + size : index;
}

void require_inside(const NodeInfo& info, const Shape& part, int axis) {
  const Shape& data = info.input(0).shape;
  bool fits = part.rank() == data.rank();
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || part[i] <= data[i];
  if (!fits) {
    info.fail(fmt::format("indices {} don't fit into {} beyond axis {}", to_string(part),
                          to_string(info.input(0)), axis));
  }
}

void register_gather_ops(OpRegistry& ops) {
  OpDef gather = gather_op("gather", "Slices of input 0 along an axis, at the indices in input 1.",
                           infer_gather, reference_gather);
  gather.attrs = {attr("axis", std::int64_t{0}, "Axis the indices are about.")};
  ops.add(std::move(gather));

  OpDef elements = gather_op("gather_elements",
                             "Elements of input 0 at the positions of input 1, "
                             "but along the axis at its indices.",
                             infer_gather_elements, reference_gather_elements);
  elements.attrs = {attr("axis", std::int64_t{0}, "Axis the indices are about.")};
  ops.add(std::move(elements));

  OpDef nd = gather_op("gather_nd",
                       "Slices of input 0 at the index tuples along the last axis of "
                       "input 1.",
                       infer_gather_nd, reference_gather_nd);
  nd.attrs = {attr("batch_dims", std::int64_t{0}, "Leading dimensions both share.")};
  ops.add(std::move(nd));

  register_scatter_ops(ops);
}

}  // namespace turnout
