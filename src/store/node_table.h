// SPDX-License-Identifier: Apache-2.0
// NodeTable: what days know of a node, put together. A plain value; one thread.
#pragma once

#include "store/store.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purlin::store {

class NodeTable {
 public:
  void add(const NodeState& state);
  // By node and boot, with the sequence numbers that are missing.
  std::vector<NodeState> nodes() const;

 private:
  std::map<std::pair<std::string, std::string>, NodeState> nodes_;
};

}  // namespace purlin::store
