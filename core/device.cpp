#include "core/device.hpp"

#include "core/error.hpp"

namespace turnout {

std::string_view to_string(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return "measured";
    case Evidence::calibrated:
      return "calibrated";
    case Evidence::predicted:
      return "predicted";
    case Evidence::spec:
      return "spec";
    case Evidence::fallback:
      return "default";
    case Evidence::mixed:
      return "mixed";
    case Evidence::unprobed:
      return "unprobed";
  }
  return "unprobed";
}

const Figure& DeviceInfo::peak(DType dtype) const {
  switch (dtype) {
    case DType::f64:
      return peak_f64;
    case DType::f16:
      return peak_f16;
    case DType::bf16:
      return peak_bf16;
    case DType::i8:
    case DType::u8:
      return peak_i8;
    default:
      return peak_f32;
  }
}

void Stream::refuse_capture() const {
  fail(ErrorCode::internal, "streams of {} don't capture", device().info().name);
}

}  // namespace turnout
