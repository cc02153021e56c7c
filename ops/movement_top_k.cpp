// top_k: the k largest or smallest elements along an axis, and where they were.
#include <algorithm>
#include <numeric>

#include "ops/movement.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

int top_k_axis(const NodeInfo& info) {
  return require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
}

std::vector<TensorSpec> infer_top_k(const NodeInfo& info) {
  require_types(info, 0, kNumericTypes);
  const int axis = top_k_axis(info);
  const std::int64_t k = scalar_operand(info, 1);
  TensorSpec spec = info.input(0);
  if (k < 0 || k > spec.shape[axis]) {
    info.fail(fmt::format("k is {} for axis {} of {}", k, axis, to_string(spec)));
  }
  spec.shape.set(axis, k);
  return {spec, {DType::i64, spec.shape}};
}

// Order of elements: NaN is the largest, equal ones keep their order.
template <typename T>
bool comes_before(T a, T b, bool largest) {
  if (a != a || b != b) return largest ? a != a && b == b : a == a && b != b;
  return largest ? a > b : a < b;
}

void reference_top_k(const NodeInfo& info, std::span<const Tensor* const> inputs,
                     std::span<Tensor> outputs) {
  const Tensor& x = *inputs[0];
  if (outputs[0].elements() == 0) return;  // there may be many lines of nothing
  const int axis = top_k_axis(info);
  const std::int64_t length = x.shape()[axis];
  const std::int64_t k = outputs[0].shape()[axis];
  const std::int64_t inner = x.shape().elements(axis + 1, x.shape().rank());
  const std::int64_t lines = x.shape().elements(0, axis) * inner;
  const bool largest = info.attrs->integer("largest") != 0;
  std::vector<std::int64_t> order(static_cast<std::size_t>(length));
  dispatch(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* data = x.data<const T>();
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t first = line / inner * inner * length + line % inner;
      const auto value = [&](std::int64_t i) {
        return convert<WideType<T>>(data[first + i * inner]);
      };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return comes_before(value(a), value(b), largest);
      });
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t from = order[static_cast<std::size_t>(i)];
        const std::int64_t to = line / inner * inner * k + line % inner + i * inner;
        copy_element(outputs[0], to, x, first + from * inner);
        if (outputs.size() > 1) outputs[1].data<std::int64_t>()[to] = from;
      }
    }
  });
}

Cost top_k_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  cost.flops = 4 * static_cast<double>(info.input(0).elements());
  return cost;
}

}  // namespace

void register_top_k_op(OpRegistry& ops) {
  OpDef def;
  def.name = "top_k";
  def.doc = "The k (input 1) largest or smallest elements along an axis, and their indices.";
  def.min_inputs = def.max_inputs = 2;
  def.max_outputs = 2;
  def.attrs = {attr("axis", std::int64_t{-1}, "Axis they are taken along."),
               attr("largest", std::int64_t{1}, "0: the smallest."),
               attr("sorted", std::int64_t{1}, "0: in any order (here they are always sorted).")};
  def.infer = infer_top_k;
  def.cost = top_k_cost;
  def.reference = reference_top_k;
  def.tolerance = exact_tolerance;
  def.shape_inputs = {1};
  ops.add(std::move(def));
}

}  // namespace turnout
