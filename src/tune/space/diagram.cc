// SPDX-License-Identifier: Apache-2.0
#include "tune/space/diagram.h"

#include <algorithm>
#include <map>

namespace purlin::tune {

std::optional<Diagram> Diagram::make(std::vector<Level> levels) {
  Diagram diagram;
  std::vector<std::uint64_t> below(1, 1);  // by node of the level after: assignments
  for (std::size_t i = levels.size(); i-- > 0;) {
    Level& level = levels[i];
    const bool last = i + 1 == levels.size();
    const std::size_t nodes = level.first.size() - 1;
    level.before.resize(level.value.size());
    std::vector<std::uint64_t> counts(nodes);
    std::uint32_t kept = 0, next = level.first[0];
    for (std::size_t node = 0; node < nodes; ++node) {
      std::uint64_t count = 0;
      const std::uint32_t end = level.first[node + 1];
      level.first[node] = kept;
      for (std::uint32_t edge = next; edge < end; ++edge) {
        const std::uint64_t more = below[last ? 0 : level.child[edge]];
        if (more == 0) continue;
        level.value[kept] = level.value[edge];
        level.child[kept] = level.child[edge];
        level.before[kept++] = count;
        count += more;  // neither is above 2^62
        if (count > std::uint64_t{1} << 62) return std::nullopt;
      }
      next = end;
      counts[node] = count;
    }
    level.first[nodes] = kept;
    level.value.resize(kept);
    level.child.resize(kept);
    level.before.resize(kept);
    below = std::move(counts);
  }
  diagram.levels_ = std::move(levels);
  diagram.size_ = below[0];
  return diagram;
}

// From the last level to the first: runs of rows with the same beginning become a node, and nodes
// with the same edges become one.
Diagram Diagram::of_rows(const std::vector<std::uint16_t>& rows, std::size_t width) {
  using Edges = std::vector<std::pair<std::uint16_t, std::uint32_t>>;
  const std::size_t count = width == 0 ? 0 : rows.size() / width;
  // By row: the length of the beginning that it shares with the row before it.
  std::vector<std::size_t> shared(count, 0);
  for (std::size_t row = 1; row < count; ++row)
    while (shared[row] < width &&
           rows[row * width + shared[row]] == rows[(row - 1) * width + shared[row]])
      ++shared[row];
  std::vector<Level> levels(width);
  std::vector<std::uint32_t> node_of(count, 0);  // by first row of a run: its node one level below
  for (std::size_t i = width; i-- > 0;) {
    Level& level = levels[i];
    level.parameter = i;
    std::map<Edges, std::uint32_t> known;
    std::vector<std::uint32_t> nodes(count, 0);
    for (std::size_t row = 0; row < count;) {
      Edges edges;
      const std::size_t begin = row;
      do {
        edges.emplace_back(rows[row * width + i], node_of[row]);
        for (++row; row < count && shared[row] > i; ++row) continue;
      } while (row < count && shared[row] == i);
      const auto [found, is_new] =
          known.emplace(std::move(edges), static_cast<std::uint32_t>(known.size()));
      nodes[begin] = found->second;
      if (!is_new) continue;
      for (const auto& [value, child] : found->first) {
        level.value.push_back(value);
        level.child.push_back(child);
      }
      level.first.push_back(static_cast<std::uint32_t>(level.value.size()));
    }
    node_of = std::move(nodes);
  }
  return *make(std::move(levels));
}

std::size_t Diagram::edges() const {
  std::size_t count = 0;
  for (const Level& level : levels_) count += level.value.size();
  return count;
}

void Diagram::assignment(std::size_t index, std::span<std::uint16_t> out) const {
  std::uint32_t node = 0;
  for (const Level& level : levels_) {
    const auto begin = level.before.begin() + level.first[node];
    const auto end = level.before.begin() + level.first[node + 1];
    const auto edge =
        static_cast<std::size_t>(std::upper_bound(begin, end, index) - level.before.begin() - 1);
    index -= level.before[edge];
    out[level.parameter] = level.value[edge];
    node = level.child[edge];
  }
}

std::optional<std::uint32_t> Diagram::edge_of(std::size_t i, std::uint32_t node,
                                              std::uint16_t value) const {
  const Level& level = levels_[i];
  const auto begin = level.value.begin() + level.first[node];
  const auto end = level.value.begin() + level.first[node + 1];
  const auto found = std::lower_bound(begin, end, value);
  if (found == end || *found != value) return std::nullopt;
  return static_cast<std::uint32_t>(found - level.value.begin());
}

std::optional<std::size_t> Diagram::find_below(std::size_t i, std::uint32_t node,
                                               std::span<const std::uint16_t> assignment) const {
  std::size_t index = 0;
  for (; i < levels_.size(); ++i) {
    const auto edge = edge_of(i, node, assignment[levels_[i].parameter]);
    if (!edge) return std::nullopt;
    index += levels_[i].before[*edge];
    node = levels_[i].child[*edge];
  }
  return index;
}

std::optional<std::size_t> Diagram::find(std::span<const std::uint16_t> assignment) const {
  return find_below(0, 0, assignment);
}

}  // namespace purlin::tune
