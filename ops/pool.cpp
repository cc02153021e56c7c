#include "ops/pool.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/families.hpp"
#include "ops/rules.hpp"

namespace turnout {
namespace {

using Position = std::array<std::int64_t, Window::kMaxRank>;

// Calls f(offset in the input's plane, coordinates) for the inputs under the window at `position`,
// in row-major order.
template <typename F>
void for_each_input(const Window& window, std::int64_t position, F&& f) {
  Position out{};
  for (int i = window.rank - 1; i >= 0; --i) {
    out[static_cast<std::size_t>(i)] = position % window.axis(i).out;
    position /= window.axis(i).out;
  }
  Position at{};
  const auto visit = [&](const auto& self, int i, std::int64_t plane) -> void {
    if (i == window.rank) return f(plane, at);
    const Window::Axis& axis = window.axis(i);
    const std::int64_t o = out[static_cast<std::size_t>(i)];
    for (std::int64_t t = axis.first_tap(o); t < axis.last_tap(o); ++t) {
      const std::int64_t x = axis.start(o) + t * axis.dilation;
      at[static_cast<std::size_t>(i)] = x;
      self(self, i + 1, plane * axis.in + x);
    }
  };
  visit(visit, 0, 0);
}

// Taps of the window at `position` that lie in the input or its padding (not in what ceil_mode
// adds behind it).
double padded_taps(const Window& window, std::int64_t position) {
  double count = 1;
  for (int i = window.rank - 1; i >= 0; --i) {
    const Window::Axis& axis = window.axis(i);
    count *= static_cast<double>(axis.last_tap(position % axis.out, axis.in + axis.pad_end));
    position /= axis.out;
  }
  return count;
}

void require_pool_dtype(const NodeInfo& info, bool bytes) {
  const DType dtype = info.input(0).dtype;
  if (bytes && (dtype == DType::i8 || dtype == DType::u8)) return;
  require_floating(info, 0);
}

std::vector<TensorSpec> infer_pool(const NodeInfo& info, bool bytes) {
  require_pool_dtype(info, bytes);
  const Window window = pool_window(info);
  for (int i = 0; i < window.rank; ++i) {
    const Window::Axis& axis = window.axis(i);
    if (axis.pad_begin >= axis.extent() || axis.pad_end >= axis.extent()) {
      info.fail(fmt::format("pads {} and {} have to be smaller than the kernel's extent of {}",
                            axis.pad_begin, axis.pad_end, axis.extent()));
    }
  }
  return {{info.input(0).dtype, windowed_shape(info, info.input(0).shape[1], window)}};
}

std::vector<TensorSpec> infer_max_pool(const NodeInfo& info) {
  auto specs = infer_pool(info, true);
  specs.push_back({DType::i64, specs[0].shape});
  return specs;
}
std::vector<TensorSpec> infer_average_pool(const NodeInfo& info) { return infer_pool(info, false); }

std::vector<TensorSpec> infer_lp_pool(const NodeInfo& info) {
  if (info.attrs->integer("p") < 1) info.fail("p has to be at least 1");
  return infer_pool(info, false);
}

// Per output as many operations as taps.
Cost pool_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  const Window window = pool_window(info);
  double taps = 1;
  for (int i = 0; i < window.rank; ++i) taps *= static_cast<double>(window.axis(i).kernel);
  cost.flops = taps * static_cast<double>(info.output(0).elements());
  return cost;
}

double pool_terms(const NodeInfo& info) {
  const Window window = pool_window(info);
  double taps = 1;
  for (int i = 0; i < window.rank; ++i) {
    taps *= static_cast<double>(std::min(window.axis(i).kernel, window.axis(i).in));
  }
  return taps;
}

// Calls f(plane, position, output index) for every output element.
template <typename F>
void for_each_output(const Tensor& y, const Window& window, F&& f) {
  const std::int64_t planes = y.shape().elements(0, 2);
  const std::int64_t positions = window.out_size();
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t p = 0; p < positions; ++p) {
      f(plane, p, static_cast<std::size_t>(plane * positions + p));
    }
  }
}

// Offset in a plane whose first spatial dimension varies fastest.
std::int64_t column_major(const Window& window, const Position& at) {
  std::int64_t offset = 0;
  for (int i = window.rank - 1; i >= 0; --i) {
    offset = offset * window.axis(i).in + at[static_cast<std::size_t>(i)];
  }
  return offset;
}

