// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/units.h"

#include "base/text.h"
#include "profile/import/flow/autograd.h"
#include "profile/import/flow/op_kinds.h"
#include "profile/import/flow/roles.h"
#include "profile/import/flow/storage_values.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace purlin::profile::flow {
namespace {

constexpr std::string_view kBackward = "autograd::engine::evaluate_function";

class Walk {
 public:
  explicit Walk(const ExecutionTrace& trace)
      : trace_(trace),
        roles_(find_roles(trace)),
        differentiated_(find_differentiated(trace)),
        unit_of_(trace.nodes.size(), kNoIndex),
        next_in_thread_(next_in_thread(trace)),
        backward_(trace.nodes.size(), 0),
        accumulate_(trace.nodes.size(), 0),
        held_(trace, out_) {}

  Units walk() {
    const auto count = static_cast<std::uint32_t>(trace_.nodes.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      mark_pass(i);
      const TraceNode& node = trace_.nodes[i];
      switch (roles_[i]) {
        case Role::kAllocation:
          for (const TensorUse& output : trace_.outputs(node))
            if (output.storage != 0) held_.begin_memory(output, i);
          break;
        case Role::kAccumulate:
          for (const TensorUse& input : trace_.inputs(node))
            if (input.storage != 0) out_.memories[held_.current(input).memory].gradient = true;
          break;
        case Role::kUnit:
          add_unit(i);
          break;
        case Role::kReader:
          add_reader(i);
          break;
        case Role::kFrame:
        case Role::kView:
        case Role::kInside:
          break;
      }
    }
    return std::move(out_);
  }

 private:
  void mark_pass(std::uint32_t index) {
    const TraceNode& node = trace_.nodes[index];
    const std::string& name = trace_.name(node);
    backward_[index] = starts_with(name, kBackward) || backward_[node.parent] != 0 ? 1 : 0;
    accumulate_[index] = name == kAccumulateNode || accumulate_[node.parent] != 0 ? 1 : 0;
  }

  void add_reader(std::uint32_t index) {
    Unit unit;
    unit.node = index;
    unit.first_read = static_cast<std::uint32_t>(out_.reads.size());
    unit.first_write = static_cast<std::uint32_t>(out_.writes.size());
    unit.unknown = unit.random = true;
    for (const TensorUse& input : trace_.inputs(trace_.nodes[index]))
      if (input.storage != 0 && !held_.current(input).unset) held_.read(input);
    unit.reads = static_cast<std::uint32_t>(out_.reads.size()) - unit.first_read;
    out_.units.push_back(unit);
  }

  void add_unit(std::uint32_t index) {
    const TraceNode& node = trace_.nodes[index];
    const std::string& name = trace_.name(node);
    const auto self = static_cast<std::uint32_t>(out_.units.size());
    Unit unit;
    unit.node = index;
    unit.first_read = static_cast<std::uint32_t>(out_.reads.size());
    unit.first_write = static_cast<std::uint32_t>(out_.writes.size());
    unit.unknown = !starts_with(name, "aten::");
    unit.host = gives_to_host(name);
    unit.random =
        unit.unknown || is_random(name) || node.dropout || trace_.schemas[node.schema].generator;
    unit.accumulates = accumulate_[index] != 0;
    unit.backward = backward_[index] != 0;
    unit.differentiated = differentiated_[index] != 0;
    unit.backward_node = unit.backward                         ? backward_node_around(trace_, index)
                         : differentiated_[index] == kSomeNode ? 0
                                                               : differentiated_[index];
    out_.units.push_back(unit);

    const std::span<const TensorUse> inputs = trace_.inputs(node);
    std::vector<const TensorUse*> written;
    bool from_device = false, to_host = false;
    for (const TensorUse& input : inputs) {
      if (input.storage == 0) continue;
      from_device = from_device || !input.host;
      const bool writes = writes_input(node, name, input);
      if (writes) {
        written.push_back(&input);
        to_host = to_host || input.host;
        if (held_.current(input).unset) continue;
        if (!held_.covers(input)) held_.read(input, true);
        if (overwrites(node, name, input)) continue;
      }
      held_.read(input);
    }
    read_inside(index, self);
    for (const TensorUse* use : written) held_.write(*use, self);
    const Storages given(inputs);
    for (const TensorUse& output : trace_.outputs(node)) {
      if (output.storage == 0 || given.has(output)) continue;
      if (!held_.was_written(output, self)) {
        held_.begin_memory(output, index);
        held_.write(output, self);
      }
      to_host = to_host || output.host;
    }
    Unit& made = out_.units[self];
    made.reads = static_cast<std::uint32_t>(out_.reads.size()) - made.first_read;
    made.writes = static_cast<std::uint32_t>(out_.writes.size()) - made.first_write;
    made.host = made.host || (from_device && to_host);
    for (std::uint32_t i = 0; made.accumulates && i < made.writes; ++i)
      out_.memories[out_.values[out_.writes[made.first_write + i]].memory].gradient = true;
  }

