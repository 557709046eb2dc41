// SPDX-License-Identifier: Apache-2.0
// NodeReader: the nodes of an execution trace, one JSON text after the other. It gives each
// storage, name and schema a number, and puts nodes in the order of their ids, which is that of
// their starts. Foreign input: counts, text lengths and depths are bounded. Not thread-safe.
// Errors: kInvalid for more nodes or tensors than the bounds, kCorrupt for what is no node.
#pragma once

#include "base/json/json_view.h"
#include "base/status.h"
#include "profile/import/flow/trace.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::flow {

inline constexpr std::size_t kMaxNodeBytes = std::size_t{32} << 20;  // JSON of one node
inline constexpr int kMaxDepth = 32;                                 // of its arrays

class NodeReader {
 public:
  Status add(std::string_view json);
  ExecutionTrace finish();  // the last call

 private:
  // J: JsonView, or Json for texts that JsonScan does not take.
  template <class J>
  Status node(const J& json);
  template <class J>
  void arguments(const J& side, TraceNode* node);
  template <class J>
  void literal(const J& value, std::size_t place, TraceNode& node);
  template <class J>
  void tensors(const J& value, const J& shape, const J& stride, std::string_view type,
               std::size_t place, int depth);
  template <class J>
  void tensor(const std::vector<J>& parts, const J& shape, const J& stride, std::string_view type,
              std::size_t place);
  std::uint32_t name_of(std::string_view text);
  std::uint32_t schema_of(std::string_view text);

  ExecutionTrace trace_;
  JsonScan scan_;
  std::vector<std::uint64_t> parents_;  // ids, in the order of nodes
  std::unordered_map<std::string, std::uint32_t> names_, schemas_;
  std::unordered_map<std::int64_t, std::uint32_t> storages_;
  std::string literals_, layout_;
};

}  // namespace purlin::profile::flow
