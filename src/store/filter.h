// SPDX-License-Identifier: Apache-2.0
// Filter: which launches a question to the store is about. Dimension: what they are told apart by.
// Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

enum class Dimension {
  kKernel,  // readable name
  kRaw,     // the name as recorded
  kRole,
  kOp,
  kShape,
  kDtype,
  kModel,  // of the GPU
  kMig,
  kDriver,
  kRuntime,
  kBuild,
  kJob,   // "slurm 4711.0", "pod team/trainer-0"
  kNode,  // kNode and kGpu: hours only, days and months are over all nodes
  kGpu,   // its UUID
};
constexpr int kDimensions = 14;
std::string_view name_of(Dimension dimension);  // "kernel", "model"
std::optional<Dimension> dimension_of(std::string_view name);

struct Filter {
  // [begin_ns, end_ns): hours that begin in it. Both are multiples of an hour, else the hour of
  // begin_ns counts whole. 0: no limit.
  std::int64_t begin_ns = 0, end_ns = 0;
  // nullopt: any value. "" matches what is not known.
  std::array<std::optional<std::string>, kDimensions> equals;

  std::optional<std::string>& operator[](Dimension dimension) {
    return equals[static_cast<std::size_t>(dimension)];
  }
  const std::optional<std::string>& operator[](Dimension dimension) const {
    return equals[static_cast<std::size_t>(dimension)];
  }
  // Whether it asks for a node or a GPU: answered from hours only.
  bool per_gpu() const { return (*this)[Dimension::kNode] || (*this)[Dimension::kGpu]; }
};

enum class Step { kAll, kHour, kDay, kMonth };  // kAll: one point

}  // namespace purlin::store
