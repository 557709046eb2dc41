// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/storage_values.h"

#include <algorithm>

namespace purlin::profile::flow {

StorageValues::StorageValues(const ExecutionTrace& trace, Units& out)
    : trace_(trace), out_(out), value_of_(trace.storages, kNoIndex), bytes_(trace.storages, 0) {
  for (const TensorUse& use : trace.uses)
    bytes_[use.storage] = std::max(bytes_[use.storage], use.offset * use.item_bytes + use.bytes());
}

Value& StorageValues::current(const TensorUse& use) {
  std::uint32_t& at = value_of_[use.storage];
  if (at == kNoIndex) {
    at = static_cast<std::uint32_t>(out_.values.size());
    Value value;
    value.memory = static_cast<std::uint32_t>(out_.memories.size());
    value.storage = use.storage;
    out_.memories.push_back({0, false, false, false, use.host, bytes_[use.storage]});
    out_.values.push_back(value);
  }
  return out_.values[at];
}

void StorageValues::begin_memory(const TensorUse& use, std::uint32_t node) {
  std::uint32_t& at = value_of_[use.storage];
  if (at != kNoIndex) out_.memories[out_.values[at].memory].ended = true;
  at = static_cast<std::uint32_t>(out_.values.size());
  Value value;
  value.memory = static_cast<std::uint32_t>(out_.memories.size());
  value.storage = use.storage;
  value.unset = true;
  out_.memories.push_back(
      {node, true, false, false, use.host, use.offset * use.item_bytes + use.bytes()});
  out_.values.push_back(value);
}

void StorageValues::read(const TensorUse& use, bool rest) {
  const Value& value = current(use);
  if (value.unset && rest) return;
  if (value.unset && !use.host) out_.hidden = true;
  out_.reads.push_back(
      {value_of_[use.storage], static_cast<std::uint32_t>(&use - trace_.uses.data()), rest});
}

void StorageValues::write(const TensorUse& use, std::uint32_t unit) {
  Value value = current(use);
  const std::uint32_t before = value_of_[use.storage];
  value.whole = covers(use);
  value.bytes = value.whole ? use.bytes() : std::max(use.bytes(), value.bytes);
  value.before = kNoIndex;
  if (!value.unset) {
    value.before = before;
    out_.values[before].changed = true;
  }
  value.last = use.last;
  value.unset = value.changed = false;
  value.writer = unit;
  value.output = static_cast<std::uint32_t>(out_.writes.size()) - out_.units[unit].first_write;
  out_.units[unit].device = out_.units[unit].device || !use.host;
  value_of_[use.storage] = static_cast<std::uint32_t>(out_.values.size());
  out_.writes.push_back(value_of_[use.storage]);
  out_.values.push_back(value);
}

bool StorageValues::covers(const TensorUse& use) {
  return use.bytes() >= out_.memories[current(use).memory].bytes;
}

bool StorageValues::was_written(const TensorUse& use, std::uint32_t unit) const {
  const std::uint32_t at = value_of_[use.storage];
  return at != kNoIndex && out_.values[at].writer == unit;
}

}  // namespace purlin::profile::flow
