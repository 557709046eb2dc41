// SPDX-License-Identifier: Apache-2.0
// BisectSearch: the next commit to try between a good one and a bad one. Some commits cannot be
// built, and some results may be wrong.
//
// Commits are numbers: 0 is the good one, last the bad one, in the order of history. Each result
// narrows the range. For a commit that cannot be tried, the search takes its nearest neighbour. It
// ends in the culprit, or in a range of the culprit and untriable commits before it. A value type;
// no I/O. To resume a search, add the earlier results again.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace purlin::guard {

enum class Probe { kUntried, kGood, kBad, kUntriable };

class BisectSearch {
 public:
  // REQUIRES: commits >= 2.
  explicit BisectSearch(std::size_t commits);

  // The commit to try now; none once the search is done.
  std::optional<std::size_t> next() const;
  // Adds a result. REQUIRES: 0 < commit < last. kGood at or after a known bad commit, or the
  // reverse, is ignored: the first result counts.
  void tell(std::size_t commit, Probe probe);

  std::size_t good() const { return good_; }  // the last known good one
  std::size_t bad() const { return bad_; }    // the first known bad one
  // The slowdown came with one of (good, bad]. The culprit is known if that is one commit.
  bool found() const { return bad_ - good_ == 1; }
  bool done() const { return !next().has_value(); }
  std::size_t untriable() const { return untriable_; }
  // Upper bound of the remaining tries if all commits can be tried.
  int tries_left() const;

 private:
  std::vector<Probe> probes_;
  std::size_t good_, bad_;
  std::size_t untriable_ = 0;
};

}  // namespace purlin::guard
