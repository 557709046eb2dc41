// SPDX-License-Identifier: Apache-2.0
// ExecutionTrace: what PyTorch's ExecutionTraceObserver wrote, as nodes in the order of their
// start. Of a tensor it keeps what tells reads and writes: its storage, where in it, and how it
// lies there. A storage is an address: a later tensor may have the same one.
//
// Plain values without I/O; not thread-safe. trace_reader.h fills them.
#pragma once

#include "profile/import/flow/schema.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace purlin::profile::flow {

inline constexpr std::uint32_t kNoIndex = 0xFFFFFFFFu;

struct Extent {  // of one dimension
  std::int64_t size = 0, stride = 0;
};

struct TensorUse {
  std::uint32_t storage = 0;  // 0: the tensor has none
  std::uint32_t first_extent = 0;
  std::uint16_t argument = 0;  // its place in the op's arguments
  std::uint8_t rank = 0;
  bool host = false;
  double offset = 0;        // in elements
  double elements = 0;      // distinct: without the dimensions of an expansion
  double item_bytes = 0;    // of an element
  double last = 0;          // size of the last dimension; 1 for a scalar
  std::uint64_t view = 0;   // hash of type, sizes, strides and offset
  bool dense_rows = false;  // the last dimension has stride 1

  double bytes() const { return elements * item_bytes; }
};

struct TraceNode {
  std::uint64_t id = 0;
  std::uint64_t literals = 0;          // hash of the arguments that are no tensors
  std::uint32_t parent = 0;            // index; its own where it has none
  std::uint32_t name = 0, schema = 0;  // indices
  std::uint32_t first_use = 0;         // inputs, then outputs
  std::uint32_t inputs = 0, outputs = 0;
  std::uint32_t thread = 0;
  std::uint32_t forward_thread = 0;  // of a node of the backward pass
  std::int64_t sequence = -1;        // of autograd: one number for an op and its backward node
  std::uint8_t scope = 0;
  bool kernel = false;    // a launch of a compiled kernel, such as Triton's
  bool dropout = false;   // an argument `dropout_p` is not 0
  bool training = false;  // an argument `training` is true

  bool is_op() const { return schema != 0; }
};

// RecordScope's number of a node of the backward pass.
inline constexpr std::uint8_t kBackwardScope = 1;
// Nodes in one another, far beyond what PyTorch has. Deeper ones are children of the deepest.
inline constexpr std::uint8_t kMaxNesting = 64;

struct ExecutionTrace {
  std::vector<TraceNode> nodes;  // by id; a parent before its children
  std::vector<TensorUse> uses;
  std::vector<Extent> extents;
  std::vector<std::string> names = {""};
  std::vector<OpSchema> schemas = {{}};  // [0]: of a node without one
  std::uint32_t storages = 1;            // number of them, with 0

  const std::string& name(const TraceNode& node) const { return names[node.name]; }
  std::span<const TensorUse> inputs(const TraceNode& node) const {
    return {uses.data() + node.first_use, node.inputs};
  }
  std::span<const TensorUse> outputs(const TraceNode& node) const {
    return {uses.data() + node.first_use + node.inputs, node.outputs};
  }
  std::span<const Extent> shape(const TensorUse& use) const {
    return {extents.data() + use.first_extent, use.rank};
  }
};

}  // namespace purlin::profile::flow
