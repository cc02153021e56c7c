// Ops that take, add, clear or turn round parts of axes: slice, pad, trilu, reverse_sequence.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/movement.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

using Dims = std::vector<std::int64_t>;

SliceAxis slice_axis(const NodeInfo& info, std::int64_t start, std::int64_t end, std::int64_t step,
                     std::int64_t size) {
  if (step == 0) info.fail("a step is 0");
  step = std::max(step, -std::numeric_limits<std::int64_t>::max());
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  start = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0,
                                   std::max<std::int64_t>(high, 0));
  end = std::clamp<std::int64_t>(end < 0 ? end + size : end, low, std::max(high, low));
  SliceAxis axis{start, step, 0};
  if (step > 0 && end > start) axis.count = (end - start - 1) / step + 1;
  if (step < 0 && end < start && size > 0) axis.count = (start - end - 1) / -step + 1;
  return axis;
}

std::vector<TensorSpec> infer_slice(const NodeInfo& info) {
  TensorSpec spec = info.input(0);
  int i = 0;
  for (const SliceAxis& axis : slice_axes(info)) spec.shape.set(i++, axis.count);
  return {spec};
}

void reference_slice(const NodeInfo& info, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const std::vector<SliceAxis> axes = slice_axes(info);
  const Index strides = inputs[0]->shape().strides();
  gather_elements_from(outputs[0], *inputs[0], [&](const Index& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      // The step of the only element of an axis may be anything.
      const std::int64_t moved = index[i] == 0 ? 0 : index[i] * axes[i].step;
      offset += (axes[i].start + moved) * strides[i];
    }
    return offset;
  });
}

std::vector<TensorSpec> infer_pad(const NodeInfo& info) {
  const TensorSpec& x = info.input(0);
  const std::string& mode = info.attrs->text("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    info.fail(fmt::format("mode '{}' is not constant, reflect, edge or wrap", mode));
  }
  if (info.has_input(2)) {
    require_dtype(info, 2, x.dtype);
    if (info.input(2).elements() != 1) {
      info.fail(fmt::format("constant value {} is not a scalar", to_string(info.input(2))));
    }
  }
  Dims dims;
  const std::vector<PadAmount> amounts = pad_amounts(info);
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const PadAmount& amount = amounts[static_cast<std::size_t>(axis)];
    const std::int64_t size =
        checked_add(info, checked_add(info, x.shape[axis], amount.before), amount.after);
    if (size < 0) info.fail(fmt::format("pads leave {} of axis {}", size, axis));
    if (mode != "constant" && x.shape[axis] == 0 && size > 0) {
      info.fail(fmt::format("mode {} has nothing to repeat in {}", mode, to_string(x)));
    }
    dims.push_back(size);
  }
  return {{x.dtype, checked_shape(info, dims)}};
}

void reference_pad(const NodeInfo& info, std::span<const Tensor* const> inputs,
                   std::span<Tensor> outputs) {
  const Tensor& x = *inputs[0];
  const std::vector<PadAmount> amounts = pad_amounts(info);
  const std::string& mode = info.attrs->text("mode");
  const Index strides = x.shape().strides();
  const Tensor zero = Tensor::zeros({x.dtype(), {}});
  const Tensor& value = inputs.size() > 2 && inputs[2] != nullptr ? *inputs[2] : zero;
  for_each_index(outputs[0].shape(), [&](const Index& index, std::int64_t i) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < amounts.size() && offset >= 0; ++axis) {
      const std::int64_t from = padded_source(index[axis] - amounts[axis].before,
                                              x.shape()[static_cast<int>(axis)], mode);
      offset = from < 0 ? -1 : offset + from * strides[axis];
    }
    copy_element(outputs[0], i, offset < 0 ? value : x, std::max<std::int64_t>(offset, 0));
  });
}

std::int64_t trilu_diagonal(const NodeInfo& info) {
  return info.has_input(1) ? scalar_operand(info, 1) : 0;
}

std::vector<TensorSpec> infer_trilu(const NodeInfo& info) {
  if (info.input(0).shape.rank() < 2) {
    info.fail(fmt::format("{} has no matrices", to_string(info.input(0))));
  }
  trilu_diagonal(info);
  return {info.input(0)};
}

void reference_trilu(const NodeInfo& info, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const std::int64_t k = trilu_diagonal(info);
  const bool upper = info.attrs->integer("upper") != 0;
  const Shape& shape = inputs[0]->shape();
  const auto column = static_cast<std::size_t>(shape.rank() - 1);
  const Tensor zero = Tensor::zeros({inputs[0]->dtype(), {}});
  for_each_index(shape, [&](const Index& index, std::int64_t i) {
    const std::int64_t diagonal = index[column] - index[column - 1];
    const bool kept = upper ? diagonal >= k : diagonal <= k;
    copy_element(outputs[0], i, kept ? *inputs[0] : zero, kept ? i : 0);
  });
}

std::vector<TensorSpec> infer_reverse_sequence(const NodeInfo& info) {
  const std::int64_t batch = info.attrs->integer("batch_axis");
  const std::int64_t time = info.attrs->integer("time_axis");
  const Shape& shape = info.input(0).shape;
  if (shape.rank() < 2 || batch < 0 || batch > 1 || time != 1 - batch) {
    info.fail(fmt::format("batch_axis {} and time_axis {} have to be 0 and 1 of at least two axes",
                          batch, time));
  }
  require_index_type(info, 1);
  require_shape(info, 1, {shape[static_cast<int>(batch)]}, "one length per batch entry");
  return {info.input(0)};
}

