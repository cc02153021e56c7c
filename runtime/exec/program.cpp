// From a plan to a program. Pass one walks the plan's steps, prepares kernels and gives every value
// a location per device and layout; where a reader wants another layout than the writer's, a
// reorder step is put before it. Pass two finds what each step depends on, pass three packs the
// arenas and adds the waits that reuse of memory needs.
#include "runtime/exec/program.hpp"

#include <algorithm>
#include <map>

#include "runtime/exec/memory_plan.hpp"

namespace turnout {
namespace {

class Compiler {
 public:
  Compiler(const Graph& graph, const Plan& plan, const ProgramOptions& options)
      : graph_(graph), plan_(plan), options_(options), at_(graph.values().size()) {
    program_.lanes = lane_count(plan.device_count());
    program_.packed_bytes.assign(plan.devices.size(), 0);
    constants_.resize(plan.devices.size());
  }

  Program run() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) add_input(static_cast<int>(i));
    for (const PlanStep& step : plan_.steps) {
      step.kind == PlanStep::Kind::copy ? add_copy(step) : add_node(step);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) add_output(static_cast<int>(i));
    find_dependencies();
    plan_arenas();
    mark_waits();
    if (options_.capture) find_segments();
    place_constants();
    return std::move(program_);
  }

 private:
  struct Placed {
    int device;
    int location;
  };

  void add_input(int index);
  void add_output(int index);
  void add_copy(const PlanStep& step);
  void add_node(const PlanStep& step);
  void add_view(const Node& node, int device);
  int new_location(int device, std::size_t bytes, LayoutPtr layout = nullptr);
  int constant_location(ValueId id, int device);
  int any_location(ValueId id, int device) const;
  int location_in(ValueId id, int device, const LayoutPtr& layout);
  int add_reorder(ValueId id, int from, const LayoutPtr& to);
  std::unique_ptr<PreparedKernel> prepare(NodeId id, int device, const NodeOption& option);
  void add_workspace(ExecStep& step);
  void find_dependencies();
  void plan_arenas();
  void add_reuse_waits(const std::vector<int>& members, const std::vector<int>& first,
                       const std::vector<int>& last);
  void mark_waits();
  void find_segments();
  void place_constants();

  std::size_t bytes_of(ValueId id) const {
    return static_cast<std::size_t>(graph_.value(id).spec.bytes());
  }
  const DeviceSlot& slot(int device) const {
    return plan_.devices[static_cast<std::size_t>(device)];
  }

  const Graph& graph_;
  const Plan& plan_;
  const ProgramOptions& options_;
  Program program_;
  std::vector<std::vector<Placed>> at_;                  // per value
  std::vector<std::map<std::uint32_t, int>> constants_;  // per device: value -> location
};

int Compiler::new_location(int device, std::size_t bytes, LayoutPtr layout) {
  Location location;
  location.device = device;
  location.bytes = layout == nullptr ? bytes : layout->bytes();
  location.layout = std::move(layout);
  program_.locations.push_back(std::move(location));
  return static_cast<int>(program_.locations.size()) - 1;
}

void Compiler::add_input(int index) {
  const ValueId id = graph_.inputs()[static_cast<std::size_t>(index)];
  const int location = new_location(0, bytes_of(id));
  program_.locations.back().source = Location::Source::input;
  program_.locations.back().io_index = index;
  at_[id.index].push_back({0, location});
}

int Compiler::constant_location(ValueId id, int device) {
  auto& known = constants_[static_cast<std::size_t>(device)];
  const auto [at, is_new] = known.emplace(id.index, -1);
  if (is_new) {
    at->second = new_location(device, bytes_of(id));
    program_.locations.back().source = Location::Source::constant;
  }
  return at->second;
}

int Compiler::any_location(ValueId id, int device) const {
  for (const Placed& placed : at_[id.index]) {
    if (placed.device == device) return placed.location;
  }
  fail(ErrorCode::internal, "value '{}' isn't on device {} when it is needed",
       graph_.value(id).name, slot(device).label);
}