// Least value of a pool's dtype: the maximum over nothing.
double lowest(DType dtype) {
  if (dtype == DType::u8) return 0;
  if (dtype == DType::i8) return -128;
  return -std::numeric_limits<double>::infinity();
}

void reference_max_pool(const NodeInfo& info, std::span<const Tensor* const> inputs,
                        std::span<Tensor> outputs) {
  const Window window = pool_window(info);
  const bool column = info.attrs->integer("storage_order") != 0;
  const auto x = wide_values(inputs[0]);
  std::vector<double> y(static_cast<std::size_t>(outputs[0].elements()));
  std::vector<std::int64_t> indices(y.size(), -1);
  const std::int64_t in_size = window.in_size();
  for_each_output(outputs[0], window, [&](std::int64_t plane, std::int64_t p, std::size_t o) {
    y[o] = lowest(outputs[0].dtype());
    for_each_input(window, p, [&](std::int64_t offset, const Position& at) {
      const double value = x[static_cast<std::size_t>(plane * in_size + offset)];
      const bool better = value > y[o] || (std::isnan(value) && !std::isnan(y[o]));
      if (!better && indices[o] >= 0) return;
      y[o] = value;
      indices[o] = plane * in_size + (column ? column_major(window, at) : offset);
    });
  });
  store_values(outputs[0], y);
  if (outputs.size() > 1)
    std::copy(indices.begin(), indices.end(), outputs[1].data<std::int64_t>());
}

void reference_average_pool(const NodeInfo& info, std::span<const Tensor* const> inputs,
                            std::span<Tensor> outputs) {
  const Window window = pool_window(info);
  const bool include_pad = info.attrs->integer("count_include_pad") != 0;
  const auto x = wide_values(inputs[0]);
  std::vector<double> y(static_cast<std::size_t>(outputs[0].elements()));
  const std::int64_t in_size = window.in_size();
  for_each_output(outputs[0], window, [&](std::int64_t plane, std::int64_t p, std::size_t o) {
    double sum = 0;
    double count = 0;
    for_each_input(window, p, [&](std::int64_t offset, const Position&) {
      sum += x[static_cast<std::size_t>(plane * in_size + offset)];
      ++count;
    });
    if (include_pad) count = padded_taps(window, p);
    y[o] = sum / std::max(count, 1.0);
  });
  store_values(outputs[0], y);
}

void reference_lp_pool(const NodeInfo& info, std::span<const Tensor* const> inputs,
                       std::span<Tensor> outputs) {
  const Window window = pool_window(info);
  const double power = static_cast<double>(info.attrs->integer("p"));
  const auto x = wide_values(inputs[0]);
  std::vector<double> y(static_cast<std::size_t>(outputs[0].elements()));
  const std::int64_t in_size = window.in_size();
  for_each_output(outputs[0], window, [&](std::int64_t plane, std::int64_t p, std::size_t o) {
    double sum = 0;
    for_each_input(window, p, [&](std::int64_t offset, const Position&) {
      sum += std::pow(std::abs(x[static_cast<std::size_t>(plane * in_size + offset)]), power);
    });
    y[o] = std::pow(sum, 1 / power);
  });
  store_values(outputs[0], y);
}

// Global pools: [N, C, spatial...] -> [N, C, 1...].
std::vector<TensorSpec> infer_global(const NodeInfo& info) {
  require_floating(info, 0);
  if (const AttrValue* p = info.attrs->find("p"); p != nullptr && std::get<std::int64_t>(*p) < 1) {
    info.fail("p has to be at least 1");
  }
  Shape shape = info.input(0).shape;
  if (shape.rank() < 2) info.fail(fmt::format("input {} has no channels", to_string(shape)));
  for (int i = 2; i < shape.rank(); ++i) shape.set(i, 1);
  return {{info.input(0).dtype, shape}};
}

double global_terms(const NodeInfo& info) {
  const Shape& x = info.input(0).shape;
  return static_cast<double>(x.elements(2, x.rank()));
}

Cost global_cost(const NodeInfo& info) {
  Cost cost = touch_cost(info);
  cost.flops = static_cast<double>(info.input(0).elements());
  return cost;
}

