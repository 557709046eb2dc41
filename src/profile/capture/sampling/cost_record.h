// SPDX-License-Identifier: Apache-2.0
// CostRecord: the overhead of capture in runs of one program. With `--sample auto` it decides
// whether the program's next run is recorded (process_sampler.h; docs/formats/capture-cost.md).
//
// A record is one small file, replaced as a whole. Many processes may write one at the same time,
// on several machines: each writes a separate file and renames it, and the last one remains.
// Nothing is synced: a file that a crash left torn reads as damaged, and counts as absent. Values
// and free functions [MT]; CostKeeper belongs to the session's file lock. No function reads the
// locale, and the only exception is std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace purlin::profile::capture {

struct CostRecord {
  std::string identity;  // process_sampler.h; three lines
  std::uint32_t cupti = 0;
  // Shares of the program's time. Presence: the overhead of CUPTI's presence, with or without
  // recording. Rest: all other overhead. It is proportional to the budget, unless every launch was
  // recorded.
  double budget = 0, presence = 0, rest = 0;
  bool governed = true;
  // Its launches were too many for the budget, so that only its beginning was recorded: of the last
  // process. Copies are not recorded of such a program (ProcessSampler::copies).
  bool ended = false;
  // Windows after that beginning would cost more than half of the budget by being there
  // (cost_model.h); of the last process. They are for programs that ended and are not so.
  bool launch_bound = false;
  std::int64_t runs = 0;  // processes that it comes from
  std::int64_t written_s = 0;

  double cost(double of_budget) const;
};

constexpr std::size_t kMaxCostBytes = 4096;
constexpr int kMaxRunsPerCapture = 64;  // so that no program goes unseen for good

// The least N of one run in N with which the mean over all runs is within the budget, with a margin
// where that is more than one.
int one_in(const CostRecord& record, double budget);

// What is known after one more process. A mean first, then older runs fade by a quarter with each.
CostRecord blend(const CostRecord& known, const CostRecord& own);

std::string to_text(const CostRecord& record);
std::optional<CostRecord> parse_cost_record(std::string_view text);  // nullopt: not one of these

struct CostFile {
  enum class State { kAbsent, kRead, kUnusable };
  State state = State::kAbsent;
  CostRecord record;
  std::string reason;  // of what cannot be used, for a person
};
CostFile read_cost_record(const std::string& path, std::string_view identity);
// "" or why it could not. Makes the folders above.
std::string write_cost_record(const std::string& path, const CostRecord& record);

// Of one process: writes what it has cost so far, each time its age has doubled and at its end.
class CostKeeper {
 public:
  CostKeeper(std::string path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {}
  bool due(std::int64_t age_ns) const { return age_ns >= next_ns_; }
  // "" or why it could not be written.
  std::string keep(CostRecord own, std::int64_t age_ns);

 private:
  const std::string path_, identity_;
  std::int64_t next_ns_ = 2'000'000'000;
  std::optional<CostRecord> before_;  // what others had written
  std::string mine_;
};

}  // namespace purlin::profile::capture
