// resize: interpolation between the elements of an input, axis by axis.
//
// An output position o lies at position p of the input axis, by the coordinate transformation: for
// half_pixel p = (o + 0.5) / scale - 0.5. With b = ceil(p) - 1 and r = p - b in (0, 1], the taps
// are the inputs b + 1 - n/2 ... b + n/2, weighted by r; those beyond the ends are the end
// elements. Example: 4 inputs to 8 outputs, linear: o = 3 lies at 1.25, so b = 1, r = 0.25, and
// y[3] = 0.75 x[1] + 0.25 x[2].
#include "ops/movement_resize.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/movement.hpp"
#include "ops/support.hpp"

namespace turnout {
namespace {

// What the inputs say about one axis of the input.
struct Wanted {
  double scale = 1;
  std::int64_t out = 0;
  double roi_begin = 0, roi_end = 1;
  bool changes = false;
};

bool crops(const NodeInfo& info) {
  return info.attrs->text("coordinate_transformation_mode") == "tf_crop_and_resize";
}

void require_choice(const NodeInfo& info, std::string_view attribute,
                    std::initializer_list<std::string_view> choices) {
  const std::string& value = info.attrs->text(attribute);
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    info.fail(fmt::format("{} '{}' is not one of {}", attribute, value, fmt::join(choices, ", ")));
  }
}

void check_choices(const NodeInfo& info) {
  require_choice(info, "mode", {"nearest", "linear", "cubic"});
  require_choice(info, "nearest_mode",
                 {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  require_choice(info, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
  require_choice(info, "coordinate_transformation_mode",
                 {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                  "asymmetric", "tf_crop_and_resize"});
  if (info.attrs->integer("antialias") != 0 && info.attrs->text("mode") == "nearest") {
    info.fail("antialias needs mode linear or cubic");
  }
}

// The numbers of input i, which has to be known.
std::vector<double> numbers(const NodeInfo& info, int i, std::size_t count) {
  if (info.constant(i) == nullptr) {
    info.fail(fmt::format("input {} has to be known once dimensions are bound", i));
  }
  std::vector<double> values = to_double(*info.constant(i));
  if (values.size() != count) {
    info.fail(
        fmt::format("input {} is {}, expected {} numbers", i, to_string(info.input(i)), count));
  }
  return values;
}

std::vector<int> given_axes(const NodeInfo& info) {
  const int rank = info.input(0).shape.rank();
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (info.attrs->has("axes")) axes = info.attrs->integers("axes");
  return checked_axes(info, axes, rank);
}

std::int64_t whole(const NodeInfo& info, double size) {
  if (!(size >= 0 && size < 0x1p60)) info.fail(fmt::format("an output dimension of {}", size));
  return static_cast<std::int64_t>(size);
}

void apply_scales(const NodeInfo& info, const std::vector<int>& axes, std::vector<Wanted>& wanted) {
  const std::vector<double> scales = numbers(info, 2, axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Wanted& w = wanted[static_cast<std::size_t>(axes[i])];
    if (!(scales[i] > 0) || std::isinf(scales[i]))
      info.fail(fmt::format("a scale of {}", scales[i]));
    w.scale = scales[i];
    const double part = crops(info) ? w.roi_end - w.roi_begin : 1;
    w.out =
        whole(info, std::floor(static_cast<double>(info.input(0).shape[axes[i]]) * part * w.scale));
  }
}

void apply_sizes(const NodeInfo& info, const std::vector<int>& axes, std::vector<Wanted>& wanted) {
  const Shape& shape = info.input(0).shape;
  const std::vector<std::int64_t> sizes = list_operand(info, 3);
  if (sizes.size() != axes.size()) {
    info.fail(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  }
  const std::string& policy = info.attrs->text("keep_aspect_ratio_policy");
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) info.fail(fmt::format("a size of {}", sizes[i]));
    Wanted& w = wanted[static_cast<std::size_t>(axes[i])];
    w.out = sizes[i];
    w.scale = static_cast<double>(sizes[i]) / static_cast<double>(shape[axes[i]]);
    least = std::min(least, w.scale);
    most = std::max(most, w.scale);
  }
  if (policy == "stretch") return;
  for (int axis : axes) {
    Wanted& w = wanted[static_cast<std::size_t>(axis)];
    w.scale = policy == "not_larger" ? least : most;
    w.out = whole(info, std::floor(w.scale * static_cast<double>(shape[axis]) + 0.5));
  }
}

std::vector<Wanted> wanted_axes(const NodeInfo& info) {
  check_choices(info);
  const Shape& shape = info.input(0).shape;
  const std::vector<int> axes = given_axes(info);
  std::vector<Wanted> wanted;
  for (std::int64_t size : shape) wanted.push_back({1, size});
  if (crops(info)) {
    if (!info.has_input(1)) info.fail("tf_crop_and_resize needs a roi");
    const std::vector<double> roi = numbers(info, 1, 2 * axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Wanted& w = wanted[static_cast<std::size_t>(axes[i])];
      w.roi_begin = roi[i];
      w.roi_end = roi[i + axes.size()];
      if (!std::isfinite(w.roi_begin) || !std::isfinite(w.roi_end)) info.fail("roi is not finite");
    }
  }
  if (info.has_input(2) == info.has_input(3)) info.fail("one of scales and sizes is needed");
  info.has_input(2) ? apply_scales(info, axes, wanted) : apply_sizes(info, axes, wanted);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    Wanted& w = wanted[static_cast<std::size_t>(axis)];
    w.changes =
        w.out != shape[axis] || std::abs(w.scale - 1) > 1e-9 || w.roi_begin != 0 || w.roi_end != 1;
    if (w.out > 0 && shape[axis] == 0) {
      info.fail(fmt::format("{} has nothing to resize", to_string(info.input(0))));
    }
  }
  return wanted;
}

std::vector<TensorSpec> infer_resize(const NodeInfo& info) {
  require_types(info, 0, kAllTypes);
  std::vector<std::int64_t> dims;
  for (const Wanted& w : wanted_axes(info)) dims.push_back(w.out);
  return {{info.input(0).dtype, checked_shape(info, dims)}};
}

// Position in the input of output position o.
double source_position(const NodeInfo& info, const Wanted& w, std::int64_t in, std::int64_t o) {
  const std::string& transform = info.attrs->text("coordinate_transformation_mode");
  const auto size = static_cast<double>(in);
  const auto x = static_cast<double>(o);
  const double width = w.scale * size;  // of the output, before it was made whole
  if (transform == "asymmetric") return x / w.scale;
  if (transform == "align_corners") return width == 1 ? 0 : x * (size - 1) / (width - 1);
  if (transform == "tf_crop_and_resize") {
    const double extent = (w.roi_end - w.roi_begin) * (size - 1);
    const auto out = static_cast<double>(w.out);
    return w.roi_begin * (size - 1) + (w.out == 1 ? extent / 2 : x * extent / (out - 1));
  }
  if (transform == "pytorch_half_pixel" && width == 1) return -0.5;
  const double center = (x + 0.5) / w.scale - 0.5;
  if (transform != "half_pixel_symmetric") return center;
  return size / 2 * (1 - static_cast<double>(w.out) / width) + center;
}

double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// How the taps of an axis are weighted.
struct Kernel {
  bool cubic = false;
  double a = -0.75;     // of the cubic
  double stretch = 1;   // at most 1: antialiasing widens the kernel by 1 / stretch
  std::int64_t before;  // taps at or before b, the one at b included

  // Weight of the tap at b + t.
  double weight(std::int64_t t, double ratio) const {
    const double distance = (static_cast<double>(t) - ratio) * stretch;
    return cubic ? cubic_weight(distance, a) : std::max(0.0, 1 - std::abs(distance));
  }
};

Kernel kernel_of(const NodeInfo& info, const Wanted& w) {
  Kernel kernel;
  kernel.cubic = info.attrs->text("mode") == "cubic";
  kernel.a = info.attrs->real("cubic_coeff_a");
  const double reach = kernel.cubic ? 2 : 1;
  if (info.attrs->integer("antialias") != 0) kernel.stretch = std::min(w.scale, 1.0);
  kernel.before = -static_cast<std::int64_t>(std::floor(-reach / kernel.stretch));
  return kernel;
}

std::int64_t nearest_tap(const std::string& rounding, std::int64_t b, double ratio) {
  if (ratio == 1 || rounding == "ceil") return b + 1;
  if (rounding == "floor") return b;
  return (rounding == "round_prefer_floor" ? ratio <= 0.5 : ratio < 0.5) ? b : b + 1;
}

void add_weighted(const NodeInfo& info, const Kernel& kernel, std::int64_t b, double ratio,
                  ResizeAxis& axis) {
  const bool exclude = info.attrs->integer("exclude_outside") != 0;
  const std::size_t first = axis.weight.size();
  double total = 0, inside = 0;
  for (std::int64_t t = 1 - kernel.before; t <= kernel.before; ++t) {
    const bool outside = b + t < 0 || b + t >= axis.in;
    const double weight = kernel.weight(t, ratio);
    total += weight;
    if (!outside) inside += weight;
    axis.index.push_back(std::clamp<std::int64_t>(b + t, 0, axis.in - 1));
    axis.weight.push_back(exclude && outside ? 0 : weight);
  }
  const double sum = exclude ? inside : (kernel.stretch < 1 ? total : 1);
  if (sum == 0) return;
  for (std::size_t i = first; i < axis.weight.size(); ++i) axis.weight[i] /= sum;
}

ResizeAxis resize_axis(const NodeInfo& info, const Wanted& w, int number) {
  ResizeAxis axis;
  axis.axis = number;
  axis.in = info.input(0).shape[number];
  axis.out = w.out;
  const bool nearest = info.attrs->text("mode") == "nearest";
  const Kernel kernel = kernel_of(info, w);
  axis.taps = nearest ? 1 : 2 * kernel.before;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double position = source_position(info, w, axis.in, o);
    if (crops(info)) {
      axis.outside.push_back(position < 0 || position > static_cast<double>(axis.in - 1) ? 1 : 0);
    }
    const double bounded = std::clamp(position, -0x1p50, 0x1p50);
    const auto b = static_cast<std::int64_t>(std::ceil(bounded)) - 1;
    const double ratio = bounded - static_cast<double>(b);
    if (!nearest) {
      add_weighted(info, kernel, b, ratio, axis);
      continue;
    }
    const std::int64_t tap = nearest_tap(info.attrs->text("nearest_mode"), b, ratio);
    axis.index.push_back(std::clamp<std::int64_t>(tap, 0, axis.in - 1));
    axis.weight.push_back(1);
  }
  return axis;
}

// Whether an output element is outside on any axis.
bool is_outside(const std::vector<ResizeAxis>& axes, const Index& index) {
  return std::any_of(axes.begin(), axes.end(), [&](const ResizeAxis& axis) {
    const auto o = static_cast<std::size_t>(index[static_cast<std::size_t>(axis.axis)]);
    return !axis.outside.empty() && axis.outside[o] != 0;
  });
}

// One axis of a dense array of doubles.
std::vector<double> resized(const std::vector<double>& x, Shape& shape, const ResizeAxis& axis) {
  const std::int64_t inner = shape.elements(axis.axis + 1, shape.rank());
  shape.set(axis.axis, axis.out);
  std::vector<double> y(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t o = place / inner % axis.out;
    const std::int64_t first = place / inner / axis.out * axis.in * inner + place % inner;
    for (std::int64_t t = o * axis.taps; t < (o + 1) * axis.taps; ++t) {
      const auto tap = static_cast<std::size_t>(t);
      y[i] += axis.weight[tap] * x[static_cast<std::size_t>(first + axis.index[tap] * inner)];
    }
  }
  return y;
}

void reference_resize(const NodeInfo& info, std::span<const Tensor* const> inputs,
                      std::span<Tensor> outputs) {
  const std::vector<ResizeAxis> axes = resize_axes(info);
  const Index strides = inputs[0]->shape().strides();
  std::vector<double> values;
  if (info.attrs->text("mode") != "nearest") {
    Shape shape = inputs[0]->shape();
    values = to_double(*inputs[0]);
    for (const ResizeAxis& axis : axes) values = resized(values, shape, axis);
  }
  dispatch(outputs[0].dtype(), [&]<typename T>(std::type_identity<T>) {
    const T extrapolation = convert<T>(info.attrs->real("extrapolation_value"));
    T* y = outputs[0].data<T>();
    for_each_index(outputs[0].shape(), [&](Index index, std::int64_t i) {
      if (is_outside(axes, index)) {
        y[i] = extrapolation;
      } else if (!values.empty()) {
        const double value = values[static_cast<std::size_t>(i)];
        y[i] = convert<T>(std::is_integral_v<T> ? std::nearbyint(value) : value);
      } else {
        for (const ResizeAxis& axis : axes) {
          std::int64_t& at = index[static_cast<std::size_t>(axis.axis)];
          at = axis.index[static_cast<std::size_t>(at)];
        }
        copy_element(outputs[0], i, *inputs[0], offset_of(index, strides));
      }
    });
  });
}

Cost resize_cost(const NodeInfo& info) {
  const std::string& mode = info.attrs->text("mode");
  const double taps = mode == "nearest" ? 0 : (mode == "linear" ? 2 : 4);
  double products = 1;
  for (int axis = 0; axis < info.input(0).shape.rank(); ++axis) {
    if (info.input(0).shape[axis] != info.output(0).shape[axis]) products *= taps;
  }
  Cost cost;
  cost.bytes_written = static_cast<double>(info.output(0).bytes());
  cost.bytes_read = std::min(static_cast<double>(info.input(0).bytes()), cost.bytes_written);
  cost.flops = 2 * products * static_cast<double>(info.output(0).elements());
  return cost;
}

}  // namespace

