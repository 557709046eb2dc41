// SPDX-License-Identifier: Apache-2.0
// Leases: the shared tasks of a fleet, and which tuning worker holds which. Many workers drain one
// list, and no task is held twice.
//
// An SQLite file; each change is one `BEGIN IMMEDIATE` transaction, durable when it returns. A
// lease has an end and a fencing token, which counts up with each lease. A worker that was away too
// long is refused when its task has gone to another: its result does not count. Safe between
// processes, one thread per object. Failure: kIo; kCancelled where a lease is lost; kCorrupt for a
// damaged or newer file.
#pragma once

#include "backlog/order.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::backlog {

struct Lease {
  RankedTask ranked;
  std::int64_t token = 0;     // fencing
  std::int64_t until_ns = 0;  // since 1970
  int attempt = 1;
};

enum class TaskState { kOpen, kLeased, kDone, kFailed };
std::string_view to_text(TaskState state);  // "open", "leased", "done", "failed"

struct SharedTask {
  RankedTask ranked;
  TaskState state = TaskState::kOpen;
  bool stale = false;  // its winner was measured with another driver or toolkit: comes first
  std::string worker, outcome;  // of the latest lease; what came of it
  std::int64_t until_ns = 0;
  int attempts = 0;
};

class Leases {
 public:
  static constexpr int kMaxAttempts = 3;  // then the task has failed, until it is put again

  // Makes the file where it is not there.
  static Result<Leases> open(const std::string& path);
  Leases(Leases&&) noexcept;
  Leases& operator=(Leases&&) noexcept;
  ~Leases();

  // Adds tasks, or brings their facts up to date. A task that is done stays done while its id,
  // which has driver and toolkit in it, is the same. One that failed is open again if its finding
  // is newer.
  struct Put {
    RankedTask ranked;
    bool stale = false;
  };
  Status put(const std::vector<Put>& tasks, std::int64_t now_ns);

  // The first free task for one of these models of device ("" or empty: any); nullopt: none is
  // free. A lease that has ended is free.
  Result<std::optional<Lease>> take(const std::string& worker,
                                    const std::vector<std::string>& devices,
                                    std::int64_t duration_ns, std::int64_t now_ns);
  // The lease lasts so long from now; returns its end.
  Result<std::int64_t> heartbeat(const std::string& id, std::int64_t token,
                                 std::int64_t duration_ns, std::int64_t now_ns);
  // The result counts. `gpu_s`: GPU time that the tuning took.
  Status finish(const std::string& id, std::int64_t token, const std::string& outcome, double gpu_s,
                std::int64_t now_ns);
  // The task is open again at once (`failed` false: the device was needed), or counts a failure.
  Status give_back(const std::string& id, std::int64_t token, const std::string& why, bool failed,
                   double gpu_s, std::int64_t now_ns);

  Result<std::vector<SharedTask>> list(std::int64_t now_ns);
  // GPU seconds of tuning on the UTC day of that time.
  Result<double> spent_gpu_s(std::int64_t now_ns);
  Result<double> spent_gpu_s_in_all();

 private:
  class Impl;
  explicit Leases(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace purlin::backlog
