// SPDX-License-Identifier: Apache-2.0
#include "runtime/op.h"

#include "backlog/file.h"
#include "base/time.h"
#include "cache/store/cache_record.h"

#include <algorithm>

namespace purlin::runtime {

using cache::Extents;
using cache::IndexedEntry;
using cache::OpIndex;

Op::Op(std::shared_ptr<CacheSession> session, OpOptions options)
    : session_(std::move(session)),
      options_(std::move(options)),
      logs_choices_(session_->log().enabled(Level::kInfo)),
      index_(options_.wanted, options_.dimensions,
             options_.allow_transferred || options_.serve_stale) {
  session_->attach(*this);
}

Op::~Op() { session_->detach(*this); }

void Op::note_sampled(const OpIndex::Hit& hit, const std::int64_t* extents,
                      std::uint64_t launches) noexcept {
  index_.learn(extents, hit);
  if (logs_choices_)
    note_hit(hit, extents, launches);  // now: what is logged is this shape
  else
    hits_.note_soon(hit.entry, launches);
}

void Op::note_hit(const OpIndex::Hit& hit, const std::int64_t* extents,
                  std::uint64_t launches) noexcept {
  if (hits_.note(hit.entry, launches)) log_choice(hit, extents);
}

void Op::count(const std::int64_t* extents, std::uint64_t launches) noexcept {
  const OpIndex::Hit hit = peek(extents);
  if (hit.entry == nullptr)
    note_miss(extents, launches);
  else
    note_hit(hit, extents, launches);
}

void Op::note_miss(const std::int64_t* extents, std::uint64_t launches) noexcept {
  const std::unique_lock<std::mutex> lock(miss_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Extents key{};
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < options_.dimensions.size(); ++i) {
    key[i] = extents[i];
    hash = (hash ^ static_cast<std::uint64_t>(extents[i])) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  const std::size_t before = misses_.counters().size();
  misses_.add(key, hash, launches);
  if (misses_.counters().size() != before) log_choice({}, extents);
}

void Op::log_choice(const OpIndex::Hit& hit, const std::int64_t* extents) noexcept {
  if (!logs_choices_) return;
  RuntimeLog& log = session_->log();
  Extents shape{};
  std::copy_n(extents, options_.dimensions.size(), shape.begin());
  const std::string where = fmt::format("{} {}", options_.wanted.kernel, row(shape, nullptr).shape);
  if (hit.entry == nullptr)
    log.info("{}: miss: {}", where,
             session_->why_missed(options_.wanted, problem_of(extents), /*wait=*/false));
  else
    log.info("{}: {}, entry {}{}: {}", where, cache::outcome_name(hit.outcome), hit.entry->id,
             hit.entry->layer == 0 ? "" : fmt::format(" of '{}'", hit.entry->directory),
             hit.entry->options);
}

ProblemShape Op::problem_of(const std::int64_t* extents) const {
  ProblemShape problem;
  for (std::size_t i = 0; i < options_.dimensions.size(); ++i)
    problem.set(options_.dimensions[i], extents[i]);
  return problem;
}

std::string Op::why_missed(const std::int64_t* extents) const {
  if (peek(extents).entry != nullptr) return "";
  return session_->why_missed(options_.wanted, problem_of(extents), /*wait=*/true);
}

Status Op::demote(const std::string& record, const std::string& shape, double ratio,
                  const std::string& reason) const {
  PURLIN_TRY(session_->set_status(cache::new_status(record, cache::EntryState::kDemoted, reason)));
  if (options_.spec.empty()) return Status::ok();
  backlog::Task task;
  task.key.kind = "retune";
  task.key.kernel = options_.wanted.kernel;
  task.key.shape = shape;
  task.key.device = options_.wanted.device;
  task.key.toolkit = options_.wanted.toolkit;
  task.key.driver = options_.wanted.driver;
  task.spec = options_.spec;
  task.reason = reason;
  task.ratio = ratio;
  task.queued_at = format_rfc3339(system_clock().wall_ns());
  return backlog::queue(session_->directory(), {task});
}

backlog::WorkRow Op::row(const Extents& extents, const IndexedEntry* entry) const {
  backlog::WorkRow row;
  row.key = options_.wanted;
  const ProblemShape problem = problem_of(extents.data());
  row.shape = problem.text();
  row.key.bucket = row.shape;
  if (entry != nullptr) {
    row.entry = entry->id;
    row.key.bucket.clear();
    for (std::size_t i = 0; i < options_.dimensions.size(); ++i)
      row.key.bucket +=
          fmt::format("{}{}={}", i == 0 ? "" : ",", options_.dimensions[i], entry->bucket[i]);
  } else if (!options_.rules.empty()) {
    row.key.bucket = cache::bucket_of(options_.rules, problem).value_or(row.shape);
  }
  row.spec = options_.spec;
  row.last_seen = format_rfc3339(system_clock().wall_ns());
  return row;
}

void Op::update(const cache::Layers& layers) { index_.update(layers.stores()); }

void Op::collect(std::vector<backlog::WorkRow>& rows) {
  hits_.take([&](const IndexedEntry& entry, std::uint64_t count) {
    backlog::WorkRow row = this->row(entry.measured, &entry);
    (entry.match == cache::Match::kSame ? row.hits : row.stale) = count;
    rows.push_back(std::move(row));
  });
  const std::lock_guard<std::mutex> lock(miss_mutex_);
  for (const auto& counter : misses_.counters()) {
    backlog::WorkRow row = this->row(counter.key, nullptr);
    row.misses = counter.count - counter.error;
    row.error = counter.error;
    rows.push_back(std::move(row));
  }
  misses_.clear();
}

}  // namespace purlin::runtime