int Compiler::location_in(ValueId id, int device, const LayoutPtr& layout) {
  if (graph_.value(id).kind == ValueKind::constant && at_[id.index].empty()) {
    const int plain = constant_location(id, device);
    return layout == nullptr ? plain : add_reorder(id, plain, layout);
  }
  for (const Placed& placed : at_[id.index]) {
    const LayoutPtr& there = program_.locations[static_cast<std::size_t>(placed.location)].layout;
    if (placed.device == device && same_layout(there, layout)) return placed.location;
  }
  return add_reorder(id, any_location(id, device), layout);
}

int Compiler::add_reorder(ValueId id, int from, const LayoutPtr& to) {
  const Location source = program_.locations[static_cast<std::size_t>(from)];
  // Between two providers' layouts the way leads over plain.
  if (source.layout != nullptr && to != nullptr && source.layout->provider() != to->provider()) {
    return add_reorder(id, add_reorder(id, from, nullptr), to);
  }
  const std::string provider(to == nullptr ? source.layout->provider() : to->provider());
  const MakeReorder* make = slot(source.device).kernels->reorder(provider);
  if (make == nullptr) fail(ErrorCode::internal, "provider '{}' has no reorder", provider);
  ExecStep step;
  step.device = source.device;
  step.lane = compute_lane(source.device);
  step.kernel = (*make)(graph_.value(id).spec, source.layout, to, slot(source.device).threads);
  step.value = id;
  step.provider = provider;
  const int location = new_location(source.device, bytes_of(id), to);
  step.inputs = {from};
  step.outputs = {location};
  add_workspace(step);
  program_.steps.push_back(std::move(step));
  ++program_.reorder_count;
  at_[id.index].push_back({source.device, location});
  return location;
}

void Compiler::add_workspace(ExecStep& step) {
  const std::size_t bytes = step.kernel->workspace_bytes();
  if (bytes > 0) step.workspace = new_location(step.device, bytes);
}

void Compiler::add_copy(const PlanStep& plan_step) {
  const CopyPlan& copy = plan_.copies[plan_step.index];
  ExecStep step;
  step.kind = ExecStep::Kind::copy;
  step.lane = plan_step.lane;
  step.value = copy.value;
  step.predicted_seconds = plan_step.seconds;
  step.inputs = {location_in(copy.value, copy.from, nullptr)};
  const int location = new_location(copy.to, bytes_of(copy.value));
  step.outputs = {location};
  at_[copy.value.index].push_back({copy.to, location});
  program_.steps.push_back(std::move(step));
}

void Compiler::add_view(const Node& node, int device) {
  const int location = location_in(node.inputs[0], device, nullptr);
  at_[node.outputs[0].index].push_back({device, location});
}

std::unique_ptr<PreparedKernel> Compiler::prepare(NodeId id, int device, const NodeOption& option) {
  const NodeInfo info = graph_.info(id);
  PrepareContext context{info, *slot(device).device, slot(device).threads, {}, false};
  context.may_choose_layout = options_.choose_layouts && slot(device).info().is_host;
  for (ValueId input : graph_.node(id).inputs) {
    LayoutPtr layout;
    for (const Placed& placed : input.valid() ? at_[input.index] : std::vector<Placed>{}) {
      // The newest wins: a reorder made for an earlier reader may fit this one too.
      const LayoutPtr& there = program_.locations[static_cast<std::size_t>(placed.location)].layout;
      if (placed.device == device && there != nullptr) layout = there;
    }
    context.input_layouts.push_back(layout);
  }
  std::unique_ptr<PreparedKernel> kernel = option.kernel->prepare(context);
  kernel->cost = cost_of(info);
  kernel->dtype = info.output(0).dtype;
  return kernel;
}

