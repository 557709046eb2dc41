// SPDX-License-Identifier: Apache-2.0
// Diagram: the valid assignments of some parameters as a decision diagram with counts.
//
// Each level binds one parameter. A node has an edge for each value that leads to a valid
// assignment. Nodes from which the same continuations are valid are (mostly) one node, so 10^12
// assignments may take a few thousand edges. The index of an assignment is its place when the edges
// are followed in order. It is the sum, over the edges of its path, of the assignments under the
// edges before them.
// Thread-safety: immutable once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace purlin::tune {

class Diagram {
 public:
  // 14 bytes for each edge. Nodes are numbered per level; the root is node 0 of level 0, and the
  // edges of the last level lead nowhere.
  struct Level {
    std::size_t parameter = 0;            // Index in the space.
    std::vector<std::uint32_t> first{0};  // By node: its first edge; and the end of the last.
    std::vector<std::uint16_t> value;     // By edge, ascending within a node.
    std::vector<std::uint32_t> child;     // By edge: node of the next level.
    std::vector<std::uint64_t> before;    // By edge: assignments of the node's edges before it.
  };

  // Levels with everything but `before`; edges that lead to nothing valid may be there.
  // nullopt: more than 2^62 assignments.
  static std::optional<Diagram> make(std::vector<Level> levels);
  // Of rows of values, sorted and different, by the parameters 0 … width-1 in this order.
  static Diagram of_rows(const std::vector<std::uint16_t>& rows, std::size_t width);

  std::size_t size() const { return size_; }
  std::size_t edges() const;
  const std::vector<Level>& levels() const { return levels_; }

  // Both take assignments of the whole space and look at their own parameters only.
  void assignment(std::size_t index, std::span<std::uint16_t> out) const;
  std::optional<std::size_t> find(std::span<const std::uint16_t> assignment) const;

  // Calls visit(parameter, value, index) for every assignment that differs in one value from
  // `assignment`, which is this diagram's; by level, values ascending.
  template <class Visit>
  void visit_neighbours(std::span<const std::uint16_t> assignment, const Visit& visit) const;

 private:
  std::optional<std::uint32_t> edge_of(std::size_t level, std::uint32_t node,
                                       std::uint16_t value) const;
  // The index, relative to the node, of what the levels from here on bind.
  std::optional<std::size_t> find_below(std::size_t level, std::uint32_t node,
                                        std::span<const std::uint16_t> assignment) const;

  std::vector<Level> levels_;
  std::size_t size_ = 0;
};

template <class Visit>
void Diagram::visit_neighbours(std::span<const std::uint16_t> assignment,
                               const Visit& visit) const {
  std::uint32_t node = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    const std::uint16_t own = assignment[level.parameter];
    std::uint32_t own_edge = 0;
    for (std::uint32_t edge = level.first[node]; edge < level.first[node + 1]; ++edge) {
      if (level.value[edge] == own) {
        own_edge = edge;
        continue;
      }
      const auto below = find_below(i + 1, level.child[edge], assignment);
      if (below) visit(level.parameter, level.value[edge], start + level.before[edge] + *below);
    }
    start += level.before[own_edge];
    node = level.child[own_edge];
  }
}

}  // namespace purlin::tune
