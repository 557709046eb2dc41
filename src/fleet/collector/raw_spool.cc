// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/raw_spool.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>
#include <set>

namespace purlin::fleet {
namespace {

constexpr std::string_view kFactsSuffix = ".json", kFactsSchema = "purlin.collect-raw/1";
constexpr std::int64_t kRawHourNs = 3'600'000'000'000;
constexpr std::size_t kMaxFactsBytes = 64 << 10, kMaxRuns = 4096;

std::string run_name(const store::BatchRun& run) {
  return run.build + '\n' + run.labels.job + '\n' + run.labels.pod + '\n' + run.command;
}

Json facts_of(const RawCapture& raw, bool arrived) {
  return Json::object({{"schema", kFactsSchema},
                       {"sha256", raw.pointer.sha256},
                       {"bytes", raw.pointer.bytes},
                       {"begin_ns", raw.pointer.begin_ns},
                       {"end_ns", raw.pointer.end_ns},
                       {"kind", raw.pointer.kind},
                       {"build", raw.run.build},
                       {"command", raw.run.command},
                       {"labels", to_json(raw.run.labels)},
                       {"rank", raw.run.rank},
                       {"world", raw.run.world},
                       {"arrived", arrived}});
}

RawCapture capture_of(const Json& json) {
  RawCapture raw;
  raw.pointer.sha256 = json["sha256"].as_string();
  raw.pointer.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, json["bytes"].as_int()));
  raw.pointer.begin_ns = json["begin_ns"].as_int();
  raw.pointer.end_ns = json["end_ns"].as_int();
  raw.pointer.kind = json["kind"].as_string();
  raw.run.build = json["build"].as_string();
  raw.run.command = json["command"].as_string();
  raw.run.labels = labels_from_json(json["labels"]);
  raw.run.rank = static_cast<int>(json["rank"].as_int(-1));
  raw.run.world = static_cast<int>(json["world"].as_int());
  return raw;
}

bool same_raw(const RawCapture& a, const RawCapture& b) {
  return a.pointer.sha256 == b.pointer.sha256;
}

}  // namespace

std::string RawSpool::path(const RawCapture& raw) const {
  return join_path(options_.directory, raw.pointer.sha256);
}

std::string RawSpool::facts_path(const RawCapture& raw) const {
  return path(raw) + std::string(kFactsSuffix);
}

Result<std::unique_ptr<RawSpool>> RawSpool::open(RawSpoolOptions options) {
  std::unique_ptr<RawSpool> spool(new RawSpool(std::move(options)));
  PURLIN_TRY(make_directories_durably(spool->options_.directory));
  PURLIN_TRY(spool->load());
  return spool;
}

// Bytes without facts were never taken, and facts without bytes never sent: both are removed.
Status RawSpool::load() {
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(options_.directory));
  std::set<std::string> wanted;
  for (const std::string& name : names) {
    if (!ends_with(name, kFactsSuffix)) continue;
    const std::string file = join_path(options_.directory, name);
    const Result<std::string> text = read_file(file, kMaxFactsBytes);
    const Result<Json> json = text.is_ok() ? Json::parse(*text) : Result<Json>(text.status());
    const std::string hash = name.substr(0, name.size() - kFactsSuffix.size());
    const bool right = json.is_ok() && (*json)["schema"].as_string() == kFactsSchema &&
                       (*json)["sha256"].as_string() == hash;
    const bool arrived = right && (*json)["arrived"].as_bool();
    if (!right || (!arrived && !file_exists(join_path(options_.directory, hash)))) continue;
    RawCapture raw = capture_of(*json);
    wanted.insert(name);
    if (arrived) {
      arrived_.push_back(std::move(raw));
      continue;
    }
    wanted.insert(hash);
    totals_.waiting_bytes += raw.pointer.bytes;
    waiting_.push_back(std::move(raw));
  }
  for (const std::string& name : names)
    if (wanted.count(name) == 0) PURLIN_TRY(remove_file(join_path(options_.directory, name)));
  std::sort(waiting_.begin(), waiting_.end(), [](const RawCapture& a, const RawCapture& b) {
    return a.pointer.end_ns < b.pointer.end_ns;
  });
  for (const auto& list : {std::vector<RawCapture>(waiting_.begin(), waiting_.end()), arrived_})
    for (const RawCapture& raw : list)
      if (raw.pointer.kind != kWindowKind)
        last_hours_[run_name(raw.run)] = raw.pointer.end_ns / kRawHourNs;
  return Status::ok();
}

