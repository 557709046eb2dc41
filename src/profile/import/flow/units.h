// SPDX-License-Identifier: Apache-2.0
// Units: the ops of an execution trace that do the work, and the values that they read and write.
//
// An op whose results its child ops wrote does nothing itself (aten::linear over aten::addmm); its
// children are units. Any other op is one unit with all that is inside it. A value is what a
// storage holds after one unit wrote to it. An op in place makes a new value of the same memory;
// an op that returns new memory, or an allocation, begins a new one, as addresses come again.
// Plain values; pure functions.
#pragma once

#include "profile/import/flow/trace.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

// Of one allocation, from its beginning to its end.
struct Memory {
  std::uint32_t begin = 0;  // Node; 0: from before the trace.
  bool recorded = false;    // Its beginning was seen.
  bool ended = false;       // The address came again: the program has given it back.
  bool gradient = false;    // Autograd accumulates in it.
  bool host = false;
  double bytes = 0;  // Of all tensors that were seen in it.
};

struct Value {
  std::uint32_t memory = 0;  // index
  std::uint32_t storage = 0;
  std::uint32_t writer = kNoIndex;  // Unit; none: from before the trace, or no value yet.
  std::uint32_t before = kNoIndex;  // The value that was changed in place.
  std::uint32_t output = 0;         // Its number among what the unit wrote.
  double bytes = 0, last = 0;       // Written; size of the last dimension.
  bool unset = false;               // Memory without a value.
  bool whole = false;               // One write made all of it.
  bool changed = false;             // A later unit changed it in place.
};

struct Read {
  std::uint32_t value = 0, use = 0;  // indices
  bool rest = false;                 // of what a partial write leaves, not of an argument
};

struct Unit {
  std::uint32_t node = 0;
  std::uint32_t first_read = 0, reads = 0, first_write = 0, writes = 0;
  bool unknown = false;  // Not PyTorch's own op, or no op: what it does is not known.
  bool host = false;     // It gives a value to the host.
  bool random = false;
  bool differentiated = false;  // It has a node of the backward pass.
  // That node's number, or of a unit of the backward pass its own; 0: none, or not known.
  std::uint32_t backward_node = 0;
  bool accumulates = false;  // Autograd adds a gradient to what was there.
  bool backward = false;     // In the backward pass.
  bool device = false;       // It writes memory of a device.
};

struct Units {
  std::vector<Memory> memories;
  std::vector<Value> values;
  std::vector<Read> reads;
  std::vector<std::uint32_t> writes;  // values
  std::vector<Unit> units;            // by node
  // Device memory was read that no recorded op had written: something else writes, and may read.
  bool hidden = false;

  // Index of the first unit that is this node or a later one.
  std::uint32_t first_from(std::uint32_t node) const;
};

Units find_units(const ExecutionTrace& trace);

}  // namespace purlin::profile::flow
