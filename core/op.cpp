#include "core/op.hpp"

#include <algorithm>
#include <cmath>

namespace turnout {

std::vector<std::int64_t> NodeInfo::constant_integers(int i) const {
  const Tensor* tensor = constant(i);
  if (tensor == nullptr) {
    fail(fmt::format(
        "input {} has to be known once dimensions are bound, but is computed from data", i));
  }
  return to_int64(*tensor);
}

void NodeInfo::fail(const std::string& message) const {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("[{}] node '{}': {}", op ? op->name : "?", name, message));
}

bool OpDef::is_shape_input(int i) const {
  return std::find(shape_inputs.begin(), shape_inputs.end(), i) != shape_inputs.end();
}

Cost cost_of(const NodeInfo& info) {
  if (info.op->cost != nullptr) return info.op->cost(info);
  Cost cost;
  for (int i = 0; i < info.input_count(); ++i) {
    if (info.has_input(i) && !info.op->is_shape_input(i)) {
      cost.bytes_read += static_cast<double>(info.input(i).bytes());
    }
  }
  for (const TensorSpec* output : info.outputs) {
    cost.bytes_written += static_cast<double>(output->bytes());
    cost.flops += static_cast<double>(output->elements());
  }
  return cost;
}

Tolerance tolerance_of(const OpDef& op, DType dtype) {
  if (op.tolerance != nullptr) return op.tolerance(dtype);
  switch (dtype) {
    case DType::f32:
      return {1e-5, 1e-6, false, "a few roundings of 2^-24 and library functions"};
    case DType::f64:
      return {1e-12, 1e-13, false, "a few roundings of 2^-53"};
    case DType::f16:
      return {2e-3, 1e-4, false, "one rounding of 2^-11 of a float result"};
    case DType::bf16:
      return {1.6e-2, 1e-3, false, "one rounding of 2^-8 of a float result"};
    default:
      return {0, 0, false, "integers are exact"};
  }
}

Tolerance tolerance_of(const NodeInfo& info, DType dtype) {
  Tolerance tolerance = tolerance_of(*info.op, dtype);
  if (info.op->terms == nullptr || !is_floating(dtype)) return tolerance;
  // Sums are kept in float, or in double for f64. Roundings of n terms of random sign add up like
  // sqrt(n) relative to the range of the results; where terms of about 1 cancel, up to n remains.
  const double terms = std::max(info.op->terms(info), 1.0);
  const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  tolerance.relative += 4 * std::sqrt(terms) * unit;
  tolerance.absolute += terms * unit / 2;
  return tolerance;
}

void OpRegistry::add(OpDef def) {
  if (def.infer == nullptr || (def.reference == nullptr && def.decompose == nullptr)) {
    fail(ErrorCode::internal, "op '{}' has no infer rule or neither reference nor decomposition",
         def.name);
  }
  const std::string name = def.name;
  if (!ops_.emplace(name, std::move(def)).second) {
    fail(ErrorCode::internal, "op '{}' is registered twice", name);
  }
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : &at->second;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  const OpDef* op = find(name);
  if (op == nullptr) fail(ErrorCode::not_found, "there is no op '{}'", name);
  return *op;
}

}  // namespace turnout
