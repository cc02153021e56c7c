#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <fstream>
#include <random>

#include "runtime/io/file.hpp"
#include "runtime/io/npy.hpp"
#include "runtime/io/tensor_pb.hpp"

using namespace turnout;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("turnout_npy_{}", std::random_device()());
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string npy(const std::string& dict, const std::string& data, int major = 1) {
  std::string header = dict + "\n";
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return file + header + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor sample(DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::zeros({dtype, shape});
  auto* bytes = static_cast<unsigned char*>(tensor.address());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(dtype == DType::boolean ? i % 2 : i * 7 + 1);
  }
  return tensor;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.address(), b.address(), a.bytes()) == 0;
}

std::string error_of(const std::string& bytes) {
  try {
    parse_npy(bytes, "x.npy");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("npy files keep every dtype and shape") {
  const Folder folder;
  const DType dtype =
      GENERATE(DType::f32, DType::f64, DType::f16, DType::i8, DType::u8, DType::i16, DType::u16,
               DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean);
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{1, 2, 3, 4}}) {
    const Tensor tensor = sample(dtype, shape);
    const fs::path file = folder.path / "x.npy";
    save_npy(file, tensor);
    CHECK(same(load_npy(file), tensor));
    save_tensor_pb(folder.path / "x.pb", tensor, "x");
    CHECK(same(load_tensor_pb(folder.path / "x.pb"), tensor));
    // The elements are aligned as numpy writes them.
    CHECK((fs::file_size(file) - tensor.bytes()) % 64 == 0);
  }
}

TEST_CASE("bf16 goes through protobuf, and npy says that it can't") {
  const Folder folder;
  const Tensor tensor = sample(DType::bf16, {2, 2});
  save_tensor_pb(folder.path / "x.pb", tensor, "x");
  CHECK(same(load_tensor_pb(folder.path / "x.pb"), tensor));
  CHECK_THROWS_WITH(save_npy(folder.path / "x.npy", tensor), ContainsSubstring("no bf16 elements"));
}

TEST_CASE("Fortran order is transposed on load") {
  // Element (i, j, k) of a [2,3,2] array is 100 i + 10 j + k; i runs fastest in the file.
  std::vector<std::int32_t> stored, wanted;
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) wanted.push_back(100 * i + 10 * j + k);
    }
  }
  const std::string dict = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 2), }";
  const Tensor tensor = parse_npy(npy(dict, bytes_of(stored)), "x.npy");
  CHECK(same(tensor, Tensor::of(Shape{2, 3, 2}, wanted)));
}

TEST_CASE("all versions of the format and other key orders are read") {
  const std::vector<float> values{1, 2, 3};
  const Tensor wanted = Tensor::of(Shape{3}, values);
  const std::string dict = "{\"shape\": (3,), 'fortran_order': False, 'descr': '<f4'}    ";
  for (int version = 1; version <= 3; ++version) {
    CHECK(same(parse_npy(npy(dict, bytes_of(values), version), "x.npy"), wanted));
  }
}

TEST_CASE("booleans other than 0 and 1 become 1") {
  const Tensor tensor = parse_npy(
      npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x02\xff\x01"), "x.npy");
  for (bool flag : tensor.values<bool>()) CHECK(flag);
}

TEST_CASE("malformed npy files are one error each") {
  const auto dict = [](const std::string& descr, const std::string& order,
                       const std::string& shape) {
    return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
  };
  const std::string four(16, '\0');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not an .npy file"},
      {"\x93NUMPY", "not an .npy file"},
      {std::string(100, 'x'), "not an .npy file"},
      {npy(dict("'>f4'", "False", "(4,)"), four), "not in little-endian order"},
      {npy(dict("'<c8'", "False", "(2,)"), four), "elements of type '<c8' are not supported"},
      {npy(dict("'|O'", "False", "(2,)"), four), "not supported"},
      {npy(dict("[('a', '<f4')]", "False", "(4,)"), four), "structured elements"},
      {npy(dict("'<f4'", "Maybe", "(4,)"), four), "True or False expected"},
      {npy(dict("'<f4'", "False", "(5,)"), four), "16 bytes of elements, but f32[5] needs 20"},
      {npy(dict("'<f4'", "False", "(-4,)"), four), "tuple of sizes"},
      {npy(dict("'<f4'", "False", "(4, x)"), four), "tuple of sizes"},
      {npy(dict("'<f4'", "False", "(99999999999999999999,)"), four), "tuple of sizes"},
      {npy(dict("'<f4'", "False", "(4611686018427387904, 4611686018427387904)"), four),
       "more than"},
      {npy(dict("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), four), "more than 8 dimensions"},
      {npy("{'descr': '<f4', 'shape': (4,), }", four), "needs 'descr'"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", four),
       "unexpected key"},
      {npy("{'descr': '<f4", four), "string without end"},
      {npy(dict("'<f4'", "False", "(4,)") + " x", four), "text after"},
      {npy(dict("'<f4'", "False", "(4,)"), four, 9), "unknown version"},
  };
  for (const auto& [bytes, message] : cases) {
    INFO(message);
    CHECK_THAT(error_of(bytes), ContainsSubstring(message));
  }
}

TEST_CASE("a header longer than the file or the limit is refused before it is read") {
  std::string huge = npy("{}", "", 2);
  std::memset(huge.data() + 8, 0xff, 4);
  CHECK_THAT(error_of(huge), ContainsSubstring("limit"));
  std::string cut = npy("{}", "");
  cut[8] = 100;
  CHECK_THAT(error_of(cut), ContainsSubstring("ends inside the header"));
}

TEST_CASE("a cut or altered npy file never crashes") {
  const std::string whole =
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, '\1'));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK_THROWS_AS(parse_npy(whole.substr(0, length), "x.npy"), Error);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string altered = whole;
    for (int flips = 0; flips < 1 + i % 4; ++flips) {
      altered[random() % altered.size()] ^= static_cast<char>(1 << random() % 8);
    }
    try {
      parse_npy(altered, "x.npy");
    } catch (const Error&) {
      continue;
    }
  }
}

TEST_CASE("a file that can't be written is an error, and the old one stays") {
  const Folder folder;
  const fs::path file = folder.path / "x.npy";
  save_npy(file, Tensor::scalar(1.0F));
  CHECK_THROWS_WITH(save_npy(folder.path / "none" / "x.npy", Tensor::scalar(1.0F)),
                    ContainsSubstring("can't write"));
  CHECK_THROWS_WITH(save_npy(folder.path, Tensor::scalar(1.0F)), ContainsSubstring("can't write"));
  CHECK(load_npy(file).values<float>()[0] == 1.0F);
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder.path)) count += entry.exists() ? 1 : 0;
  CHECK(count == 1);  // nothing is left behind
  CHECK_THROWS_WITH(load_npy(folder.path / "none.npy"), ContainsSubstring("there is no file"));
  CHECK_THROWS_WITH(load_npy(folder.path), ContainsSubstring("is not a file"));
}
