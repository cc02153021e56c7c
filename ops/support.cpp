#include "ops/support.hpp"

#include <algorithm>

namespace turnout {
namespace {

std::string_view name_of(TypeMask types) {
  switch (types) {
    case kFloatingTypes:
      return "a floating type";
    case kIntegerTypes:
      return "an integer type";
    case kUnsignedTypes:
      return "an unsigned integer type";
    case kSignedNumbers:
      return "a signed number type";
    case kNumericTypes:
      return "a number type";
    case kBooleanType:
      return "bool";
    default:
      return "another type";
  }
}

}  // namespace

void require_types(const NodeInfo& info, int i, TypeMask types) {
  if (!info.has_input(i)) return;
  const DType dtype = info.input(i).dtype;
  if (dtype == DType::undefined || (type_mask(dtype) & types) == 0) {
    info.fail(fmt::format("input {} is {}, expected {}", i, to_string(dtype), name_of(types)));
  }
}

void require_dtype(const NodeInfo& info, int i, DType dtype) {
  if (!info.has_input(i) || info.input(i).dtype == dtype) return;
  info.fail(fmt::format("input {} is {}, expected {}", i, to_string(info.input(i).dtype),
                        to_string(dtype)));
}

void require_index_type(const NodeInfo& info, int i) {
  const DType dtype = info.input(i).dtype;
  if (dtype == DType::i32 || dtype == DType::i64) return;
  info.fail(fmt::format("input {} is {}, expected i32 or i64", i, to_string(dtype)));
}

Shape checked_shape(const NodeInfo& info, std::span<const std::int64_t> dims) {
  try {
    return Shape(dims);
  } catch (const Error& error) {
    info.fail(fmt::format("shape [{}]: {}", fmt::join(dims, ","), error.what()));
  }
}

std::int64_t checked_add(const NodeInfo& info, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) info.fail(fmt::format("{} + {} overflows", a, b));
  return sum;
}

std::int64_t checked_multiply(const NodeInfo& info, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) info.fail(fmt::format("{} * {} overflows", a, b));
  return product;
}

Shape broadcast_inputs(const NodeInfo& info, const Shape& a, const Shape& b) {
  try {
    return broadcast(a, b, info.op->name);
  } catch (const Error&) {
    info.fail(fmt::format("shapes {} and {} can't be broadcast", to_string(a), to_string(b)));
  }
}

DType dtype_attr(const NodeInfo& info, std::string_view attribute) {
  const std::string& name = info.attrs->text(attribute);
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) info.fail(fmt::format("attribute '{}': there is no type '{}'", attribute, name));
  return *dtype;
}

std::vector<int> checked_axes(const NodeInfo& info, std::span<const std::int64_t> axes, int rank) {
  std::vector<int> result;
  for (std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      info.fail(fmt::format("axis {} out of range for rank {}", axis, rank));
    }
    const int normal = static_cast<int>(axis < 0 ? axis + rank : axis);
    if (std::find(result.begin(), result.end(), normal) != result.end()) {
      info.fail(fmt::format("axis {} is given twice", axis));
    }
    result.push_back(normal);
  }
  return result;
}

std::int64_t scalar_operand(const NodeInfo& info, int i) {
  require_types(info, i, kIntegerTypes);
  if (info.input(i).elements() != 1) {
    info.fail(fmt::format("input {} is {}, expected one integer", i, to_string(info.input(i))));
  }
  return info.constant_integers(i)[0];
}

std::vector<std::int64_t> list_operand(const NodeInfo& info, int i) {
  require_types(info, i, kIntegerTypes);
  if (info.input(i).shape.rank() > 1) {
    info.fail(fmt::format("input {} is {}, expected a list", i, to_string(info.input(i))));
  }
  return info.constant_integers(i);
}

Cost elementwise_cost(const NodeInfo& info, double flops) {
  Cost cost = touch_cost(info);
  cost.flops = flops * static_cast<double>(info.output(0).elements());
  return cost;
}

Cost movement_cost(const NodeInfo& info) {
  Cost cost;
  for (const TensorSpec* output : info.outputs) {
    cost.bytes_written += static_cast<double>(output->bytes());
  }
  cost.bytes_read = cost.bytes_written;
  return cost;
}

Tolerance exact_tolerance(DType) { return {0, 0, false, "the result is exact"}; }

Index broadcast_steps(const Shape& operand, const Shape& shape) {
  const auto dense = operand.strides();
  Index steps{};
  const int shift = shape.rank() - operand.rank();
  for (int axis = 0; axis < operand.rank(); ++axis) {
    if (operand[axis] == 1) continue;
    steps[static_cast<std::size_t>(axis + shift)] = dense[static_cast<std::size_t>(axis)];
  }
  return steps;
}

void reference_copy(const NodeInfo&, std::span<const Tensor* const> inputs,
                    std::span<Tensor> outputs) {
  if (outputs[0].bytes() == 0) return;
  std::memcpy(outputs[0].address(), inputs[0]->address(), outputs[0].bytes());
}

}  // namespace turnout