  // Schemas do not tell it of collectives, kernels and the statistics of a batch norm.
  bool writes_input(const TraceNode& node, const std::string& name, const TensorUse& input) const {
    if (!node.is_op() || is_collective(name)) return true;
    if (is_batch_norm(name) && node.training && (input.argument == 3 || input.argument == 4))
      return true;
    return trace_.schemas[node.schema].writes(input.argument);
  }

  // In place, without a look at what was there.
  bool overwrites(const TraceNode& node, const std::string& name, const TensorUse& input) const {
    const OpSchema& schema = trace_.schemas[node.schema];
    return schema.is_result(input.argument) || (input.argument == 0 && only_overwrites(name));
  }

  // What the ops inside a unit read and write of memory from outside it.
  void read_inside(std::uint32_t index, std::uint32_t self) {
    std::unordered_set<std::uint32_t> known;
    for (const TensorUse& input : trace_.inputs(trace_.nodes[index])) known.insert(input.storage);
    for (const TensorUse& output : trace_.outputs(trace_.nodes[index]))
      known.insert(output.storage);
    for (std::uint32_t i = next_in_thread_[index]; i != kNoIndex; i = next_in_thread_[i]) {
      const TraceNode& node = trace_.nodes[i];
      if (roles_[i] != Role::kInside || unit_above(i) != index) break;
      const std::span<const TensorUse> inputs = trace_.inputs(node);
      if (node.is_op() && !is_view(node)) {
        for (const TensorUse& input : inputs) {
          if (input.storage == 0 || known.contains(input.storage)) continue;
          if (!held_.current(input).unset) held_.read(input);
          if (trace_.schemas[node.schema].writes(input.argument)) held_.write(input, self);
        }
      }
      const Storages given(inputs);
      for (const TensorUse& output : trace_.outputs(node))
        if (!given.has(output)) known.insert(output.storage);
    }
  }

  // Of each node, the next one of the same thread.
  static std::vector<std::uint32_t> next_in_thread(const ExecutionTrace& trace) {
    std::vector<std::uint32_t> next(trace.nodes.size(), kNoIndex);
    std::unordered_map<std::uint32_t, std::uint32_t> later;
    for (auto i = static_cast<std::uint32_t>(trace.nodes.size()); i-- > 0;) {
      const auto [at, added] = later.try_emplace(trace.nodes[i].thread, i);
      if (!added) next[i] = std::exchange(at->second, i);
    }
    return next;
  }

  bool is_view(const TraceNode& node) const {
    const Storages given(trace_.inputs(node));
    const std::span<const TensorUse> outputs = trace_.outputs(node);
    return !trace_.schemas[node.schema].writes_any() &&
           std::all_of(outputs.begin(), outputs.end(),
                       [&](const TensorUse& output) { return given.has(output); });
  }

  // Nodes inside it come later, so that the walk has not been there.
  std::uint32_t unit_above(std::uint32_t index) {
    const std::uint32_t parent = trace_.nodes[index].parent;
    unit_of_[index] = roles_[parent] == Role::kInside ? unit_of_[parent] : parent;
    return unit_of_[index];
  }

  const ExecutionTrace& trace_;
  std::vector<Role> roles_;
  std::vector<std::uint32_t> differentiated_;  // by node
  std::vector<std::uint32_t> unit_of_;         // by node inside one
  std::vector<std::uint32_t> next_in_thread_;  // by node
  std::vector<char> backward_, accumulate_;
  Units out_;
  StorageValues held_;
};

}  // namespace

std::uint32_t Units::first_from(std::uint32_t node) const {
  const auto at = std::partition_point(units.begin(), units.end(),
                                       [node](const Unit& unit) { return unit.node < node; });
  return static_cast<std::uint32_t>(at - units.begin());
}

Units find_units(const ExecutionTrace& trace) { return Walk(trace).walk(); }

}  // namespace purlin::profile::flow
