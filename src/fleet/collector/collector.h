// SPDX-License-Identifier: Apache-2.0
// Collector: a node's daemon. Each look reads what captures sealed since the last one and commits
// it as batches to a BatchSpool; a Shipper sends them (docs/design/fleet.md).
//
// One owner; look() is called by one thread, state() is [MT]. A look that fails changed nothing:
// the next one reads the same again. Failure: kIo of the spool; captures that cannot be used are
// counted and left alone.
#pragma once

#include "base/log.h"
#include "base/time.h"
#include "fleet/collector/batch_builder.h"
#include "fleet/collector/batch_spool.h"
#include "fleet/collector/budget_watch.h"
#include "fleet/collector/raw_spool.h"
#include "fleet/collector/spool_finder.h"
#include "fleet/collector/window_taker.h"
#include "profile/format/tail.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace purlin::fleet {

struct CollectorOptions {
  std::string node;
  SpoolFinderOptions spools;
  BudgetWatchOptions budget{};
  // Captures in watched folders whose process has ended are removed when they were read.
  bool remove_read = true;
  // Asks a process to record nothing (fleet/collector/ask_capture.h); tests give another one.
  std::function<Status(const FoundCapture& capture, std::int64_t pid)> stop = nullptr;
  profile::TailLimits tail{.max_rows = 50'000};
  RawSpool* raws = nullptr;        // gets whole captures; outlives the collector
  WindowTaker* windows = nullptr;  // requested windows; outlives the collector
};

struct CollectorState {
  std::uint64_t looks = 0, failed_looks = 0;
  std::uint64_t captures = 0;               // that are followed now
  std::uint64_t unusable = 0, removed = 0;  // captures, since the start
  std::uint64_t rows = 0;                   // of batches, since the start
  double launches_seen = 0, launches_lost = 0, launches_sampled_out = 0, bad_timestamps = 0;
  double capture_overhead_ns = 0, captured_ns = 0;  // of the processes, since the start
  std::uint64_t stopped = 0, stop_failures = 0;
  std::map<std::string, std::uint64_t> refused;  // files of the last look, by cause
  std::int64_t last_look_ns = 0;                 // wall clock
  double cpu_s = 0;
  std::uint64_t rss_bytes = 0;
};

class Collector {
 public:
  Collector(CollectorOptions options, BatchSpool& spool, PlaceLabels& places, Clock& clock,
            Log& log);
  Status look();
  CollectorState state() const;

 private:
  struct Followed {
    FoundCapture capture;
    std::unique_ptr<profile::ProfileTail> tail;
    std::uint64_t seen_bytes = 0;
    bool unusable = false, gone = false, took = false, offered = false;
  };
  void follow(std::vector<FoundCapture> found);
  void read(Followed& followed, std::int64_t now_ns);
  void take(const Followed& followed, const profile::TailPart& part, std::int64_t now_ns);
  Status commit(std::int64_t now_ns);
  ReadMarks marks() const;
  store::SpoolFill spool_fill() const;
  void drop_ended();
  void look_at_windows(std::int64_t now_ns);
  bool has_ended(const Followed& followed, std::int64_t now_ns) const;
  void offer_raw(Followed& followed);
  void shed_raws();
  Status stop(const std::string& key);
  void publish(const Status& status, std::int64_t now_ns);

  const CollectorOptions options_;
  BatchSpool& spool_;
  Clock& clock_;
  Log& log_;
  SpoolFinder finder_;
  BatchBuilder builder_;
  BudgetWatch budget_;
  std::map<std::string, Followed> followed_;
  std::map<std::string, std::uint64_t> raws_shed_;  // bytes by cause that the spool knows
  bool first_look_ = true;
  std::int64_t begin_ns_ = 0;  // of what the builder holds
  double cpu_before_ns_ = 0;
  CollectorState state_;  // of the looking thread
  mutable std::mutex mutex_;
  CollectorState published_;  // under the mutex
};

// CPU time of this process, and the memory that it has now.
double process_cpu_s();
std::uint64_t process_rss_bytes();

}  // namespace purlin::fleet
