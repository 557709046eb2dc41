// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include "base/files.h"
#include "cache/store/why_missed.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unistd.h>

namespace purlin::runtime {
namespace {

constexpr std::int64_t kFlushEvery_ns = 60'000'000'000;

// The sessions that are open when the program ends. Never destroyed: threads and other libraries'
// destructors may still be about when the exit handler ran.
struct OpenSessions {
  std::atomic<int> process{0};  // that opened the latest one
  std::mutex mutex;
  std::vector<std::weak_ptr<CacheSession>> sessions;
};
OpenSessions& open_sessions() {
  static auto* const sessions = new OpenSessions;
  return *sessions;
}

void flush_at_exit() {
  OpenSessions& open = open_sessions();
  if (::getpid() != open.process) return;  // a forked child's lock may be a lost thread's
  const std::lock_guard<std::mutex> lock(open.mutex);
  for (const std::weak_ptr<CacheSession>& weak : open.sessions)
    if (const auto session = weak.lock()) static_cast<void>(session->flush());
}

void remember(const std::shared_ptr<CacheSession>& session) {
  static const int registered = std::atexit(flush_at_exit);
  static_cast<void>(registered);
  OpenSessions& open = open_sessions();
  open.process = ::getpid();
  const std::lock_guard<std::mutex> lock(open.mutex);
  std::erase_if(open.sessions,
                [](const std::weak_ptr<CacheSession>& weak) { return weak.expired(); });
  open.sessions.push_back(session);
}

}  // namespace

CacheSession::CacheSession(const std::string& directory, Settings settings)
    // The program may change its own directory; an empty name is the store's to refuse.
    : directory_(directory.empty() ? directory : absolute_path(directory)),
      settings_(std::move(settings)),
      log_(settings_),
      process_(::getpid()),
      flushed_ns_(system_clock().monotonic_ns()) {}

Result<std::shared_ptr<CacheSession>> CacheSession::open(
    const char* directory, const std::optional<std::vector<std::string>>& below) {
  std::shared_ptr<CacheSession> session(
      new CacheSession(directory == nullptr ? cache::Store::default_directory() : directory,
                       Settings::from_environment()));
  if (!session->settings_.problems.empty()) session->log_.warn("{}", session->settings_.problems);
  if (session->settings_.disabled) {
    session->log_.info("PURLIN_DISABLE is set: every lookup is a miss");
    return session;
  }
  PURLIN_ASSIGN(
      cache::Layers layers,
      cache::Layers::open(session->directory_, below.value_or(cache::Layers::default_below())));
  for (const cache::Store& store : layers.stores())
    session->log_.info("cache '{}': {} entries", store.directory(), store.record_set().entries());
  session->layers_.emplace(std::move(layers));
  session->complain_of_unread();
  remember(session);
  return session;
}

CacheSession::~CacheSession() {
  static_cast<void>(flush());
  if (!of_process_.empty() && ::getpid() == process_)
    static_cast<void>(remove_tree(of_process_).is_ok());
}

// Once for each: a file system that is away is away for long.
void CacheSession::complain_of_unread() {
  for (const auto& [directory, reason] : layers_->unread())
    if (unread_.insert(directory).second)
      log_.warn("the cache layer '{}' is skipped: {}", directory, reason);
}

void CacheSession::attach(Member& member) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (layers_) member.update(*layers_);
  members_.push_back(&member);
}

void CacheSession::detach(Member& member) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(members_, &member);
  std::vector<backlog::WorkRow> rows;
  if (layers_ && settings_.record) member.collect(rows);
  for (const backlog::WorkRow& row : rows) pending_.add(row);
}

Status CacheSession::reload() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!layers_) return Status::ok();
  PURLIN_TRY(reload_locked());
  static_cast<void>(flush_locked());
  return Status::ok();
}

Status CacheSession::reload_locked() {
  PURLIN_TRY(layers_->refresh());
  complain_of_unread();
  for (Member* member : members_) member->update(*layers_);
  return Status::ok();
}

Status CacheSession::flush() {
  // A forked child has nothing to write, and the lock may be that of a thread it does not have.
  if (::getpid() != process_) return Status::ok();
  const std::lock_guard<std::mutex> lock(mutex_);
  return flush_locked();
}

void CacheSession::flush_if_due() {
  if (::getpid() != process_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (system_clock().monotonic_ns() - flushed_ns_ > kFlushEvery_ns)
    static_cast<void>(flush_locked());
}

Status CacheSession::flush_locked() {
  if (!layers_ || !settings_.record || ::getpid() != process_) return Status::ok();
  flushed_ns_ = system_clock().monotonic_ns();
  std::vector<backlog::WorkRow> rows;
  for (Member* member : members_) member->collect(rows);
  for (const backlog::WorkRow& row : rows) pending_.add(row);
  if (pending_.rows().empty()) return Status::ok();
  Status status = backlog::WorkList::merge_into(directory_, pending_.rows());
  if (status.is_ok())
    pending_ = backlog::WorkList();
  else if (!std::exchange(complained_, true))
    log_.warn("the work list is kept in memory: {}", status.message());
  return status;
}

Status CacheSession::set_status(const cache::EntryStatus& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!layers_) return error(Code::kUnavailable, "PURLIN_DISABLE is set");
  return layers_->set_status(status);
}

Status CacheSession::put(const cache::Entry& entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!layers_) {
    PURLIN_ASSIGN(cache::Store store, cache::Store::open(directory_));
    return store.put(entry).status();
  }
  Status status = layers_->put(entry).status();
  if (status.code() == Code::kIo && of_process_.empty()) {
    log_.warn("{}; winners are kept for this process alone", status.message());
    PURLIN_ASSIGN(of_process_, make_temporary_directory("purlin-process"));
    PURLIN_ASSIGN(cache::Store store, cache::Store::open(of_process_));
    layers_->put_on_top(std::move(store));
    status = layers_->put(entry).status();
  }
  PURLIN_TRY(std::move(status));
  return reload_locked();
}

std::string CacheSession::why_missed(const cache::CacheKey& wanted, const ProblemShape& problem,
                                     bool wait) {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (wait)
    lock.lock();
  else if (!lock.try_lock())
    return "";
  if (!layers_) return "PURLIN_DISABLE is set";
  return cache::why_missed(layers_->stores(), wanted, problem).text;
}

std::vector<std::string> CacheSession::layers() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> directories;
  if (layers_)
    for (const cache::Store& store : layers_->stores()) directories.push_back(store.directory());
  return directories;
}

const char* CacheSession::keep(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return texts_.insert(text).first->c_str();
}

}  // namespace purlin::runtime
