// SPDX-License-Identifier: Apache-2.0
// Op: lookups of one op on one device, recorded: hits by entry, misses by shape, both in constant
// memory, for the work list.
//
// find() is [MT] and allocates nothing; a hit is wait-free, a miss never waits either (one that
// another thread is in the way of is not recorded). Entries live as long as the op.
#pragma once

#include "cache/hot/op_index.h"
#include "runtime/hit_counters.h"
#include "runtime/session.h"
#include "runtime/top_k.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::runtime {

struct OpOptions {
  cache::CacheKey wanted;  // its bucket is ignored
  std::vector<std::string> dimensions;
  bool allow_transferred = false;  // entries of another model, driver or toolkit
  bool serve_stale = false;        // of another driver or toolkit only
  std::string spec;                // path, for the work list
  cache::BucketRules rules;        // for the work list; empty: not known
};

class Op final : public CacheSession::Member {
 public:
  Op(std::shared_ptr<CacheSession> session, OpOptions options);
  ~Op() override;

  // `extents` in the order of the dimensions. Recorded.
  cache::OpIndex::Hit find(const std::int64_t* extents) noexcept;
  // Records launches that were served from answers the program kept.
  void count(const std::int64_t* extents, std::uint64_t launches) noexcept;
  void prefetch(const std::int64_t* extents) const noexcept { index_.prefetch(extents); }
  // Not recorded; for who counts for itself.
  cache::OpIndex::Hit peek(const std::int64_t* extents) const noexcept;
  // Why a shape has no entry, in a sentence; "" where it has one. Takes the session's lock.
  std::string why_missed(const std::int64_t* extents) const;
  // Takes an entry's record out of service, for all programs: its winner takes `ratio` times as
  // long as another config. Queues it to be tuned again, if there is a spec.
  Status demote(const std::string& record, const std::string& shape, double ratio,
                const std::string& reason) const;
  // A row of the work list for a shape; its counts are the caller's.
  backlog::WorkRow row(const cache::Extents& extents, const cache::IndexedEntry* entry) const;

  const std::vector<std::string>& dimensions() const { return options_.dimensions; }
  std::size_t dimension_count() const noexcept { return index_.dimension_count(); }
  const OpOptions& options() const { return options_; }
  CacheSession& session() const { return *session_; }

  void update(const cache::Layers& layers) override;
  void collect(std::vector<backlog::WorkRow>& rows) override;

 private:
  static constexpr std::size_t kMisses = 256;
  void note_hit(const cache::OpIndex::Hit& hit, const std::int64_t* extents,
                std::uint64_t launches) noexcept;
  [[gnu::cold]] void note_sampled(const cache::OpIndex::Hit& hit, const std::int64_t* extents,
                                  std::uint64_t launches) noexcept;
  void note_miss(const std::int64_t* extents, std::uint64_t launches) noexcept;
  ProblemShape problem_of(const std::int64_t* extents) const;
  void log_choice(const cache::OpIndex::Hit& hit, const std::int64_t* extents) noexcept;

  const std::shared_ptr<CacheSession> session_;
  const OpOptions options_;
  const bool logs_choices_;
  cache::OpIndex index_;
  HitCounters<cache::IndexedEntry> hits_;
  std::mutex miss_mutex_;
  TopK<cache::Extents> misses_{kMisses};
};

inline cache::OpIndex::Hit Op::peek(const std::int64_t* extents) const noexcept {
  const cache::OpIndex::Hit hit = index_.find(extents);
  // What stands nearest differs in the model only where nothing of this model is there.
  if (hit.outcome == cache::Outcome::kTransferred && !options_.allow_transferred &&
      hit.entry->other_model) [[unlikely]]
    return {};
  return hit;
}

inline cache::OpIndex::Hit Op::find(const std::int64_t* extents) noexcept {
  const cache::OpIndex::Hit hit = peek(extents);
  if (hit.entry == nullptr) [[unlikely]]
    note_miss(extents, 1);
  else if (const std::uint64_t weight = sample_weight(); weight > 0) [[unlikely]]
    note_sampled(hit, extents, weight);
  return hit;
}

}  // namespace purlin::runtime
