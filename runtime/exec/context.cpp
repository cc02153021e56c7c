#include "runtime/exec/context.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace turnout {

Context::Context(const Program& program, const Plan& plan) : program_(program), plan_(plan) {
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    std::size_t bytes = program.arena_bytes[d];
    for (const Location& place :
         program.locations) {  // values without elements have an address too
      const bool here =
          place.source == Location::Source::arena && place.device == static_cast<int>(d);
      if (here) bytes = std::max<std::size_t>(bytes, 1);
    }
    Device& device = *plan.devices[d].device;
    arenas_.push_back(bytes == 0 ? nullptr : device.allocate(bytes, MemoryKind::device));
  }
  for (int lane = 0; lane < program.lanes; ++lane) {
    const int device = lane == 0 ? 0 : (lane - 1) / 3 + 1;
    streams_.push_back(plan.devices[static_cast<std::size_t>(device)].device->make_stream());
  }
  events_.resize(program.steps.size());
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (!program.steps[s].records) continue;
    events_[s] = streams_[static_cast<std::size_t>(program.steps[s].lane)]->device().make_event();
  }
  fill_operands();
  captures_.resize(program.segments.size());
  for (const Location& location : program.locations) {  // an input has one even if nobody reads it
    const auto count = static_cast<std::size_t>(location.io_index) + 1;
    if (location.source == Location::Source::input) inputs_.resize(std::max(inputs_.size(), count));
    if (location.source == Location::Source::output) {
      outputs_.resize(std::max(outputs_.size(), count));
    }
  }
}

Context::~Context() { drain(); }

Operand Context::operand(int location, std::uint32_t index) {
  if (location < 0) return {};
  const Location& place = program_.locations[static_cast<std::size_t>(location)];
  const auto device = static_cast<std::size_t>(place.device);
  const auto at = [&](const std::shared_ptr<Buffer>& block) -> Operand {
    return {static_cast<std::byte*>(block->address()) + place.offset, block->device()};
  };
  switch (place.source) {
    case Location::Source::arena:
      return at(arenas_[device]);
    case Location::Source::constant:
      if (program_.constant_blocks[device] != nullptr) return at(program_.constant_blocks[device]);
      return {};  // of the host: filled in by fill_operands
    case Location::Source::input:
      patches_.push_back({index, place.io_index, false});
      return {};
    case Location::Source::output:
      patches_.push_back({index, place.io_index, true});
      return {};
  }
  return {};
}

void Context::fill_operands() {
  std::size_t count = 0;
  for (const ExecStep& step : program_.steps) count += step.inputs.size() + step.outputs.size();
  operands_.reserve(count);
  std::map<std::size_t, void*> host_constants;
  for (const auto& [location, tensor] : program_.host_constants) {
    host_constants[location] = tensor.address();
  }
  const auto add = [&](int location) {
    operands_.push_back(operand(location, static_cast<std::uint32_t>(operands_.size())));
    if (location < 0 || operands_.back().address != nullptr) return;
    const auto at = host_constants.find(static_cast<std::size_t>(location));
    if (at != host_constants.end()) operands_.back().address = at->second;
  };
  for (const ExecStep& step : program_.steps) {
    Launch launch;
    launch.first_input = static_cast<std::uint32_t>(operands_.size());
    for (int location : step.inputs) add(location);
    launch.first_output = static_cast<std::uint32_t>(operands_.size());
    for (int location : step.outputs) add(location);
    const Operand workspace = operand(step.workspace, 0);
    const Device& runs_on = streams_[static_cast<std::size_t>(step.lane)]->device();
    const Device* device = runs_on.info().is_host ? nullptr : &runs_on;
    launch.args = KernelArgs({operands_.data() + launch.first_input, step.inputs.size()},
                             {operands_.data() + launch.first_output, step.outputs.size()},
                             workspace, device);
    launches_.push_back(launch);
  }
}

