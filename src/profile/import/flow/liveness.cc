// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/liveness.h"

#include "base/hash.h"
#include "profile/import/flow/op_kinds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace purlin::profile::flow {
namespace {

// A part of a value that units read: the same part where the key is the same.
struct Part {
  std::uint64_t key = 0;
  double bytes = 0;
  bool rows = false;  // whole rows of the value
  std::uint32_t reader = kNoIndex;
};

constexpr std::size_t kMaxParts = 256;
constexpr std::uint64_t kWholeKey = 1;
constexpr double kNearlyAll = 0.999;

class StepReads {
 public:
  StepReads(const ExecutionTrace& trace, const Units& units, const FlowStep& step)
      : trace_(trace), units_(units), step_(step), values_(units.values.size()) {}

  StepUse find() {
    const auto& list = units_.units;
    const std::uint32_t first = units_.first_from(step_.begin), last = units_.first_from(step_.end);
    look_at_gradients(first, last);
    StepUse out;
    out.first = first;
    out.units.resize(last - first);
    for (auto i = static_cast<std::uint32_t>(list.size()); i-- > first;) {
      UnitUse use;
      use.matters = i >= last ? !only_accumulates(list[i]) : matters(list[i]);
      if (i < last) {
        backward_matters_ = backward_matters_ || (use.matters && list[i].backward);
        if (use.matters) use = share_of(i);
        out.units[i - first] = use;
      }
      if (use.matters) add_reads(i, i < last ? use.share : 1);
    }
    return out;
  }

 private:
  struct OfValue {
    std::vector<Part> parts;
    bool read = false;
    bool all = false;  // every byte, or it is not known which
  };

  // Memory of gradients that is read, apart from autograd's own addition. A read outside of the
  // backward pass is that of an optimizer, or of what comes before it.
  void look_at_gradients(std::uint32_t first, std::uint32_t last) {
    read_gradient_.assign(units_.memories.size(), 0);
    std::vector<bool> read_after(units_.memories.size(), false);
    for (std::size_t i = first; i < units_.units.size(); ++i) {
      const Unit& unit = units_.units[i];
      if (unit.accumulates) continue;
      for (std::uint32_t k = 0; k < unit.reads; ++k) {
        const Value& value = units_.values[units_.reads[unit.first_read + k].value];
        if (!units_.memories[value.memory].gradient || value.writer == kNoIndex) continue;
        read_gradient_[value.memory] = 1;
        if (!unit.backward) read_after[value.memory] = true;
      }
    }
    for (std::uint32_t i = first; i < last && !optimizer_; ++i) {
      const Unit& unit = units_.units[i];
      for (std::uint32_t k = 0; k < unit.writes; ++k)
        optimizer_ = optimizer_ || read_after[memory_of(unit, k)];
    }
  }

  std::uint32_t memory_of(const Unit& unit, std::uint32_t write) const {
    return units_.values[units_.writes[unit.first_write + write]].memory;
  }

  bool is_unread_gradient(std::uint32_t memory) const {
    return optimizer_ && units_.memories[memory].gradient && read_gradient_[memory] == 0;
  }

  // It only adds up gradients that are not read.
  bool only_accumulates(const Unit& unit) const {
    if (!unit.accumulates || unit.writes == 0) return false;
    for (std::uint32_t k = 0; k < unit.writes; ++k)
      if (!is_unread_gradient(memory_of(unit, k))) return false;
    return true;
  }

  bool matters(const Unit& unit) const {
    if (unit.unknown || unit.host || unit.writes == 0) return true;
    if (unit.differentiated && backward_matters_) return true;
    for (std::uint32_t k = 0; k < unit.writes; ++k) {
      const std::uint32_t at = units_.writes[unit.first_write + k];
      const Value& value = units_.values[at];
      const Memory& memory = units_.memories[value.memory];
      if (values_[at].read || memory.host) return true;
      if (unit.accumulates && is_unread_gradient(value.memory)) continue;
      const bool from_before = !memory.recorded || memory.begin < step_.begin;
      const bool may_be_held = !memory.ended && !value.changed && !is_unread_gradient(value.memory);
      if (from_before || may_be_held) return true;
    }
    return false;
  }

  UnitUse share_of(std::uint32_t index) {
    UnitUse use;
    use.matters = true;
    const Unit& unit = units_.units[index];
    double largest = 0;
    for (std::uint32_t k = 0; k < unit.writes; ++k)
      largest = std::max(largest, units_.values[units_.writes[unit.first_write + k]].bytes);
    double most = 0;
    for (std::uint32_t k = 0; k < unit.writes; ++k) {
      const std::uint32_t at = units_.writes[unit.first_write + k];
      const Value& value = units_.values[at];
      if (2 * value.bytes < largest) continue;
      const Memory& memory = units_.memories[value.memory];
      const bool held = !memory.ended && !value.changed;
      if (!value.whole || held || memory.host || memory.begin < step_.begin || !memory.recorded ||
          values_[at].all || unit.unknown || unit.host)
        return use;
      double read = 0, best = 0;
      for (const Part& part : values_[at].parts) {
        read += part.bytes;
        if (part.bytes > best) use.reader = part.reader;
        best = std::max(best, part.bytes);
      }
      most = std::max(most, value.bytes > 0 ? read / value.bytes : 1);
    }
    if (most <= 0 || most >= kNearlyAll) return {true, 1, kNoIndex};
    use.share = most;
    return use;
  }

