// SPDX-License-Identifier: Apache-2.0
// StorageValues: the value that each storage of an execution trace holds, while a walk passes the
// nodes in their order. It adds memories, values, reads and writes to the Units of that walk. The
// trace and the units must outlive it. Not thread-safe; it cannot fail.
#pragma once

#include "profile/import/flow/trace.h"
#include "profile/import/flow/units.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

class StorageValues {
 public:
  StorageValues(const ExecutionTrace& trace, Units& out);

  // Each takes a tensor of a known storage (TensorUse::storage is not 0). A reference is good until
  // the next call.
  Value& current(const TensorUse& use);  // memory from before the trace, where none was seen
  // An allocation by a node: what the storage held before is given back.
  void begin_memory(const TensorUse& use, std::uint32_t node);
  // `rest`: of what a partial write leaves, not of an argument.
  void read(const TensorUse& use, bool rest = false);
  // By a unit; the new value is its next output.
  void write(const TensorUse& use, std::uint32_t unit);
  // Whether a write there leaves nothing of the value before.
  bool covers(const TensorUse& use);
  bool was_written(const TensorUse& use, std::uint32_t unit) const;

 private:
  const ExecutionTrace& trace_;
  Units& out_;
  std::vector<std::uint32_t> value_of_;  // by storage; kNoIndex: not seen so far
  std::vector<double> bytes_;            // by storage: of all tensors seen there
};

}  // namespace purlin::profile::flow
