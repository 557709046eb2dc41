// SPDX-License-Identifier: Apache-2.0
// Grouping: rows of any number of files or servers, added up per step and combination of values.
// Both engines use it, so that they give the same answers.
//
// A plain value; one thread.
#pragma once

#include "store/calendar.h"
#include "store/labels.h"
#include "store/sketch_bytes.h"
#include "store/store.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::store {

struct Group {
  std::int64_t begin_ns = 0;
  Fields values;
  double launches = 0, recorded = 0, sum_ns = 0;
  BucketSum sketch;
};

class Grouping {
 public:
  Grouping(std::vector<Dimension> by, Step step);
  const std::vector<Dimension>& by() const { return by_; }
  Step step() const { return step_; }
  // The kinds that `by` needs, each once.
  const std::vector<Kind>& kinds() const { return kinds_; }
  // Days and months do not tell GPUs apart.
  bool needs_unit() const;
  std::size_t number(std::int64_t begin_ns, const Fields& values);
  // The values of `by`, of entries by their kind.
  template <class EntryOf>
  Fields values(EntryOf entry_of) const {
    Fields out;
    for (const Dimension dimension : by_) {
      const Place place = place_of(dimension);
      const Fields& fields = entry_of(place.kind);
      out.push_back(place.field < fields.size() ? fields[place.field] : "");
    }
    return out;
  }
  std::vector<Group>& groups() { return groups_; }
  // By begin and values.
  std::vector<Cell> cells() const;

 private:
  std::vector<Dimension> by_;
  Step step_;
  std::vector<Kind> kinds_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// What top() asks for first: the groups with the greatest sums.
std::vector<std::size_t> heaviest(const std::vector<Group>& groups, std::size_t limit);
// Of groups by kKernel, kRaw, kRole; the chosen have sketches.
TopKernels top_kernels(const std::vector<Group>& groups, const std::vector<std::size_t>& chosen);
inline const std::vector<Dimension>& top_dimensions() {
  static const std::vector<Dimension> by = {Dimension::kKernel, Dimension::kRaw, Dimension::kRole};
  return by;
}

// Coverage added up per step and GPU, or model.
class CoverageTable {
 public:
  explicit CoverageTable(Step step) : step_(step) {}
  // `level`: of the row; fields of platform, unit and cause.
  void add(std::int64_t begin_ns, const Fields& platform, const Fields& unit, const Fields& why,
           const std::array<double, 7>& amounts);
  // By begin, node, GPU, model and cause.
  std::vector<CoverageCell> cells() &&;

 private:
  Step step_;
  std::vector<CoverageCell> cells_;
  std::unordered_map<std::string, std::size_t> places_;
  std::string key_;  // used again
};

}  // namespace purlin::store
