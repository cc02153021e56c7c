#include "runtime/io/tensor_pb.hpp"

#include "onnx.pb.h"
#include "runtime/io/file.hpp"
#include "runtime/onnx/proto.hpp"
#include "runtime/onnx/tensor_proto.hpp"

namespace turnout {

Tensor load_tensor_pb(const std::filesystem::path& file) {
  onnx::TensorProto proto;
  parse_proto(read_file(file, kProtoLimit), proto, fmt::format("tensor '{}'", file.string()));
  return to_tensor(proto, std::filesystem::absolute(file).parent_path(),
                   fmt::format("tensor '{}'", file.string()));
}

void save_tensor_pb(const std::filesystem::path& file, const Tensor& tensor,
                    const std::string& name) {
  std::string bytes;
  if (!to_proto(tensor, name).SerializeToString(&bytes)) {
    fail(ErrorCode::unsupported, "tensor '{}': more than a protobuf file can hold", file.string());
  }
  const std::string_view parts[] = {bytes};
  write_file(file, parts);
}

}  // namespace turnout
