// Ops that only move elements, as strided copies: see copy.hpp.

#include <vector>

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/kernels.hpp"

namespace turnout::kokkos {

namespace {

struct Copy {
  int input = 0;
  int output = 0;
  CopyPlan plan;
};

std::unique_ptr<PreparedKernel> make_copies(const PrepareContext& context,
                                            std::vector<Copy> copies) {
  const bool blocks = !copies.empty() && copies.front().plan.block_axis >= 0;
  return make_kernel(
      context,
      [copies = std::move(copies)](const Launch& launch) {
        for (const Copy& copy : copies) {
          run_copy(launch, copy.plan, launch.input<std::byte>(copy.input),
                   launch.output<std::byte>(copy.output));
        }
      },
      blocks ? "copy:blocks" : "copy:rows");
}

std::int64_t& at(Strides& strides, int axis) { return strides[static_cast<std::size_t>(axis)]; }

/// Strides of `from` in the order of the output's dimensions.
Strides permuted(const Strides& from, std::span<const std::int64_t> perm) {
  Strides result{};
  for (std::size_t i = 0; i < perm.size(); ++i) result[i] = from[static_cast<std::size_t>(perm[i])];
  return result;
}

/// Copies input 0, seen under the shape `view`, with its dimensions permuted.
std::unique_ptr<PreparedKernel> prepare_permuted(const PrepareContext& context, const Shape& view,
                                                 std::span<const std::int64_t> perm) {
  Shape shape = view;
  for (int axis = 0; axis < view.rank(); ++axis) {
    shape.set(axis, view[static_cast<int>(perm[static_cast<std::size_t>(axis)])]);
  }
  const Strides from = permuted(view.strides(), perm);
  return make_copies(context,
                     {{0, 0, plan_gather_copy(shape, from, 0, context.info.input(0).dtype)}});
}

std::unique_ptr<PreparedKernel> prepare_transpose(const PrepareContext& context) {
  const Shape& shape = context.info.input(0).shape;
  std::vector<std::int64_t> perm;
  if (context.info.attrs->has("perm")) perm = context.info.attrs->integers("perm");
  if (perm.empty()) {
    for (int axis = shape.rank() - 1; axis >= 0; --axis) perm.push_back(axis);
  }
  for (std::int64_t& axis : perm) axis = normalize_axis(axis, shape.rank(), "transpose");
  return prepare_permuted(context, shape, perm);
}

std::unique_ptr<PreparedKernel> prepare_depth_to_space(const PrepareContext& context) {
  const Shape& x = context.info.input(0).shape;
  const std::int64_t block = context.info.attrs->integer("blocksize");
  const std::int64_t channels = x[1] / (block * block);
  if (context.info.attrs->text("mode") == "CRD") {
    return prepare_permuted(context, {x[0], channels, block, block, x[2], x[3]},
                            std::array<std::int64_t, 6>{0, 1, 4, 2, 5, 3});
  }
  return prepare_permuted(context, {x[0], block, block, channels, x[2], x[3]},
                          std::array<std::int64_t, 6>{0, 3, 4, 1, 5, 2});
}

std::unique_ptr<PreparedKernel> prepare_space_to_depth(const PrepareContext& context) {
  const Shape& x = context.info.input(0).shape;
  const std::int64_t block = context.info.attrs->integer("blocksize");
  return prepare_permuted(context, {x[0], x[1], x[2] / block, block, x[3] / block, block},
                          std::array<std::int64_t, 6>{0, 3, 5, 1, 2, 4});
}

std::unique_ptr<PreparedKernel> prepare_concat(const PrepareContext& context) {
  const TensorSpec& output = context.info.output(0);
  const int axis =
      normalize_axis(context.info.attrs->integer("axis"), output.shape.rank(), "concat");
  Strides to = output.shape.strides();
  std::vector<Copy> copies;
  std::int64_t position = 0;
  for (int i = 0; i < context.info.input_count(); ++i) {
    const Shape& shape = context.info.input(i).shape;
    copies.push_back(
        {i, 0, plan_copy(shape, shape.strides(), 0, to, position * at(to, axis), output.dtype)});
    position += shape[axis];
  }
  return make_copies(context, std::move(copies));
}

std::unique_ptr<PreparedKernel> prepare_split(const PrepareContext& context) {
  const TensorSpec& input = context.info.input(0);
  const int axis = normalize_axis(context.info.attrs->integer("axis"), input.shape.rank(), "split");
  Strides from = input.shape.strides();
  std::vector<Copy> copies;
  std::int64_t position = 0;
  for (int i = 0; i < context.info.output_count(); ++i) {
    const Shape& shape = context.info.output(i).shape;
    copies.push_back({0, i, plan_gather_copy(shape, from, position * at(from, axis), input.dtype)});
    position += shape[axis];
  }
  return make_copies(context, std::move(copies));
}

std::unique_ptr<PreparedKernel> prepare_slice(const PrepareContext& context) {
  const NodeInfo& info = context.info;
  const Shape& shape = info.input(0).shape;
  const std::vector<std::int64_t> starts = info.constant_integers(1);
  std::vector<std::int64_t> axes;
  if (info.has_input(3)) axes = info.constant_integers(3);
  std::vector<std::int64_t> steps(starts.size(), 1);
  if (info.has_input(4)) steps = info.constant_integers(4);

  Strides strides = shape.strides();
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = normalize_axis(axes.empty() ? static_cast<std::int64_t>(i) : axes[i],
                                    shape.rank(), "slice");
    const std::int64_t dim = shape[axis];
    const std::int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
    const std::int64_t last = std::max<std::int64_t>(steps[i] > 0 ? dim : dim - 1, 0);
    offset += std::clamp<std::int64_t>(start, 0, last) * at(strides, axis);
    at(strides, axis) *= steps[i];
  }
  // Output dimensions of 0 or 1 may come with a step whose stride means nothing.
  const Shape& output = info.output(0).shape;
  for (int axis = 0; axis < output.rank(); ++axis) {
    if (output[axis] <= 1) at(strides, axis) = 0;
  }
  return make_copies(context,
                     {{0, 0, plan_gather_copy(output, strides, offset, info.input(0).dtype)}});
}

std::unique_ptr<PreparedKernel> prepare_expand(const PrepareContext& context) {
  const Shape& shape = context.info.output(0).shape;
  const Strides from = broadcast_strides(context.info.input(0).shape, shape);
  return make_copies(context,
                     {{0, 0, plan_gather_copy(shape, from, 0, context.info.input(0).dtype)}});
}

// A tiled axis is two loops: the repeats, over which the source stands still, and the dimension
// itself. If that makes more loops than a Shape has room for, the repeats of the first axes become
// copies of their own.
struct TileBox {
  std::vector<std::int64_t> dims, from, to;
  std::int64_t to_offset = 0;
};

std::vector<TileBox> tile_boxes(const Shape& shape, const Shape& output) {
  const Strides from = shape.strides();
  const Strides to = output.strides();
  std::vector<TileBox> boxes(1);
  int loops = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    loops += (shape[axis] != 1 ? 1 : 0) + (output[axis] != shape[axis] ? 1 : 0);
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t repeats = shape[axis] == 0 ? 0 : output[axis] / shape[axis];
    if (loops > Shape::kMaxRank && repeats > 1 && shape[axis] != 1) {
      --loops;
      std::vector<TileBox> copies;
      for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
        for (TileBox box : boxes) {
          box.to_offset += repeat * shape[axis] * to[i];
          copies.push_back(std::move(box));
        }
      }
      boxes = std::move(copies);
    } else if (repeats != 1) {
      for (TileBox& box : boxes) {
        box.dims.push_back(repeats);
        box.from.push_back(0);
        box.to.push_back(shape[axis] * to[i]);
      }
    }
    if (shape[axis] == 1) continue;
    for (TileBox& box : boxes) {
      box.dims.push_back(shape[axis]);
      box.from.push_back(from[i]);
      box.to.push_back(to[i]);
    }
  }
  return boxes;
}