  // The part of the unit's largest result, as one number, and whether it is of whole rows.
  std::pair<std::uint64_t, bool> selection_of(const Unit& unit) const {
    std::vector<std::uint64_t> keys;
    bool rows = true;
    for (std::uint32_t k = 0; k < unit.writes; ++k)
      for (const Part& part : values_[units_.writes[unit.first_write + k]].parts) {
        keys.push_back(part.key);
        rows = rows && part.rows;
      }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (keys.size() == 1) return {keys.front(), rows};
    return {hash64(keys.data(), keys.size() * sizeof(std::uint64_t)), rows};
  }

  void add_reads(std::uint32_t index, double share) {
    const Unit& unit = units_.units[index];
    const TraceNode& node = trace_.nodes[unit.node];
    const PartNeed need = part_need(trace_.name(node));
    const auto [selection, rows] =
        share < 1 ? selection_of(unit) : std::pair<std::uint64_t, bool>(0, true);
    double result = 0;
    for (const TensorUse& output : trace_.outputs(node)) result = std::max(result, output.bytes());
    for (std::uint32_t k = 0; k < unit.reads; ++k) {
      const Read& read = units_.reads[unit.first_read + k];
      const TensorUse& use = trace_.uses[read.use];
      const Value& value = units_.values[read.value];
      OfValue& of = values_[read.value];
      of.read = true;
      if (read.rest || of.all) {
        of.all = true;
        continue;
      }
      Part part = part_of(use, value, index);
      if (need.kind == PartKind::kSelection && use.argument == need.argument) {
        part.key = hash64(std::to_string(index));
        part.bytes = std::min(part.bytes, share * result);
        part.rows = part.rows && use.rank > 1 && same_rows(node, use);
      } else if (share < 1 && hands_on(need, node, use, rows)) {
        part.bytes *= share;
        part.rows = part.rows && rows;
        const std::array<std::uint64_t, 2> both = {part.key, selection};
        part.key = part.key == kWholeKey ? selection : hash64(both.data(), sizeof(both));
      }
      add_part(of, value, part);
    }
  }

  static void add_part(OfValue& of, const Value& value, const Part& part) {
    for (const Part& other : of.parts)
      if (other.key == part.key) return;
    of.parts.push_back(part);
    if (part.bytes >= kNearlyAll * value.bytes || of.parts.size() > kMaxParts) {
      of.all = true;
      of.parts.clear();
    }
  }

  // A view that holds all of it in its order has one key, for any sizes.
  Part part_of(const TensorUse& use, const Value& value, std::uint32_t reader) const {
    Part part;
    part.bytes = use.bytes();
    part.key = part.bytes >= kNearlyAll * value.bytes && is_in_order(use) ? kWholeKey : use.view;
    part.reader = reader;
    double row = 1;
    for (const Extent& extent : trace_.shape(use))
      if (extent.stride > 0 && static_cast<double>(extent.stride) < value.last)
        row *= static_cast<double>(extent.size);
    part.rows = row >= value.last;
    return part;
  }

  bool is_in_order(const TensorUse& use) const {
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    for (const Extent& extent : trace_.shape(use)) {
      if (extent.size == 1) continue;
      if (extent.stride > last) return false;
      last = extent.stride;
    }
    return true;
  }

  bool same_rows(const TraceNode& node, const TensorUse& source) const {
    const std::span<const TensorUse> outputs = trace_.outputs(node);
    return !outputs.empty() && outputs.front().last == source.last;
  }

  // Whether a part of the result needs the same part of this input only.
  bool hands_on(const PartNeed& need, const TraceNode& node, const TensorUse& use,
                bool rows) const {
    const std::span<const TensorUse> outputs = trace_.outputs(node);
    if (outputs.empty()) return false;
    switch (need.kind) {
      case PartKind::kElements:
        return use.elements == outputs.front().elements && use.rank == outputs.front().rank;
      case PartKind::kRows:
      case PartKind::kProduct:
        return rows && use.argument == need.argument && use.dense_rows;
      case PartKind::kSelection:
      case PartKind::kPart:
      case PartKind::kWhole:
        return false;
    }
    return false;
  }

  const ExecutionTrace& trace_;
  const Units& units_;
  const FlowStep& step_;
  std::vector<OfValue> values_;
  std::vector<char> read_gradient_;  // by memory
  bool backward_matters_ = false;    // some unit of the step's backward pass
  bool optimizer_ = false;           // some gradient of the step is read
};

}  // namespace

StepUse find_use(const ExecutionTrace& trace, const Units& units, const FlowStep& step) {
  return StepReads(trace, units, step).find();
}

}  // namespace purlin::profile::flow
