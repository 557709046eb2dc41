// SPDX-License-Identifier: Apache-2.0
// LibraryProduct: one operation of a vendor's library in a program: its lookups, and a plan for
// each shape with the algorithm that was tuned for it.
//
// Lookups count as any op's do. A missing shape goes to the work list, together with a spec that is
// written next to the cache, so that `purlin tune --backlog` can tune it. Plans follow the entries:
// a reload that brings another makes a new plan at the next launch. Thread-safety: [MT]. Failure: a
// config the library refuses is a miss, reported once in the log.
#pragma once

#include "gpu/library_app_context.h"
#include "runtime/op.h"

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

namespace purlin::runtime {

class LibraryProduct {
 public:
  struct Setup {
    LibraryOperation operation;
    cache::CacheKey device;  // backend, arch, device, driver, policy: what the program states
    bool any_driver = false;
  };
  LibraryProduct(const std::shared_ptr<CacheSession>& session,
                 std::unique_ptr<gpu::LibraryAppContext> app_context, const Setup& setup);

  std::size_t dimensions() const { return op_.dimensions().size(); }
  std::size_t algorithm_bytes() const { return app_context_->algorithm_bytes(); }

  // A refused config, or none: outcome kMiss, and `refused` says why where there was one.
  struct Found {
    cache::Outcome outcome = cache::Outcome::kMiss;
    std::size_t workspace_bytes = 0;
    Status refused;
  };
  // Writes the algorithm to `out`. `descriptors` nullptr: of packed matrices.
  Found algorithm(const std::int64_t* extents, const gpu::LibraryDescriptors* descriptors,
                  void* out);
  // The plan of a shape: tuned, or the library's own choice. nullptr: none was asked for or made.
  enum class Fallback { kNone, kHeuristic, kAlwaysHeuristic };
  Result<std::shared_ptr<gpu::LibraryPlan>> plan(const std::int64_t* extents, Fallback fallback,
                                                 cache::Outcome* outcome);

 private:
  struct Planned {
    const cache::IndexedEntry* entry = nullptr;  // what `tuned` was made from
    std::shared_ptr<gpu::LibraryPlan> tuned, heuristic;
    Status refused, no_heuristic;  // why there is none
  };
  ProblemShape shape_of(const std::int64_t* extents) const;
  cache::Extents key_of(const std::int64_t* extents) const;
  // The tuned plan where there is one already: what a launch goes by from its second time on.
  std::shared_ptr<gpu::LibraryPlan> planned_before(const std::int64_t* extents,
                                                   const cache::IndexedEntry* entry);
  // `entry` nullptr: the tuned plan is not asked for.
  Planned planned(const std::int64_t* extents, const cache::IndexedEntry* entry, bool heuristic);
  void say_refused(const std::int64_t* extents, const Status& why);

  const LibraryOperation operation_;
  const std::unique_ptr<gpu::LibraryAppContext> app_context_;
  const std::shared_ptr<CacheSession> session_;
  Op op_;
  std::shared_mutex mutex_;
  std::map<cache::Extents, Planned> plans_;  // guarded by mutex_
};

}  // namespace purlin::runtime
