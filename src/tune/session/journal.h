// SPDX-License-Identifier: Apache-2.0
// Journal: a session's evaluations on disk, one JSON line each, so that a session killed at any
// moment goes on without repeating one. docs/formats/session.md describes the file.
//
// base/json/json_lines.h says what is durable when, and that one process at a time holds a journal.
// Thread-safety: belongs to one thread. Failure: kIo; kUnavailable when another process holds it;
// kCorrupt when it is damaged anywhere but at its end.
#pragma once

#include "base/json/json_lines.h"
#include "base/status.h"
#include "model/evaluation.h"
#include "tune/session/rematch.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::tune {

class Journal {
 public:
  struct Record {
    Evaluation evaluation;
    double elapsed_s = 0;  // wall time of the session so far, over all its runs
  };
  // `header` is written at the start of a new journal and says what the session is.
  static Result<Journal> open(const std::string& path, const Json& header);

  const std::string& path() const { return file_.path(); }
  const std::vector<Record>& records() const { return records_; }
  // The rounds in which leaders were measured again (rematch.h). Each is behind the evaluations of
  // its configs.
  const std::vector<RematchRound>& rematches() const { return rematches_; }
  // Why the session ended when it last did: "budget", "space"; "" while it is under way.
  const std::string& finished() const { return finished_; }
  // The budget it ended under, as Budget::text().
  const std::string& finished_budget() const { return finished_budget_; }

  // Durable once they return ok.
  Status append(const Evaluation& evaluation, double elapsed_s);
  Status finish(std::string_view reason, std::string_view budget);
  // On disk with the next evaluation, or with the end. A round lost until then is measured again.
  void note(const RematchRound& round);
  // Forgets everything and starts again.
  Status restart();

 private:
  Journal(JsonLines file, Json header) : file_(std::move(file)), header_(std::move(header)) {}
  Status take(const Json& line, std::size_t number);
  Status write(Json line);

  JsonLines file_;
  Json header_;
  std::vector<Record> records_;
  std::vector<RematchRound> rematches_;
  std::vector<Json> noted_;  // not on disk yet
  std::string finished_, finished_budget_;
};

}  // namespace purlin::tune
