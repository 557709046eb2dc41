// SPDX-License-Identifier: Apache-2.0
// CacheSession: an open config cache inside a program, shared by the handles that use it.
//
// It owns the layers: the program's own layer if no other can be written, the user's layer, and
// those of PURLIN_CACHE_LAYERS. It brings its members up to date when the cache is reloaded. It
// also gathers their observations into the work list (backlog/work_list.h): when a handle is
// closed, on reload, at exit, and now and then from slow paths. A forked process writes nothing of
// its parent's. Thread-safety: [MT]. Failure: a work list that cannot be written is reported once
// in the log.
#pragma once

#include "backlog/work_list.h"
#include "base/time.h"
#include "cache/layers/layers.h"
#include "runtime/settings.h"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace purlin::runtime {

class CacheSession : public std::enable_shared_from_this<CacheSession> {
 public:
  // What lives off the cache; called with the session's lock held.
  class Member {
   public:
    virtual ~Member() = default;
    virtual void update(const cache::Layers& layers) = 0;
    // What was seen since the last time.
    virtual void collect(std::vector<backlog::WorkRow>& rows) = 0;
  };

  // nullptr: the default directory, and the layers of PURLIN_CACHE_LAYERS.
  static Result<std::shared_ptr<CacheSession>> open(
      const char* directory, const std::optional<std::vector<std::string>>& below = std::nullopt);
  ~CacheSession();

  const std::string& directory() const { return directory_; }
  const Settings& settings() const { return settings_; }
  RuntimeLog& log() { return log_; }

  // Members attach once they are complete and detach before they go.
  void attach(Member& member);
  void detach(Member& member);
  Status reload();
  Status flush();
  // flush(), unless that was a short while ago; never fails.
  void flush_if_due();

  Status set_status(const cache::EntryStatus& status);
  // Into the first layer that can be written; where none can, the entry lives in this process.
  Status put(const cache::Entry& entry);
  // Why a lookup has no entry (cache/store/why_missed.h). "" where another thread is in the way and
  // `wait` is false.
  std::string why_missed(const cache::CacheKey& wanted, const ProblemShape& problem, bool wait);
  // Directories of the layers that are read, the uppermost first.
  std::vector<std::string> layers();
  // A copy of the text that lives as long as the session.
  const char* keep(const std::string& text);

 private:
  CacheSession(const std::string& directory, Settings settings);
  Status flush_locked();
  Status reload_locked();
  void complain_of_unread();

  const std::string directory_;
  const Settings settings_;
  RuntimeLog log_;
  const int process_;
  std::mutex mutex_;
  std::optional<cache::Layers> layers_;  // nullopt: disabled
  std::string of_process_;  // directory of the process's own layer, used if no other can be
                            // written; "" = none
  std::vector<Member*> members_;
  backlog::WorkList pending_;  // collected and not yet written
  std::int64_t flushed_ns_ = 0;
  bool complained_ = false;
  std::set<std::string> unread_;  // layers complained of
  std::set<std::string> texts_;   // handed out; a set never moves them
};

}  // namespace purlin::runtime
