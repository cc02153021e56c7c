#include "core/dtype.hpp"

#include <array>

namespace turnout {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t bytes;
};

// In the order of the enumeration.
constexpr std::array<DTypeInfo, 14> kInfo = {{{"undefined", 0},
                                              {"f32", 4},
                                              {"f64", 8},
                                              {"f16", 2},
                                              {"bf16", 2},
                                              {"i8", 1},
                                              {"u8", 1},
                                              {"i16", 2},
                                              {"u16", 2},
                                              {"i32", 4},
                                              {"u32", 4},
                                              {"i64", 8},
                                              {"u64", 8},
                                              {"bool", 1}}};

}  // namespace

std::size_t size_of(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].bytes; }

std::string_view to_string(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::size_t i = 1; i < kInfo.size(); ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

bool is_integer(DType dtype) { return dtype >= DType::i8 && dtype <= DType::u64; }

}  // namespace turnout
