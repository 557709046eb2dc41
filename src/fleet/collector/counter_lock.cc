// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/counter_lock.h"

#include "base/os/process.h"
#include "base/text.h"

namespace purlin::fleet {
namespace {

constexpr double kCommandS = 30;

std::string lock_path(const CounterLockOptions& options) {
  return join_path(options.folder, "gpu-counters.lock");
}
std::string marker_path(const CounterLockOptions& options) {
  return join_path(options.folder, "gpu-counters.paused");
}

// False where the command does not exist: there is no DCGM here.
Result<bool> run_dcgm(const std::vector<std::string>& command) {
  Process::Options options;
  options.argv = command;
  const Result<Captured> done = run_captured(options, kCommandS, 64 << 10);
  if (done.status().code() == Code::kNotFound) return false;
  if (!done.is_ok()) return done.status();
  if (done->exit.ok() && !done->timed_out) return true;
  return error(Code::kFailed, "'{}' ended with {}: {}", join(command, " "), done->exit.text(),
               trim(done->err.empty() ? done->out : done->err));
}

Status resume(const CounterLockOptions& options) {
  PURLIN_TRY(run_dcgm(options.resume).status());
  return remove_file(marker_path(options));
}

}  // namespace

Result<CounterLock> CounterLock::acquire(CounterLockOptions options) {
  PURLIN_TRY(make_directories(options.folder));
  Result<FileLock> lock = FileLock::acquire(lock_path(options), options.wait_s);
  if (lock.status().code() == Code::kUnavailable)
    return error(Code::kUnavailable,
                 "another process uses the hardware counters of this node ('{}')",
                 lock_path(options));
  if (!lock.is_ok()) return lock.status();
  // The marker first: a kill after the pause must leave it.
  PURLIN_TRY(write_atomic(marker_path(options), ""));
  const Result<bool> paused = run_dcgm(options.pause);
  if (!paused.is_ok() || !*paused) PURLIN_TRY(remove_file(marker_path(options)));
  if (!paused.is_ok()) return paused.status();
  return CounterLock(std::move(options), std::move(lock).value());
}

CounterLock::~CounterLock() {
  if (lock_ != nullptr && file_exists(marker_path(options_))) (void)resume(options_);
}

Result<bool> CounterLock::resume_abandoned(const CounterLockOptions& options) {
  if (!file_exists(marker_path(options))) return false;
  const Result<FileLock> lock = FileLock::acquire(lock_path(options), 0);
  if (lock.status().code() == Code::kUnavailable) return false;  // its holder lives
  if (!lock.is_ok()) return lock.status();
  if (!file_exists(marker_path(options))) return false;
  PURLIN_TRY(resume(options));
  return true;
}

}  // namespace purlin::fleet