void Compiler::add_node(const PlanStep& plan_step) {
  const NodeId id{plan_step.index};
  const Node& node = graph_.node(id);
  const NodePlan& planned = plan_.nodes[id.index];
  if (node.op->view) return add_view(node, planned.device);
  ExecStep step;
  step.device = planned.device;
  step.lane = plan_step.lane;
  step.node = id;
  step.predicted_seconds = plan_step.seconds;
  step.provider = planned.chosen().kernel->provider;
  step.kernel = prepare(id, planned.device, planned.chosen());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    const int index = static_cast<int>(i);
    const bool passed =
        input.valid() && !node.op->is_shape_input(index) && !step.kernel->packs_input(index);
    step.inputs.push_back(
        passed ? location_in(input, planned.device, step.kernel->input_layout(index)) : -1);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId output = node.outputs[i];
    const int location = new_location(planned.device, bytes_of(output),
                                      step.kernel->output_layout(static_cast<int>(i)));
    step.outputs.push_back(location);
    at_[output.index].push_back({planned.device, location});
  }
  add_workspace(step);
  program_.packed_bytes[static_cast<std::size_t>(planned.device)] += step.kernel->packed_bytes();
  program_.steps.push_back(std::move(step));
}

// An output is written in place where its producer can; otherwise it is copied at the end.
void Compiler::add_output(int index) {
  const ValueId id = graph_.outputs()[static_cast<std::size_t>(index)];
  const int from = location_in(id, 0, nullptr);
  Location& source = program_.locations[static_cast<std::size_t>(from)];
  if (source.source == Location::Source::arena && source.bytes == bytes_of(id)) {
    source.source = Location::Source::output;
    source.io_index = index;
    return;
  }
  const int to = new_location(0, bytes_of(id));
  program_.locations.back().source = Location::Source::output;
  program_.locations.back().io_index = index;
  ExecStep step;
  step.kind = ExecStep::Kind::copy;
  step.value = id;
  step.inputs = {from};
  step.outputs = {to};
  program_.steps.push_back(std::move(step));
}

void Compiler::find_dependencies() {
  std::vector<int> writer(program_.locations.size(), -1);
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    ExecStep& step = program_.steps[s];
    for (int input : step.inputs) {
      if (input >= 0 && writer[static_cast<std::size_t>(input)] >= 0) {
        step.after.push_back(writer[static_cast<std::size_t>(input)]);
      }
    }
    for (int output : step.outputs) writer[static_cast<std::size_t>(output)] = static_cast<int>(s);
  }
}

void Compiler::plan_arenas() {
  const std::size_t count = program_.locations.size();
  std::vector<int> first(count, -1);
  std::vector<int> last(count, -1);
  const auto touch = [&](int location, int step) {
    if (location < 0) return;
    const auto at = static_cast<std::size_t>(location);
    if (first[at] < 0) first[at] = step;
    last[at] = step;
  };
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const ExecStep& step = program_.steps[s];
    for (int input : step.inputs) touch(input, static_cast<int>(s));
    for (int output : step.outputs) touch(output, static_cast<int>(s));
    touch(step.workspace, static_cast<int>(s));
  }
  for (int device = 0; device < plan_.device_count(); ++device) {
    std::vector<Block> blocks;
    std::vector<int> members;
    for (std::size_t i = 0; i < count; ++i) {
      const Location& location = program_.locations[i];
      const bool mine = location.device == device && location.source == Location::Source::arena;
      if (!mine || first[i] < 0) continue;
      blocks.push_back({location.bytes, first[i], last[i]});
      members.push_back(static_cast<int>(i));
    }
    const MemoryPlan memory = plan_memory(blocks);
    program_.arena_bytes.push_back(memory.bytes);
    for (std::size_t i = 0; i < members.size(); ++i) {
      program_.locations[static_cast<std::size_t>(members[i])].offset = memory.offsets[i];
    }
    if (plan_.device_count() > 1) add_reuse_waits(members, first, last);
  }
}