bool RawSpool::wants(const store::BatchRun& run, std::uint64_t bytes, std::int64_t end_ns) const {
  const std::lock_guard lock(mutex_);
  const std::int64_t hour = end_ns / kRawHourNs;
  const std::uint64_t taken = hour == hour_ns_ / kRawHourNs ? hour_bytes_ : 0;
  const auto last = last_hours_.find(run_name(run));
  return bytes > 0 && bytes <= options_.max_bytes_of_one &&
         taken + bytes <= options_.bytes_per_hour &&
         (last == last_hours_.end() || last->second != hour);
}

void RawSpool::count_hour(const RawCapture& raw) {
  const std::int64_t hour = raw.pointer.end_ns / kRawHourNs;
  if (hour != hour_ns_ / kRawHourNs) hour_bytes_ = 0;
  hour_ns_ = hour * kRawHourNs;
  hour_bytes_ += raw.pointer.bytes;
  if (last_hours_.size() >= kMaxRuns) last_hours_.clear();
  last_hours_[run_name(raw.run)] = hour;
}

Result<std::string> RawSpool::add(std::string_view bytes, RawCapture raw) {
  std::string hash = sha256_hex(bytes);
  raw.pointer.sha256 = hash;
  raw.pointer.bytes = bytes.size();
  PURLIN_TRY(write_atomic(path(raw), bytes));
  PURLIN_TRY(write_atomic(facts_path(raw), facts_of(raw, false).dump() + "\n"));
  {
    const std::lock_guard lock(mutex_);
    if (raw.pointer.kind != kWindowKind) count_hour(raw);
    const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                   [&](const RawCapture& one) { return same_raw(one, raw); });
    if (waits) return hash;
    totals_.waiting_bytes += bytes.size();
    ++totals_.taken;
    waiting_.push_back(std::move(raw));
  }
  make_room(options_.max_bytes);
  return hash;
}

std::optional<RawCapture> RawSpool::next_to_send() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.front());
}

Result<std::string> RawSpool::read(const RawCapture& raw) const {
  PURLIN_ASSIGN(std::string bytes, read_file(path(raw), std::max(options_.max_bytes_of_one,
                                                                 options_.max_bytes_of_window)));
  if (sha256_hex(bytes) == raw.pointer.sha256) return bytes;
  return error(Code::kCorrupt, "'{}' does not have the hash that is its name", path(raw));
}

// The facts first: bytes without them would be lost, facts of what has arrived are not.
Status RawSpool::sent(const RawCapture& raw) {
  PURLIN_TRY(write_atomic(facts_path(raw), facts_of(raw, true).dump() + "\n"));
  PURLIN_TRY(remove_file(path(raw)));
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const RawCapture& one) { return same_raw(one, raw); });
  if (found != waiting_.end()) {
    totals_.waiting_bytes -= found->pointer.bytes;
    waiting_.erase(found);
  }
  ++totals_.sent;
  arrived_.push_back(raw);
  return Status::ok();
}

// Under the mutex.
void RawSpool::drop_front(const std::string& cause) {
  const RawCapture raw = waiting_.front();
  (void)remove_file(facts_path(raw));
  (void)remove_file(path(raw));
  totals_.waiting_bytes -= raw.pointer.bytes;
  totals_.shed_bytes[cause] += raw.pointer.bytes;
  waiting_.pop_front();
}

void RawSpool::give_up(const RawCapture& raw, const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty() && same_raw(waiting_.front(), raw)) drop_front(cause);
}

void RawSpool::make_room(std::uint64_t most_bytes) {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && totals_.waiting_bytes > most_bytes) drop_front("raw_spool_full");
}

std::vector<RawCapture> RawSpool::pointers() const {
  const std::lock_guard lock(mutex_);
  return arrived_;
}

void RawSpool::forget(const std::vector<RawCapture>& pointers) {
  const std::lock_guard lock(mutex_);
  for (const RawCapture& raw : pointers) {
    (void)remove_file(facts_path(raw));
    arrived_.erase(std::remove_if(arrived_.begin(), arrived_.end(),
                                  [&](const RawCapture& one) { return same_raw(one, raw); }),
                   arrived_.end());
  }
}

RawSpool::Totals RawSpool::totals() const {
  const std::lock_guard lock(mutex_);
  Totals totals = totals_;
  totals.waiting = waiting_.size();
  return totals;
}

}  // namespace purlin::fleet
