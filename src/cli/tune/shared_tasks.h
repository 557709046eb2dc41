// SPDX-License-Identifier: Apache-2.0
// SharedTasks: the tasks of a shared backlog that this machine can tune, one lease at a time
// (`purlin tune --from-backlog`).
//
// A task names a kernel of production; the spec is found among this machine's specs. One without a
// spec here is ended as failed, with the reason. One thread. Failure: that of the source.
#pragma once

#include "backlog/task.h"
#include "base/json/json.h"
#include "cache/store/store.h"
#include "cli/frame/flags.h"
#include "cli/tune/lease_keeper.h"
#include "fleet/backlog/lease_source.h"
#include "model/device/device.h"
#include "model/spec/spec.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cli {

struct SharedTasksFlags {
  int tasks = 0;  // 0: not wanted
  std::string server, lease = "120s";
  std::vector<std::string> specs;

  void declare(Flags& flags);
  // `others`: options were given that name what to tune, or where.
  Status check(bool others) const;
};

class SharedTasks {
 public:
  static Result<SharedTasks> open(const SharedTasksFlags& flags, const std::string& cache_directory,
                                  const DeviceInfo& device, Log& log);

  struct Held {
    backlog::Task task;               // with its spec, and the shape in the spec's order
    std::string id, cache_directory;  // of the task in the backlog
    std::unique_ptr<LeaseKeeper> keeper;
    // Ends the lease by what came of the session; `document` null: an entry was there already.
    Status end(const Status& status, const Json* document, bool stopped);
  };
  // nullopt: no task is free that a spec of this machine computes.
  Result<std::optional<Held>> next(Log& log);
  std::string name() const { return source_->name(); }

 private:
  SharedTasks() = default;
  std::string cache_directory_;
  DeviceInfo device_;
  std::vector<KernelSpec> specs_;
  std::unique_ptr<fleet::LeaseSource> source_;
  double seconds_ = 0;
};

// The task with the spec that computes it, and the shape in that spec's order. kNotFound says why
// none does.
Result<backlog::Task> find_spec(const backlog::Task& task, const DeviceInfo& device,
                                const std::vector<KernelSpec>& specs, const cache::Store& store);

// HOST:PID, for the list of leases.
std::string worker_name();

}  // namespace purlin::cli