// Memory of one location may hold another one earlier in the order of issue, with a reader on
// another lane still at work: the writer has to wait for it.
void Compiler::add_reuse_waits(const std::vector<int>& members, const std::vector<int>& first,
                               const std::vector<int>& last) {
  std::vector<std::vector<int>> users(program_.locations.size());
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const ExecStep& step = program_.steps[s];
    for (int i : step.inputs) {
      if (i >= 0) users[static_cast<std::size_t>(i)].push_back(static_cast<int>(s));
    }
    for (int i : step.outputs) users[static_cast<std::size_t>(i)].push_back(static_cast<int>(s));
    if (step.workspace >= 0) {
      users[static_cast<std::size_t>(step.workspace)].push_back(static_cast<int>(s));
    }
  }
  for (int later : members) {
    const Location& b = program_.locations[static_cast<std::size_t>(later)];
    const int start = first[static_cast<std::size_t>(later)];
    ExecStep& step = program_.steps[static_cast<std::size_t>(start)];
    for (int earlier : members) {
      const Location& a = program_.locations[static_cast<std::size_t>(earlier)];
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (!overlap || last[static_cast<std::size_t>(earlier)] >= start) continue;
      for (int user : users[static_cast<std::size_t>(earlier)]) {
        if (program_.steps[static_cast<std::size_t>(user)].lane != step.lane) {
          step.after.push_back(user);
        }
      }
    }
  }
}

void Compiler::mark_waits() {
  for (ExecStep& step : program_.steps) {
    std::sort(step.after.begin(), step.after.end());
    step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
    std::vector<int> newest(static_cast<std::size_t>(program_.lanes), -1);
    for (int other : step.after) {
      const int lane = program_.steps[static_cast<std::size_t>(other)].lane;
      // The host's lane works at once: whatever was issued there is done.
      if (lane != step.lane && lane != 0) newest[static_cast<std::size_t>(lane)] = other;
    }
    for (int other : newest) {
      if (other < 0) continue;
      step.waits.push_back(other);
      program_.steps[static_cast<std::size_t>(other)].records = true;
    }
  }
}

void Compiler::find_segments() {
  const auto& steps = program_.steps;
  const auto capturable = [&](const ExecStep& step) {
    return step.kind == ExecStep::Kind::run && !slot(step.device).info().is_host;
  };
  const auto add = [&](std::size_t first, std::size_t end) {
    if (end - first < 2) return;
    program_.segments.push_back({static_cast<int>(first), static_cast<int>(end - first)});
  };
  std::size_t first = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const bool follows = s > first && capturable(steps[s]) && steps[s].waits.empty() &&
                         steps[s].lane == steps[s - 1].lane && !steps[s - 1].records &&
                         capturable(steps[s - 1]);
    if (follows) continue;
    add(first, s);
    first = s;
  }
  add(first, steps.size());
}

void Compiler::place_constants() {
  program_.constant_blocks.resize(plan_.devices.size());
  for (int device = 0; device < plan_.device_count(); ++device) {
    const auto& known = constants_[static_cast<std::size_t>(device)];
    if (slot(device).info().is_host) {
      for (const auto& [value, location] : known) {
        program_.host_constants.emplace_back(static_cast<std::size_t>(location),
                                             graph_.values()[value].known);
      }
      continue;
    }
    std::size_t total = 0;
    for (const auto& [value, location] : known) {
      Location& place = program_.locations[static_cast<std::size_t>(location)];
      place.offset = total;
      total += (place.bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment *
               MemoryPlan::kAlignment;
    }
    if (known.empty()) continue;
    Device& where = *slot(device).device;
    std::shared_ptr<Buffer> block =
        where.allocate(std::max<std::size_t>(total, 1), MemoryKind::device);
    const std::unique_ptr<Stream> stream = where.make_stream();
    for (const auto& [value, location] : known) {
      const Location& place = program_.locations[static_cast<std::size_t>(location)];
      stream->copy(static_cast<std::byte*>(block->address()) + place.offset, &where,
                   graph_.values()[value].known.address(), nullptr, place.bytes);
    }
    stream->synchronize();
    program_.constant_blocks[static_cast<std::size_t>(device)] = std::move(block);
  }
}

}  // namespace

Program compile(const Graph& graph, const Plan& plan, const ProgramOptions& options) {
  return Compiler(graph, plan, options).run();
}

}  // namespace turnout
