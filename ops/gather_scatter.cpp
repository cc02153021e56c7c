// Ops that write at indices: a copy of input 0 into which updates (input 2) are put. Updates of the
// same place are applied in their order.
#include <cstring>

#include "ops/functors_binary.hpp"
#include "ops/gather.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

void check_reduction(const NodeInfo& info) {
  const std::string& name = info.attrs->text("reduction");
  if (name != "none" && name != "add" && name != "mul" && name != "max" && name != "min") {
    info.fail(fmt::format("reduction '{}' is not none, add, mul, max or min", name));
  }
  if (name != "none") require_types(info, 0, kNumericTypes);
  require_dtype(info, 2, info.input(0).dtype);
}

template <typename W>
W combine(const std::string& reduction, W old, W update) {
  if (reduction == "add") return Add()(old, update);
  if (reduction == "mul") return Mul()(old, update);
  if (reduction == "max") return Max()(old, update);
  if (reduction == "min") return Min()(old, update);
  return update;
}

// Sums of many updates are kept wide until the end.
template <typename F>
void scatter(const NodeInfo& info, const Tensor& data, const Tensor& updates, Tensor& out,
             F&& place) {
  const std::string& reduction = info.attrs->text("reduction");
  dispatch(data.dtype(), [&]<typename T>(std::type_identity<T>) {
    using W = WideType<T>;
    const auto x = data.values<const T>();
    const auto y = out.values<T>();
    const auto u = updates.values<const T>();
    if constexpr (std::is_same_v<T, bool>) {
      std::copy(x.begin(), x.end(), y.begin());
      for (std::size_t i = 0; i < u.size(); ++i) y[static_cast<std::size_t>(place(i))] = u[i];
    } else {
      std::vector<W> wide;
      for (T value : x) wide.push_back(convert<W>(value));
      for (std::size_t i = 0; i < u.size(); ++i) {
        W& target = wide[static_cast<std::size_t>(place(i))];
        target = combine(reduction, target, convert<W>(u[i]));
      }
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = convert<T>(wide[i]);
    }
  });
}

int scatter_axis(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
}

std::vector<TensorSpec> infer_scatter_elements(const NodeInfo& info) {
  require_index_type(info, 1);
  check_reduction(info);
  require_shape(info, 2, info.input(1).shape, "the shape of the indices");
  require_inside(info, info.input(1).shape, scatter_axis(info));
  return {info.input(0)};
}

void reference_scatter_elements(const NodeInfo& info, std::span<const Tensor* const> inputs,
                                std::span<Tensor> outputs) {
  const Shape& data = inputs[0]->shape();
  const int axis = scatter_axis(info);
  const Index strides = data.strides();
  const std::vector<std::int64_t> indices = to_int64(*inputs[1]);
  std::vector<std::int64_t> places;
  for_each_index(inputs[1]->shape(), [&](Index index, std::int64_t i) {
    index[static_cast<std::size_t>(axis)] =
        checked_index(info, indices[static_cast<std::size_t>(i)], data[axis]);
    places.push_back(offset_of(index, strides));
  });
  scatter(info, *inputs[0], *inputs[2], outputs[0], [&](std::size_t i) { return places[i]; });
}

std::vector<TensorSpec> infer_scatter_nd(const NodeInfo& info) {
  require_dtype(info, 1, DType::i64);
  check_reduction(info);
  const Shape& data = info.input(0).shape;
  const Shape& indices = info.input(1).shape;
  if (data.rank() < 1 || indices.rank() < 1 || indices.dim(-1) > data.rank()) {
    info.fail(
        fmt::format("index tuples {} into {}", to_string(info.input(1)), to_string(info.input(0))));
  }
  std::vector<std::int64_t> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + indices.dim(-1), data.end());
  require_shape(info, 2, checked_shape(info, dims), "one slice of the data per index tuple");
  return {info.input(0)};
}

void reference_scatter_nd(const NodeInfo& info, std::span<const Tensor* const> inputs,
                          std::span<Tensor> outputs) {
  const Shape& data = inputs[0]->shape();
  const auto depth = static_cast<int>(inputs[1]->shape().dim(-1));
  const std::int64_t slice = data.elements(depth, data.rank());
  const std::vector<std::int64_t> indices = to_int64(*inputs[1]);
  scatter(info, *inputs[0], *inputs[2], outputs[0], [&](std::size_t i) {
    const std::int64_t tuple = static_cast<std::int64_t>(i) / slice;
    std::int64_t row = 0;
    for (int d = 0; d < depth; ++d) {
      const std::int64_t index = indices[static_cast<std::size_t>(tuple * depth + d)];
      row = row * data[d] + checked_index(info, index, data[d]);
    }
    return row * slice + static_cast<std::int64_t>(i) % slice;
  });
}

// At worst every update lands on one element.
double scatter_terms(const NodeInfo& info) {
  const std::string& reduction = info.attrs->text("reduction");
  const bool sums = reduction == "add" || reduction == "mul";
  return sums ? static_cast<double>(info.input(2).elements()) + 1 : 1;
}

OpDef scatter_op(std::string name, std::string doc, OpDef::Infer infer,
                 OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.min_inputs = def.max_inputs = 3;
  def.attrs = {attr("reduction", std::string("none"),
                    "How an update meets what is there: none, add, mul, max or min.")};
  def.infer = infer;
  def.cost = [](const NodeInfo& info) {
    Cost cost = touch_cost(info);
    cost.flops = static_cast<double>(info.input(2).elements());
    return cost;
  };
  def.reference = reference;
  def.terms = scatter_terms;
  return def;
}

}  // namespace

void register_scatter_ops(OpRegistry& ops) {
  OpDef elements = scatter_op("scatter_elements",
                              "Input 0 with updates (input 2) at the "
                              "positions of input 1, but along the axis at its indices.",
                              infer_scatter_elements, reference_scatter_elements);
  elements.attrs.push_back(attr("axis", std::int64_t{0}, "Axis the indices are about."));
  ops.add(std::move(elements));
  ops.add(scatter_op("scatter_nd",
                     "Input 0 with slices (input 2) at the index tuples along the "
                     "last axis of input 1.",
                     infer_scatter_nd, reference_scatter_nd));
}

}  // namespace turnout
