// SPDX-License-Identifier: Apache-2.0
// BisectSearch: which commit to try next, between one that is good and one that is bad, when some
// cannot be built and a judgement can be a matter of doubt.
//
// Commits are numbers: 0 is the good one, last the bad one, in the order of history. What is told
// narrows the range; a commit that cannot be tried is passed over for its nearest neighbour, so
// that the search ends in the culprit or, where only untriable commits stand before it, in a range
// that holds it. A value type; no I/O; a search is resumed by telling it again what was found.
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
  // REQUIRES: 0 < commit < last. kGood at or after a known bad commit, or the reverse, is ignored:
  // the search trusts what it was told first.
  void tell(std::size_t commit, Probe probe);

  std::size_t good() const { return good_; }  // the last known good one
  std::size_t bad() const { return bad_; }    // the first known bad one
  // The slowdown came with one of (good, bad]; the culprit is known when that is one commit.
  bool found() const { return bad_ - good_ == 1; }
  bool done() const { return !next().has_value(); }
  std::size_t untriable() const { return untriable_; }
  // Upper bound of the tries still needed if all commits can be tried.
  int tries_left() const;

 private:
  std::vector<Probe> probes_;
  std::size_t good_, bad_;
  std::size_t untriable_ = 0;
};

}  // namespace purlin::guard
