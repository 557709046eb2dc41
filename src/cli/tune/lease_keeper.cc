// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/lease_keeper.h"

#include "base/time.h"
#include "cli/frame/interrupt.h"

#include <chrono>

namespace purlin::cli {

LeaseKeeper::LeaseKeeper(fleet::LeaseSource& source, const backlog::Lease& lease, double seconds,
                         Log& log)
    : source_(source),
      id_(lease.ranked.task.id()),
      token_(lease.token),
      seconds_(seconds),
      log_(log),
      start_ns_(system_clock().monotonic_ns()),
      thread_([this] { renew(); }) {}

LeaseKeeper::~LeaseKeeper() {
  join();
  if (const Status status = end(fleet::TaskEnd::kGivenBack, "the worker stopped");
      !status.is_ok() && status.code() != Code::kCancelled)
    log_.warn("{}", status.message());
}

void LeaseKeeper::renew() {
  constexpr auto kLook = std::chrono::milliseconds(100);
  const auto elapsed_s = [](std::int64_t since_ns) {
    return static_cast<double>(system_clock().monotonic_ns() - since_ns) * 1e-9;
  };
  std::int64_t renewed_ns = system_clock().monotonic_ns(), tried_ns = renewed_ns;
  std::unique_lock lock(mutex_);
  while (!joining_) {
    wake_.wait_for(lock, kLook);
    if (joining_) return;
    if (Interrupt::requested()) stop_.store(true);
    if (elapsed_s(tried_ns) < seconds_ / 3) continue;
    tried_ns = system_clock().monotonic_ns();
    const Status status = source_.heartbeat(id_, token_, seconds_);
    if (status.is_ok()) {
      renewed_ns = tried_ns;
    } else if (status.code() == Code::kCancelled || elapsed_s(renewed_ns) > seconds_) {
      log_.warn("{}", status.message());
      lost_.store(true);
      stop_.store(true);
      return;
    }
  }
}

void LeaseKeeper::join() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    joining_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Status LeaseKeeper::end(fleet::TaskEnd how, const std::string& outcome) {
  join();
  if (ended_) return Status::ok();
  ended_ = true;
  const double gpu_s = static_cast<double>(system_clock().monotonic_ns() - start_ns_) * 1e-9;
  return source_.end(id_, token_, how, outcome, gpu_s);
}

}  // namespace purlin::cli