std::unique_ptr<PreparedKernel> prepare_tile(const PrepareContext& context) {
  std::vector<Copy> copies;
  const Shape& output = context.info.output(0).shape;
  if (output.elements() == 0) return make_copies(context, {});
  for (const TileBox& box : tile_boxes(context.info.input(0).shape, output)) {
    Strides from{}, to{};
    std::copy(box.from.begin(), box.from.end(), from.begin());
    std::copy(box.to.begin(), box.to.end(), to.begin());
    copies.push_back(
        {0, 0,
         plan_copy(Shape(box.dims), from, 0, to, box.to_offset, context.info.input(0).dtype)});
  }
  return make_copies(context, std::move(copies));
}

}  // namespace

void register_movement_kernels(KernelRegistry& registry) {
  add_kernel(registry, "transpose", accept_any, prepare_transpose);
  add_kernel(registry, "concat", accept_any, prepare_concat);
  add_kernel(registry, "split", accept_any, prepare_split);
  add_kernel(registry, "slice", accept_any, prepare_slice);
  add_kernel(registry, "expand", accept_any, prepare_expand);
  add_kernel(registry, "tile", accept_any, prepare_tile);
  add_kernel(registry, "depth_to_space", accept_any, prepare_depth_to_space);
  add_kernel(registry, "space_to_depth", accept_any, prepare_space_to_depth);
}

}  // namespace turnout::kokkos