// step(accumulator, value) folds a plane, finish(accumulator, count) ends it.
template <typename Step, typename Finish>
void reduce_planes(const Tensor& input, Tensor& output, double start, Step step, Finish finish) {
  const auto x = to_double(input);
  const auto planes = static_cast<std::size_t>(output.elements());
  const std::size_t count =
      static_cast<std::size_t>(input.shape().elements(2, input.shape().rank()));
  std::vector<double> y(planes);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    double sum = start;
    for (std::size_t i = 0; i < count; ++i) sum = step(sum, x[plane * count + i]);
    y[plane] = finish(sum, static_cast<double>(count));
  }
  store_values(output, y);
}

void reference_global_average(const NodeInfo&, std::span<const Tensor* const> inputs,
                              std::span<Tensor> outputs) {
  reduce_planes(
      *inputs[0], outputs[0], 0, [](double sum, double v) { return sum + v; },
      [](double sum, double count) { return sum / count; });
}

void reference_global_max(const NodeInfo&, std::span<const Tensor* const> inputs,
                          std::span<Tensor> outputs) {
  reduce_planes(
      *inputs[0], outputs[0], -std::numeric_limits<double>::infinity(),
      [](double best, double v) { return v > best || std::isnan(v) ? v : best; },
      [](double best, double) { return best; });
}

void reference_global_lp(const NodeInfo& info, std::span<const Tensor* const> inputs,
                         std::span<Tensor> outputs) {
  const double power = static_cast<double>(info.attrs->integer("p"));
  reduce_planes(
      *inputs[0], outputs[0], 0,
      [&](double sum, double v) { return sum + std::pow(std::abs(v), power); },
      [&](double sum, double) { return std::pow(sum, 1 / power); });
}

Tolerance exact(DType) { return {0, 0, false, "a maximum is one of the inputs"}; }

OpDef window_pool(std::string name, std::string doc) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.attrs = window_attrs();
  def.attrs.push_back(
      required_attr("kernel_shape", AttrType::integers, "Size of the window per spatial dim."));
  def.attrs.push_back(attr("ceil_mode", std::int64_t{0},
                           "1: a last window that is partly outside gives an output too."));
  def.cost = pool_cost;
  return def;
}

OpDef global_pool(std::string name, std::string doc, OpDef::Reference reference) {
  OpDef def;
  def.name = std::move(name);
  def.doc = std::move(doc);
  def.infer = infer_global;
  def.cost = global_cost;
  def.reference = reference;
  return def;
}

void register_window_pools(OpRegistry& ops) {
  OpDef max = window_pool("max_pool",
                          "Largest element under each window; NaN wins. Output 1: its index in "
                          "the flat input. Padding never wins.");
  max.max_outputs = 2;
  max.attrs.push_back(attr("storage_order", std::int64_t{0},
                           "1: indices count the spatial dims with the first one fastest."));
  max.infer = infer_max_pool;
  max.reference = reference_max_pool;
  max.tolerance = exact;
  ops.add(std::move(max));

  OpDef average = window_pool("average_pool", "Mean of the elements under each window.");
  average.attrs.push_back(
      attr("count_include_pad", std::int64_t{0}, "1: the zeros of the padding count too."));
  average.infer = infer_average_pool;
  average.reference = reference_average_pool;
  average.terms = pool_terms;
  ops.add(std::move(average));

  OpDef lp = window_pool("lp_pool", "p-norm of the elements under each window.");
  lp.attrs.push_back(attr("p", std::int64_t{2}, "Order of the norm."));
  lp.infer = infer_lp_pool;
  lp.reference = reference_lp_pool;
  lp.terms = pool_terms;
  ops.add(std::move(lp));
}

}  // namespace

Window pool_window(const NodeInfo& info) {
  return sliding_window(info, info.attrs->integers("kernel_shape"));
}

void register_pool_ops(OpRegistry& ops) {
  register_window_pools(ops);
  OpDef average = global_pool("global_average_pool", "Mean of each channel's elements.",
                              reference_global_average);
  average.terms = global_terms;
  ops.add(std::move(average));
  OpDef max = global_pool("global_max_pool", "Largest of each channel's elements; NaN wins.",
                          reference_global_max);
  max.tolerance = exact;
  ops.add(std::move(max));
  OpDef lp =
      global_pool("global_lp_pool", "p-norm of each channel's elements.", reference_global_lp);
  lp.attrs = {attr("p", std::int64_t{2}, "Order of the norm.")};
  lp.terms = global_terms;
  ops.add(std::move(lp));
}

}  // namespace turnout
