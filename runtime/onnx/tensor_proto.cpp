#include "runtime/onnx/tensor_proto.hpp"

#include <charconv>
#include <cstring>

#include "onnx.pb.h"
#include "runtime/io/file.hpp"

namespace turnout {
namespace {

using onnx::TensorProto;

struct TypePair {
  TensorProto::DataType onnx;
  DType dtype;
};
constexpr TypePair kTypes[] = {
    {TensorProto::FLOAT, DType::f32},    {TensorProto::DOUBLE, DType::f64},
    {TensorProto::FLOAT16, DType::f16},  {TensorProto::BFLOAT16, DType::bf16},
    {TensorProto::INT8, DType::i8},      {TensorProto::UINT8, DType::u8},
    {TensorProto::INT16, DType::i16},    {TensorProto::UINT16, DType::u16},
    {TensorProto::INT32, DType::i32},    {TensorProto::UINT32, DType::u32},
    {TensorProto::INT64, DType::i64},    {TensorProto::UINT64, DType::u64},
    {TensorProto::BOOL, DType::boolean},
};

TensorSpec spec_of(const TensorProto& proto, const std::string& what) {
  const auto dtype = dtype_of_onnx(proto.data_type());
  if (!dtype) {
    fail(ErrorCode::unsupported, "{}: elements of type {} are not supported", what,
         onnx_dtype_name(proto.data_type()));
  }
  try {
    return {*dtype,
            Shape(std::span(proto.dims().data(), static_cast<std::size_t>(proto.dims_size())))};
  } catch (const Error& error) {
    const bool rank = error.code() == ErrorCode::unsupported;
    fail(rank ? ErrorCode::unsupported : ErrorCode::invalid_model, "{}: {}", what, error.what());
  }
}

std::uint64_t parse_size(const std::string& text, const std::string& what) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    fail(ErrorCode::invalid_model, "{}: '{}' is not an offset or length of external data", what,
         text);
  }
  return value;
}

// The file, if it lies in `directory` or below it.
std::filesystem::path external_file(const std::string& location,
                                    const std::filesystem::path& directory,
                                    const std::string& what) {
  const std::filesystem::path relative(location);
  const auto refuse = [&](std::string_view why) {
    fail(ErrorCode::invalid_model, "{}: external data '{}' {}", what, location, why);
  };
  if (location.empty() || location.find('\0') != std::string::npos) refuse("has no usable name");
  if (directory.empty()) refuse("is given, but the model has no folder");
  if (relative.is_absolute()) refuse("has an absolute path");
  for (const auto& part : relative) {
    if (part == "..") refuse("lies outside of the model's folder");
  }
  std::error_code code;
  const auto base = std::filesystem::canonical(directory, code);
  const auto file =
      code ? std::filesystem::path() : std::filesystem::canonical(base / relative, code);
  if (code) fail(ErrorCode::not_found, "{}: external data '{}' is missing", what, location);
  const auto [rest, at] = std::mismatch(base.begin(), base.end(), file.begin(), file.end());
  if (rest != base.end() || at == file.end()) refuse("leads outside of the model's folder");
  return file;
}

std::string external_bytes(const TensorProto& proto, const TensorSpec& spec,
                           const std::filesystem::path& directory, const std::string& what) {
  std::string location;
  std::uint64_t offset = 0;
  auto length = static_cast<std::uint64_t>(spec.bytes());
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = parse_size(entry.value(), what);
    if (entry.key() == "length") length = parse_size(entry.value(), what);
  }
  if (length != static_cast<std::uint64_t>(spec.bytes())) {
    fail(ErrorCode::invalid_model, "{}: {} bytes of external data, but {} needs {}", what, length,
         to_string(spec), spec.bytes());
  }
  try {
    return read_file_range(external_file(location, directory, what), offset, length);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fail(ErrorCode::invalid_model, "{}: {}", what, error.what());
  }
}

