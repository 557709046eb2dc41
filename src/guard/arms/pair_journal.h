// SPDX-License-Identifier: Apache-2.0
// PairJournal: the pairs of a comparison on disk. A killed comparison continues from it.
// docs/formats/guard-pairs.md describes the file.
//
// The state of the gate follows from its pairs in their order, so the file holds only pairs. A pair
// counts once its line is on disk. Thread-safety: belongs to one thread. Failure: as
// base/json/json_lines.h; kInvalid for the journal of another comparison.
#pragma once

#include "base/json/json_lines.h"
#include "base/status.h"
#include "guard/gate/gate.h"

#include <cstddef>
#include <string>
#include <vector>

namespace purlin::guard {

class PairJournal {
 public:
  // An event of one item: a pair that counts, or the end of its measurement without one.
  struct Event {
    std::size_t item = 0;
    Pair pair;
    bool gave_up = false;
    Verdict verdict = Verdict::kInvalid;
    std::string reason;
  };
  // `identity` describes the comparison. A new journal starts with it; an old one must have an
  // equal one. Numbers of items are below `items`.
  static Result<PairJournal> open(const std::string& path, const Json& identity, std::size_t items);

  // The events of earlier runs, in their order.
  const std::vector<Event>& events() const { return events_; }
  // Adds the events of one pair of launches; durable once it returns ok.
  Status append(const std::vector<Event>& events);

 private:
  explicit PairJournal(JsonLines file) : file_(std::move(file)) {}
  Status take(const Json& line, std::size_t items);

  JsonLines file_;
  std::vector<Event> events_;
};

}  // namespace purlin::guard
