#include <algorithm>
#include <cmath>

#include "ops/families.hpp"
#include "ops/rules.hpp"

namespace turnout {
namespace {

std::vector<TensorSpec> infer_softmax(const NodeInfo& info) {
  require_floating(info, 0);
  require_axis(info, info.attrs->integer("axis"), info.input(0).shape.rank());
  return {info.input(0)};
}

// Exponential, two passes of arithmetic.
Cost softmax_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  cost.flops = 5 * static_cast<double>(info.input(0).elements());
  return cost;
}

double softmax_terms(const NodeInfo& info) {
  return static_cast<double>(
      info.input(0).shape.dim(static_cast<int>(info.attrs->integer("axis"))));
}

// Calls row(first element, step, length) for each line along the axis; the line is in `x`, its
// result goes to `y`.
template <typename Row>
void for_each_row(const NodeInfo& info, std::span<const Tensor* const> inputs,
                  std::span<Tensor> outputs, Row row) {
  const Shape& shape = inputs[0]->shape();
  const int axis = require_axis(info, info.attrs->integer("axis"), shape.rank());
  const auto length = static_cast<std::size_t>(shape[axis]);
  const auto inner = static_cast<std::size_t>(shape.elements(axis + 1, shape.rank()));
  const auto outer = static_cast<std::size_t>(shape.elements(0, axis));
  const auto x = to_double(*inputs[0]);
  std::vector<double> y(x.size());
  std::vector<double> line(length);
  for (std::size_t o = 0; o < outer && length > 0; ++o) {
    for (std::size_t i = 0; i < inner; ++i) {
      const std::size_t first = o * length * inner + i;
      for (std::size_t l = 0; l < length; ++l) line[l] = x[first + l * inner];
      row(line);
      for (std::size_t l = 0; l < length; ++l) y[first + l * inner] = line[l];
    }
  }
  store_values(outputs[0], y);
}

// Subtracts the maximum and gives the sum of exponentials. NaN reaches the whole line.
double shift_and_sum(std::vector<double>& line) {
  const double top = *std::max_element(line.begin(), line.end());
  double sum = 0;
  for (double& v : line) {
    v -= top;
    sum += std::exp(v);
  }
  return sum;
}

void reference_softmax(const NodeInfo& info, std::span<const Tensor* const> inputs,
                       std::span<Tensor> outputs) {
  for_each_row(info, inputs, outputs, [](std::vector<double>& line) {
    const double sum = shift_and_sum(line);
    for (double& v : line) v = std::exp(v) / sum;
  });
}

void reference_log_softmax(const NodeInfo& info, std::span<const Tensor* const> inputs,
                           std::span<Tensor> outputs) {
  for_each_row(info, inputs, outputs, [](std::vector<double>& line) {
    const double log_sum = std::log(shift_and_sum(line));
    for (double& v : line) v -= log_sum;
  });
}

// 1 at the first of the largest elements (NaN counts as largest, as in numpy's argmax).
void reference_hardmax(const NodeInfo& info, std::span<const Tensor* const> inputs,
                       std::span<Tensor> outputs) {
  for_each_row(info, inputs, outputs, [](std::vector<double>& line) {
    const auto less = [](double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); };
    const auto best = std::max_element(line.begin(), line.end(), less) - line.begin();
    std::fill(line.begin(), line.end(), 0.0);
    line[static_cast<std::size_t>(best)] = 1;
  });
}

OpDef along_axis(std::string name, std::string doc, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.attrs = {attr("axis", std::int64_t{-1}, "Dimension the lines run along.")};
  def.infer = infer_softmax;
  def.cost = softmax_cost;
  def.reference = reference;
  def.terms = softmax_terms;
  return def;
}

}  // namespace

void register_softmax_ops(OpRegistry& ops) {
  ops.add(along_axis("softmax", "exp(x) / sum(exp(x)) along an axis.", reference_softmax));
  ops.add(along_axis("log_softmax", "log(softmax(x)) along an axis.", reference_log_softmax));
  OpDef hardmax = along_axis("hardmax", "1 at the first largest element along an axis, else 0.",
                             reference_hardmax);
  hardmax.terms = nullptr;
  hardmax.tolerance = [](DType) { return Tolerance{0, 0, false, "zeros and ones are exact"}; };
  ops.add(std::move(hardmax));
}

}  // namespace turnout