std::vector<ResizeAxis> resize_axes(const NodeInfo& info) {
  std::vector<ResizeAxis> axes;
  const std::vector<Wanted> wanted = wanted_axes(info);
  // Without elements the other axes may be longer than memory has room for.
  if (std::any_of(wanted.begin(), wanted.end(), [](const Wanted& w) { return w.out == 0; })) {
    return axes;
  }
  int number = 0;
  for (const Wanted& w : wanted) {
    if (w.changes) axes.push_back(resize_axis(info, w, number));
    ++number;
  }
  return axes;
}

bool resize_only_moves(const NodeInfo& info) {
  return info.attrs->text("mode") == "nearest" && !crops(info);
}

void register_resize_op(OpRegistry& ops) {
  OpDef def;
  def.name = "resize";
  def.doc =
      "Interpolates along axes to the scales in input 2 or the sizes in input 3; input 1 is the "
      "part of the input that tf_crop_and_resize takes.";
  def.max_inputs = 4;
  def.attrs = {
      attr("mode", std::string("nearest"), "nearest, linear or cubic."),
      attr("coordinate_transformation_mode", std::string("half_pixel"),
           "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric or "
           "tf_crop_and_resize."),
      attr("nearest_mode", std::string("round_prefer_floor"),
           "round_prefer_floor, round_prefer_ceil, floor or ceil."),
      attr("keep_aspect_ratio_policy", std::string("stretch"),
           "stretch, not_larger or not_smaller: how sizes are meant."),
      attr("cubic_coeff_a", -0.75, "Coefficient of the cubic."),
      attr("exclude_outside", std::int64_t{0}, "1: taps beyond the ends have no weight."),
      attr("extrapolation_value", 0.0, "Value beyond the ends for tf_crop_and_resize."),
      attr("antialias", std::int64_t{0}, "1: a wider kernel when the output is smaller."),
      optional_attr("axes", AttrType::integers, "Axes that roi, scales and sizes are about."),
  };
  def.infer = infer_resize;
  def.cost = resize_cost;
  def.reference = reference_resize;
  def.shape_inputs = {1, 2, 3};
  ops.add(std::move(def));
}

}  // namespace turnout
