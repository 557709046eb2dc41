// SPDX-License-Identifier: Apache-2.0
// PairJournal: the pairs of a comparison on disk, so that one that is killed goes on where it was.
// docs/formats/guard-pairs.md describes the file.
//
// The gate's state follows from its pairs in their order, so nothing else is kept. A pair counts
// once its line is on disk. Thread-safety: belongs to one thread. Failure: as
// base/json/json_lines.h; kInvalid when the journal is of another comparison.
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
  // What happened to one item: a pair that counts, or that it was given up.
  struct Event {
    std::size_t item = 0;
    Pair pair;
    bool gave_up = false;
    Verdict verdict = Verdict::kInvalid;
    std::string reason;
  };
  // `identity` says what is compared; written at the start of a new journal, and must equal that of
  // an old one. Items of events count up to `items`.
  static Result<PairJournal> open(const std::string& path, const Json& identity, std::size_t items);

  // Of earlier runs, in their order.
  const std::vector<Event>& events() const { return events_; }
  // All of one pair of launches; durable once it returns ok.
  Status append(const std::vector<Event>& events);

 private:
  explicit PairJournal(JsonLines file) : file_(std::move(file)) {}
  Status take(const Json& line, std::size_t items);

  JsonLines file_;
  std::vector<Event> events_;
};

}  // namespace purlin::guard