void Context::patch() {
  for (const Patch& p : patches_) {
    const auto& addresses = p.is_output ? outputs_ : inputs_;
    operands_[p.operand].address = addresses[static_cast<std::size_t>(p.io_index)];
  }
}

void Context::wait_for(const ExecStep& step, Stream& stream) {
  for (int other : step.waits) stream.wait(*events_[static_cast<std::size_t>(other)]);
}

void Context::issue(std::size_t index) {
  const ExecStep& step = program_.steps[index];
  Stream& stream = *streams_[static_cast<std::size_t>(step.lane)];
  wait_for(step, stream);
  const Launch& launch = launches_[index];
  if (step.kind == ExecStep::Kind::run) {
    stream.launch(*step.kernel, launch.args);
  } else {
    const Operand& from = operands_[launch.first_input];
    const Operand& to = operands_[launch.first_output];
    const Location& place = program_.locations[static_cast<std::size_t>(step.outputs[0])];
    stream.copy(to.address, to.device, from.address, from.device, place.bytes);
  }
  if (step.records) stream.record(*events_[index]);
}

std::unique_ptr<CapturedWork> Context::capture(const Segment& segment, Stream& stream) {
  stream.begin_capture();
  try {
    for (int i = 0; i < segment.count; ++i) {
      const auto at = static_cast<std::size_t>(segment.first + i);
      stream.launch(*program_.steps[at].kernel, launches_[at].args);
    }
  } catch (...) {
    stream.end_capture();
    throw;
  }
  return stream.end_capture();
}

void Context::issue_segment(std::size_t index) {
  const Segment& segment = program_.segments[index];
  const auto first = static_cast<std::size_t>(segment.first);
  const auto last = first + static_cast<std::size_t>(segment.count) - 1;
  Stream& stream = *streams_[static_cast<std::size_t>(program_.steps[first].lane)];
  Capture& captured = captures_[index];
  if (!captured.warm || !stream.can_capture()) {
    for (std::size_t s = first; s <= last; ++s) issue(s);
    captured.warm = true;
    return;
  }
  wait_for(program_.steps[first], stream);
  if (captured.work == nullptr) captured.work = capture(segment, stream);
  stream.launch(*captured.work);
  if (program_.steps[last].records) stream.record(*events_[last]);
}

void Context::drain() noexcept {
  for (const auto& stream : streams_) {
    try {
      stream->synchronize();
    } catch (...) {  // NOLINT: the first error is on its way to the caller already
    }
  }
}

void Context::run() {
  patch();
  try {
    std::size_t segment = 0;
    for (std::size_t s = 0; s < program_.steps.size();) {
      const bool starts = segment < program_.segments.size() &&
                          program_.segments[segment].first == static_cast<int>(s);
      if (starts) {
        s += static_cast<std::size_t>(program_.segments[segment].count);
        issue_segment(segment++);
      } else {
        issue(s++);
      }
    }
    for (std::size_t lane = 1; lane < streams_.size(); ++lane) streams_[lane]->synchronize();
  } catch (...) {
    drain();
    throw;
  }
}

void Context::run_timed(std::vector<double>& step_seconds) {
  using Clock = std::chrono::steady_clock;
  step_seconds.assign(program_.steps.size(), 0);
  patch();
  try {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const ExecStep& step = program_.steps[s];
      const auto lane = static_cast<std::size_t>(step.lane);
      for (int other : step.waits) events_[static_cast<std::size_t>(other)]->synchronize();
      const auto begin = Clock::now();
      issue(s);
      streams_[lane]->synchronize();
      const bool by_clock = lane == 0 || !streams_[lane]->device().info().is_virtual;
      step_seconds[s] = by_clock ? std::chrono::duration<double>(Clock::now() - begin).count()
                                 : step.predicted_seconds;
    }
  } catch (...) {
    drain();
    throw;
  }
}

std::size_t Context::arena_bytes(int device) const {
  return program_.arena_bytes[static_cast<std::size_t>(device)];
}

}  // namespace turnout