Tensor from_bytes(const TensorSpec& spec, const std::string& bytes, const std::string& what) {
  if (bytes.size() != static_cast<std::size_t>(spec.bytes())) {
    fail(ErrorCode::invalid_model, "{}: {} bytes of data, but {} needs {}", what, bytes.size(),
         to_string(spec), spec.bytes());
  }
  Tensor tensor = Tensor::empty(spec);
  if (!bytes.empty()) std::memcpy(tensor.address(), bytes.data(), bytes.size());
  if (spec.dtype == DType::boolean) {
    auto* flags = static_cast<unsigned char*>(tensor.address());
    for (std::size_t i = 0; i < tensor.bytes(); ++i) flags[i] = flags[i] != 0 ? 1 : 0;
  }
  return tensor;
}

template <typename Field, typename Make>
Tensor from_field(const TensorSpec& spec, const Field& field, const std::string& what, Make make) {
  if (field.size() != spec.elements()) {
    fail(ErrorCode::invalid_model, "{}: {} elements of data, but {} has {}", what, field.size(),
         to_string(spec), spec.elements());
  }
  Tensor tensor = Tensor::empty(spec);
  dispatch(spec.dtype, [&]<typename T>(std::type_identity<T> type) {
    std::span<T> values = tensor.values<T>();
    for (int i = 0; i < field.size(); ++i)
      values[static_cast<std::size_t>(i)] = make(type, field[i]);
  });
  return tensor;
}

// Which repeated field holds which element type is in onnx.proto's comments.
Tensor from_typed_field(const TensorProto& proto, const TensorSpec& spec, const std::string& what) {
  const auto plain = []<typename T, typename V>(std::type_identity<T>, V value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {
      return T();
    }
  };
  switch (spec.dtype) {
    case DType::f32:
      return from_field(spec, proto.float_data(), what, plain);
    case DType::f64:
      return from_field(spec, proto.double_data(), what, plain);
    case DType::i64:
      return from_field(spec, proto.int64_data(), what, plain);
    case DType::u32:
    case DType::u64:
      return from_field(spec, proto.uint64_data(), what, plain);
    default:
      break;
  }
  const auto from_int32 = []<typename T>(std::type_identity<T>, std::int32_t value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {  // 16-bit floats are stored by their bits
      T result;
      result.bits = static_cast<std::uint16_t>(value);
      return result;
    }
  };
  return from_field(spec, proto.int32_data(), what, from_int32);
}

}  // namespace

std::optional<DType> dtype_of_onnx(std::int64_t data_type) {
  for (const TypePair& pair : kTypes) {
    if (pair.onnx == data_type) return pair.dtype;
  }
  return std::nullopt;
}

std::int32_t onnx_dtype(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype == dtype) return pair.onnx;
  }
  fail(ErrorCode::internal, "ONNX has no {} elements", to_string(dtype));
}

std::string onnx_dtype_name(std::int64_t data_type) {
  const auto number = static_cast<int>(data_type);
  if (number != data_type || !onnx::TensorProto_DataType_IsValid(number)) {
    return fmt::format("number {}", data_type);
  }
  return onnx::TensorProto_DataType_Name(static_cast<TensorProto::DataType>(number));
}

Tensor to_tensor(const TensorProto& proto, const std::filesystem::path& directory,
                 const std::string& what) {
  if (proto.has_segment()) fail(ErrorCode::unsupported, "{}: data in segments", what);
  const TensorSpec spec = spec_of(proto, what);
  if (proto.data_location() == TensorProto::EXTERNAL) {
    return from_bytes(spec, external_bytes(proto, spec, directory, what), what);
  }
  return proto.has_raw_data() ? from_bytes(spec, proto.raw_data(), what)
                              : from_typed_field(proto, spec, what);
}

TensorProto to_proto(const Tensor& tensor, const std::string& name) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_dtype(tensor.dtype()));
  for (std::int64_t dim : tensor.shape()) proto.add_dims(dim);
  proto.set_raw_data(tensor.address(), tensor.bytes());
  return proto;
}

}  // namespace turnout
