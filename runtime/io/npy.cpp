// An .npy file is the magic word, a version, the length of a header, the header (a Python dict
// literal, padded with spaces), and the elements:
//
//   \x93NUMPY 1 0 <u16 length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ... \n
#include "runtime/io/npy.hpp"

#include <array>
#include <charconv>
#include <cstring>

#include "runtime/io/file.hpp"

namespace turnout {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kFileLimit = std::uint64_t{1} << 40;
constexpr std::size_t kHeaderLimit = 1 << 16;

struct Code {
  std::string_view descr;  // without byte order
  DType dtype;
};
constexpr std::array kCodes{
    Code{"f4", DType::f32}, Code{"f8", DType::f64}, Code{"f2", DType::f16},
    Code{"i1", DType::i8},  Code{"u1", DType::u8},  Code{"i2", DType::i16},
    Code{"u2", DType::u16}, Code{"i4", DType::i32}, Code{"u4", DType::u32},
    Code{"i8", DType::i64}, Code{"u8", DType::u64}, Code{"b1", DType::boolean},
};

struct Header {
  DType dtype = DType::undefined;
  bool fortran_order = false;
  std::vector<std::int64_t> dims;
};

// Reads the dict literal. Only what numpy writes: three keys, strings, booleans, a tuple.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Header parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quote();
      expect(':');
      if (key == "descr" && !std::exchange(has_descr, true)) {
        header_.dtype = dtype(quote());
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header_.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header_.dims = tuple();
      } else {
        refuse(fmt::format("unexpected key '{}' in the header", key));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (!text_.empty()) refuse("text after the header's dict");
    if (!has_descr || !has_order || !has_shape) {
      refuse("the header needs 'descr', 'fortran_order' and 'shape'");
    }
    return std::move(header_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::invalid_model, "[npy] '{}': {}", file_, what);
  }
  void skip_space() {
    while (!text_.empty() && std::strchr(" \t\r\n", text_[0]) != nullptr && text_[0] != '\0') {
      text_.remove_prefix(1);
    }
  }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}' expected in the header", c));
  }
  std::string_view quote() {
    skip_space();
    if (!text_.empty() && text_[0] == '[') {
      fail(ErrorCode::unsupported, "[npy] '{}': structured elements are not supported", file_);
    }
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) refuse("string expected");
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) refuse("string without end in the header");
    const std::string_view result = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(std::strlen(word));
      return value;
    }
    refuse("True or False expected in the header");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = -1;
      const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (code != std::errc() || value < 0) refuse("the shape has to be a tuple of sizes");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (text_.starts_with('L')) text_.remove_prefix(1);  // Python 2
      result.push_back(value);
      if (result.size() > Shape::kMaxRank) {
        fail(ErrorCode::unsupported, "[npy] '{}': more than {} dimensions", file_, Shape::kMaxRank);
      }
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return result;
  }
  DType dtype(std::string_view descr) const {
    const char order = descr.empty() ? '\0' : descr[0];
    const std::string_view code = descr.substr(descr.empty() ? 0 : 1);
    for (const Code& known : kCodes) {
      if (known.descr != code) continue;
      if (order == '<' || (size_of(known.dtype) == 1 && order == '|')) return known.dtype;
      if (order == '=') return known.dtype;
      fail(ErrorCode::unsupported, "[npy] '{}': '{}' is not in little-endian order", file_, descr);
    }
    fail(ErrorCode::unsupported, "[npy] '{}': elements of type '{}' are not supported", file_,
         descr);
  }

  std::string_view text_;
  std::string_view file_;
  Header header_;
};

// Element at index (i, j, ...) of Fortran order goes to the same index of row-major order.
void transpose_from_fortran(const Shape& shape, std::size_t item, const char* from, char* to) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  const auto strides = shape.strides();
  std::int64_t at = 0;
  for (std::int64_t i = 0, count = shape.elements(); i < count; ++i) {
    std::memcpy(to + static_cast<std::size_t>(at) * item, from + static_cast<std::size_t>(i) * item,
                item);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      at += strides[a];
      if (++index[a] < shape[axis]) break;
      at -= strides[a] * index[a];
      index[a] = 0;
    }
  }
}

void normalize_booleans(const Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  auto* bytes = static_cast<unsigned char*>(tensor.address());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

}  // namespace

Tensor parse_npy(std::string_view bytes, std::string_view file_name) {
  const auto refuse = [&](std::string_view what) {
    fail(ErrorCode::invalid_model, "[npy] '{}': {}", file_name, what);
  };
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) refuse("not an .npy file");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const int version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0) refuse("unknown version of the format");
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) refuse("the file ends inside the header");
  std::size_t length = 0;
  for (std::size_t i = start; i > 8; --i) length = length << 8 | byte(i - 1);
  if (length > kHeaderLimit) refuse("header above the limit of 65536 bytes");
  if (bytes.size() - start < length) refuse("the file ends inside the header");
  const Header header = HeaderParser(bytes.substr(start, length), file_name).parse();

  const TensorSpec spec{header.dtype, Shape(header.dims)};
  const std::string_view data = bytes.substr(start + length);
  if (data.size() != static_cast<std::size_t>(spec.bytes())) {
    fail(ErrorCode::invalid_model, "[npy] '{}': {} bytes of elements, but {} needs {}", file_name,
         data.size(), to_string(spec), spec.bytes());
  }
  Tensor tensor = Tensor::empty(spec);
  if (header.fortran_order && spec.shape.rank() > 1 && !data.empty()) {
    transpose_from_fortran(spec.shape, size_of(spec.dtype), data.data(),
                           static_cast<char*>(tensor.address()));
  } else if (!data.empty()) {
    std::memcpy(tensor.address(), data.data(), data.size());
  }
  normalize_booleans(tensor);
  return tensor;
}

Tensor load_npy(const std::filesystem::path& file) {
  return parse_npy(read_file(file, kFileLimit), file.string());
}

void save_npy(const std::filesystem::path& file, const Tensor& tensor) {
  if (!tensor.defined() || tensor.device() != nullptr) {
    fail(ErrorCode::invalid_argument, "[npy] '{}': not a host tensor", file.string());
  }
  std::string_view code;
  for (const Code& known : kCodes) {
    if (known.dtype == tensor.dtype()) code = known.descr;
  }
  if (code.empty()) {
    fail(ErrorCode::unsupported, "[npy] '{}': the format has no {} elements", file.string(),
         to_string(tensor.dtype()));
  }
  const Shape& shape = tensor.shape();
  std::string dict =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  size_of(tensor.dtype()) == 1 ? '|' : '<', code,
                  fmt::join(shape.begin(), shape.end(), ", "), shape.rank() == 1 ? "," : "");
  dict.append(63 - (kMagic.size() + 4 + dict.size()) % 64, ' ');  // elements start 64-byte aligned
  dict += '\n';
  const char prefix[4] = {1, 0, static_cast<char>(dict.size() & 0xff),
                          static_cast<char>(dict.size() >> 8)};
  const std::string_view parts[] = {
      kMagic, {prefix, 4}, dict, {static_cast<const char*>(tensor.address()), tensor.bytes()}};
  write_file(file, parts);
}

}  // namespace turnout
