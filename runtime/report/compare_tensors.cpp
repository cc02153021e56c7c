// Inputs that every device gets, and how far outputs are apart.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/report/compare.hpp"

namespace turnout {

double output_difference(std::span<const Tensor> a, std::span<const Tensor> b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinity;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].spec() != b[i].spec()) return kInfinity;
    const std::vector<double> x = to_double(a[i]);
    const std::vector<double> y = to_double(b[i]);
    double low = 0;
    double high = 0;
    double difference = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (std::isnan(x[j]) != std::isnan(y[j])) return kInfinity;
      if (std::isnan(x[j]) || x[j] == y[j]) continue;
      difference = std::max(difference, std::abs(x[j] - y[j]));
    }
    for (double value : y) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const double range = high - low;
    if (difference > 0) worst = std::max(worst, range > 0 ? difference / range : kInfinity);
  }
  return worst;
}

Tensor make_input(const std::string& name, const TensorSpec& spec, const Tensor* given,
                  bool batched) {
  if (given == nullptr) {
    Tensor tensor = Tensor::empty(spec);
    std::mt19937_64 engine(std::hash<std::string>()(name));
    dispatch(spec.dtype, [&]<typename T>(std::type_identity<T>) {
      for (T& value : tensor.values<T>()) {
        if constexpr (std::is_integral_v<T>) {
          value = static_cast<T>(engine() % 2);
        } else {
          value = T(static_cast<float>(static_cast<double>(engine() >> 11) * 0x1p-52 - 1));
        }
      }
    });
    return tensor;
  }
  const auto refuse = [&]() {
    fail(ErrorCode::invalid_argument, "input '{}' has to be {}{}, given: {}", name, to_string(spec),
         batched ? " (rows are repeated to fill the batch)" : "", to_string(given->spec()));
  };
  if (given->spec() == spec) return *given;
  const Shape& wanted = spec.shape;
  const Shape& there = given->shape();
  const bool rows_fit = batched && given->dtype() == spec.dtype && wanted.rank() > 0 &&
                        there.rank() == wanted.rank() && there[0] > 0 &&
                        std::equal(there.begin() + 1, there.end(), wanted.begin() + 1);
  if (!rows_fit) refuse();
  Tensor tensor = Tensor::empty(spec);
  const std::size_t row_bytes = given->bytes() / static_cast<std::size_t>(there[0]);
  for (std::int64_t row = 0; row < wanted[0]; ++row) {
    std::memcpy(
        static_cast<std::byte*>(tensor.address()) + static_cast<std::size_t>(row) * row_bytes,
        static_cast<const std::byte*>(given->address()) +
            static_cast<std::size_t>(row % there[0]) * row_bytes,
        row_bytes);
  }
  return tensor;
}

}  // namespace turnout
