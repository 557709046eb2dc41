// SPDX-License-Identifier: Apache-2.0
// Store: the profiles of a fleet. Batches go in; answers are sketches and totals of what matches a
// Filter. Two engines: SQLite files in a folder, and ClickHouse over HTTP.
//
// One Store writes to a target at a time; the lock of a folder enforces it. A Store belongs to one
// thread. reader() gives each other thread its own. What ingest returned is on the disk; the same
// batch twice counts once. Failure: kUnavailable and kTimeout (try again later), kIo, kCorrupt
// (names the damaged file or table; other days stay usable), kInvalid (a wrong target or batch).
#pragma once

#include "base/status.h"
#include "model/profile/sketch.h"
#include "store/batch.h"
#include "store/filter.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

constexpr std::int64_t kHourNs = 3'600'000'000'000;
constexpr std::int64_t kDayNs = 24 * kHourNs;

enum class Ingest {
  kStored,
  kDuplicate,    // it was stored before
  kQuarantined,  // its clock is off by more than StoreOptions::max_skew_ns: kept, not counted
  kTooOld,       // it has rows of hours that are removed: not stored, counted in NodeState
};
struct HashedBatch {
  std::string hash;  // SHA-256 of the encoded bytes, 64 hexadecimal digits
  Batch batch;
};

// A row of an answer: the values of the dimensions that were asked for, in their order.
struct Cell {
  std::int64_t begin_ns = 0;  // of the step; 0 for Step::kAll
  std::vector<std::string> values;
  Sketch duration;      // hours at scale 7, days 6, months 5
  double recorded = 0;  // launches measured; duration.count() has the weights
};

struct KernelTotal {
  std::string kernel, raw_kernel, role;
  double launches = 0, recorded = 0;
  double sum_ns = 0, p50_ns = 0, p95_ns = 0;
  double share = 0;  // of the time of all kernels that match
};
struct TopKernels {
  std::vector<KernelTotal> kernels;        // by sum_ns, largest first
  std::map<std::string, double> roles_ns;  // the time of each role, "" where not known
  double sum_ns = 0, launches = 0;         // of all that match
  std::uint64_t kernels_in_all = 0;
};

struct CoverageCell {
  std::int64_t begin_ns = 0;
  std::string node, gpu, model, why;  // node and gpu are "" in days and months
  double busy_ns = 0, seen_ns = 0;
  double launches_seen = 0, launches_lost = 0, launches_sampled_out = 0;
  double overhead_ns = 0, bad_timestamps = 0;
};

struct NodeState {
  std::string node, boot, tool_version;
  std::int64_t first_begin_ns = 0, last_end_ns = 0;  // of its batches, its clock
  std::int64_t last_received_ns = 0, skew_ns = 0;    // of the last batch
  std::uint64_t first_sequence = 0, last_sequence = 0, batches = 0;
  std::uint64_t missing = 0;  // sequence numbers between first and last without a batch
  std::uint64_t quarantined = 0, too_old = 0;  // batches
  double collector_cpu_ns = 0;                 // of all its batches
  std::uint64_t collector_rss_bytes = 0;       // of the last
  std::vector<BatchShed> shed;
  SpoolFill spool;  // of the last
};

struct RawInfo {
  RawPointer pointer;
  std::string node, build, job;
  std::int64_t keep_until_ns = 0;  // 0: as long as others of its age
  std::string kept_for;            // "hour", "change point"; "" for none
};

struct GuardResult {
  std::string id;  // SHA-256 of the document
  std::int64_t time_ns = 0;
  std::string suite, verdict, build, model;
  std::vector<std::string> kernels;  // by which it is found
  std::string document;              // JSON, docs/formats/guard.md
};

struct StoreFinding {
  std::string where;  // a file or table
  std::string what;
  bool damage = false;  // else a remark
};
struct StoreCheck {
  std::string engine, version;  // "sqlite" "3.40.1", "clickhouse" "18.16.1"
  int schema = 0;
  std::uint64_t bytes = 0, batches = 0, hour_rows = 0, day_rows = 0, month_rows = 0;
  std::int64_t first_hour_ns = 0, last_hour_ns = 0;
  std::vector<StoreFinding> findings;
  bool damaged() const {
    for (const StoreFinding& finding : findings)
      if (finding.damage) return true;
    return false;
  }
};

// Questions. One thread.
class Reader {
 public:
  virtual ~Reader() = default;
  // One cell per step and combination of values. The core of the others.
  virtual Result<std::vector<Cell>> cells(const Filter& filter, const std::vector<Dimension>& by,
                                          Step step = Step::kAll) = 0;
  virtual Result<TopKernels> top(const Filter& filter, std::size_t limit) = 0;
  virtual Result<std::vector<CoverageCell>> coverage(const Filter& filter, Step step) = 0;
  virtual Result<std::vector<NodeState>> nodes() = 0;
  // Sorted, without "".
  virtual Result<std::vector<std::string>> values(Dimension dimension, const Filter& filter) = 0;
  virtual Result<std::vector<RawInfo>> raws(const Filter& filter) = 0;  // newest first
  virtual Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                         std::size_t limit) = 0;  // "" = all
};

class Store : public Reader {
 public:
  // Durable when it returns; one commit for all of them. An answer for each, in order.
  virtual std::vector<Result<Ingest>> ingest_many(const std::vector<HashedBatch>& batches) = 0;
  Result<Ingest> ingest(std::string hash, Batch batch);
  virtual Status put_guard(const GuardResult& result) = 0;
  // Keeps a raw profile until then, also where others of its age go (exemplars).
  virtual Status keep_raw(const std::string& sha256, std::int64_t until_ns,
                          const std::string& why) = 0;
  virtual Status forget_raw(const std::string& sha256) = 0;
  // Days that end by then lose their hours; the day and month rows stay, and stay exact.
  virtual Status expire(std::int64_t before_ns) = 0;
  // Hours to days to months, of days that are over; where nothing changed, it costs little.
  virtual Status compact() = 0;
  virtual Result<StoreCheck> check() = 0;
  // Batches in quarantine count from now on, with all their times moved by the skew.
  virtual Result<std::uint64_t> release(const std::string& node) = 0;
  virtual Result<std::unique_ptr<Reader>> reader() = 0;  // [MT]
};

struct StoreOptions {
  std::int64_t max_skew_ns = 10LL * 60 * 1'000'000'000;
  // ClickHouse: a cluster's name, "" for one server.
  std::string cluster;
  std::string user, password;
};

// A folder's path, or http://[USER@]HOST:PORT/DATABASE (also clickhouse://, https://). kNotFound
// where nothing is there yet: init_store. kUnavailable where another process writes to it.
Result<std::unique_ptr<Store>> open_store(const std::string& target,
                                          const StoreOptions& options = {});
// To read only, next to a writer.
Result<std::unique_ptr<Reader>> open_reader(const std::string& target,
                                            const StoreOptions& options = {});
// Makes it; what is there already stays.
Status init_store(const std::string& target, const StoreOptions& options = {});
// Reads all of it, also next to a writer.
Result<StoreCheck> check_store(const std::string& target, const StoreOptions& options = {});
// To this version's schema; returns what was done, one line each.
Result<std::vector<std::string>> migrate_store(const std::string& target,
                                               const StoreOptions& options = {});

}  // namespace purlin::store
