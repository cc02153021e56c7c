#pragma once

#include <memory>
#include <vector>

#include "core/backend.hpp"

namespace turnout::test {

/// One node made ready on a device that isn't the host; run() takes and gives host tensors.
struct DeviceNode {
  Device& device;
  const PreparedKernel& kernel;
  const NodeInfo& info;
  std::vector<std::shared_ptr<Buffer>> buffers;

  Operand place(std::size_t bytes) {
    buffers.push_back(device.allocate(bytes, MemoryKind::device));
    return {buffers.back()->address(), &device};
  }

  /// Uploads on one stream, runs on a second, downloads on a third.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    const auto up = device.make_stream();
    const auto work = device.make_stream();
    const auto down = device.make_stream();
    const auto uploaded = device.make_event();
    const auto computed = device.make_event();
    std::vector<Operand> in;
    std::vector<Operand> out;
    for (int i = 0; i < info.input_count(); ++i) {
      const Tensor& tensor = inputs[static_cast<std::size_t>(i)];
      const bool passed = tensor.defined() && !info.op->is_shape_input(i) && !kernel.packs_input(i);
      in.push_back(passed ? place(tensor.bytes()) : Operand{});
      if (passed) up->copy(in.back().address, &device, tensor.address(), nullptr, tensor.bytes());
    }
    up->record(*uploaded);
    std::vector<Tensor> results;
    for (int i = 0; i < info.output_count(); ++i) {
      results.push_back(Tensor::empty(info.output(i)));
      out.push_back(place(results.back().bytes()));
    }
    const Operand workspace =
        kernel.workspace_bytes() > 0 ? place(kernel.workspace_bytes()) : Operand{};
    work->wait(*uploaded);
    work->launch(kernel, KernelArgs(in, out, workspace, &device));
    work->record(*computed);
    down->wait(*computed);
    for (std::size_t i = 0; i < results.size(); ++i) {
      down->copy(results[i].address(), nullptr, out[i].address, &device, results[i].bytes());
    }
    down->synchronize();
    return results;
  }
};

}  // namespace turnout::test