void reference_reverse_sequence(const NodeInfo& info, std::span<const Tensor* const> inputs,
                                std::span<Tensor> outputs) {
  const auto batch = static_cast<std::size_t>(info.attrs->integer("batch_axis"));
  const std::size_t time = 1 - batch;
  const Shape& shape = inputs[0]->shape();
  const Index strides = shape.strides();
  const Dims lengths = to_int64(*inputs[1]);
  for (std::int64_t length : lengths) {
    if (length < 0 || length > shape[static_cast<int>(time)]) {
      info.fail(fmt::format("length {} of a sequence in {}", length, to_string(info.input(0))));
    }
  }
  gather_elements_from(outputs[0], *inputs[0], [&](Index index) {
    const std::int64_t length = lengths[static_cast<std::size_t>(index[batch])];
    if (index[time] < length) index[time] = length - 1 - index[time];
    return offset_of(index, strides);
  });
}

OpDef slice_op() {
  OpDef def;
  def.name = "slice";
  def.doc =
      "Elements from starts (input 1) to before ends (2) along axes (3; all without it) in steps "
      "(4; 1 without it), which may be negative.";
  def.min_inputs = 3;
  def.max_inputs = 5;
  def.infer = infer_slice;
  def.cost = movement_cost;
  def.reference = reference_slice;
  def.tolerance = exact_tolerance;
  def.shape_inputs = {1, 2, 3, 4};
  return def;
}

OpDef pad_op() {
  OpDef def;
  def.name = "pad";
  def.doc =
      "Adds pads (input 1: before each axis, then after each; negative ones take away) of the "
      "scalar in input 2 or, by mode, of the tensor's own elements. Input 3: the axes meant.";
  def.min_inputs = 2;
  def.max_inputs = 4;
  def.attrs = {attr("mode", std::string("constant"), "constant, reflect, edge or wrap.")};
  def.infer = infer_pad;
  def.cost = movement_cost;
  def.reference = reference_pad;
  def.tolerance = exact_tolerance;
  def.shape_inputs = {1, 3};
  return def;
}

OpDef trilu_op() {
  OpDef def;
  def.name = "trilu";
  def.doc = "Zeros below (upper) or above the k-th diagonal of matrices; k is input 1, or 0.";
  def.max_inputs = 2;
  def.attrs = {attr("upper", std::int64_t{1}, "1: the upper triangle stays, 0: the lower one.")};
  def.infer = infer_trilu;
  def.cost = movement_cost;
  def.reference = reference_trilu;
  def.tolerance = exact_tolerance;
  def.shape_inputs = {1};
  return def;
}

OpDef reverse_sequence_op() {
  OpDef def;
  def.name = "reverse_sequence";
  def.doc = "Turns round the first elements along time; input 1 has their number per batch entry.";
  def.min_inputs = def.max_inputs = 2;
  def.attrs = {attr("batch_axis", std::int64_t{1}, "0 or 1."),
               attr("time_axis", std::int64_t{0}, "The other one.")};
  def.infer = infer_reverse_sequence;
  def.cost = movement_cost;
  def.reference = reference_reverse_sequence;
  def.tolerance = exact_tolerance;
  return def;
}

}  // namespace

std::vector<SliceAxis> slice_axes(const NodeInfo& info) {
  const Shape& shape = info.input(0).shape;
  const Dims starts = list_operand(info, 1);
  const Dims ends = list_operand(info, 2);
  Dims axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (info.has_input(3)) axes = list_operand(info, 3);
  const Dims steps = info.has_input(4) ? list_operand(info, 4) : Dims(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    info.fail(fmt::format("{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(),
                          axes.size(), steps.size()));
  }
  std::vector<SliceAxis> result;
  for (std::int64_t size : shape) result.push_back({0, 1, size});
  const std::vector<int> normal = checked_axes(info, axes, shape.rank());
  for (std::size_t i = 0; i < normal.size(); ++i) {
    result[static_cast<std::size_t>(normal[i])] =
        slice_axis(info, starts[i], ends[i], steps[i], shape[normal[i]]);
  }
  return result;
}

std::vector<PadAmount> pad_amounts(const NodeInfo& info) {
  const int rank = info.input(0).shape.rank();
  const Dims pads = list_operand(info, 1);
  Dims given(static_cast<std::size_t>(rank));
  std::iota(given.begin(), given.end(), 0);
  if (info.has_input(3)) given = list_operand(info, 3);
  const std::vector<int> axes = checked_axes(info, given, rank);
  if (pads.size() != 2 * axes.size()) {
    info.fail(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 60;  // keeps positions inside 64 bits
  for (std::int64_t pad : pads) {
    if (pad < -kMost || pad > kMost) info.fail(fmt::format("a pad of {}", pad));
  }
  std::vector<PadAmount> result(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result[static_cast<std::size_t>(axes[i])] = {pads[i], pads[i + axes.size()]};
  }
  return result;
}

std::int64_t padded_source(std::int64_t position, std::int64_t size, std::string_view mode) {
  if (position >= 0 && position < size) return position;
  if (mode == "constant" || size == 0) return -1;
  if (mode == "edge") return position < 0 ? 0 : size - 1;
  if (mode == "wrap") return (position % size + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t folded = (position % period + period) % period;
  return folded < size ? folded : period - folded;
}

void register_slice_ops(OpRegistry& ops) {
  ops.add(slice_op());
  ops.add(pad_op());
  ops.add(trilu_op());
  ops.add(reverse_sequence_op());
}

}  // namespace turnout
