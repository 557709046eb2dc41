// SPDX-License-Identifier: Apache-2.0
// LeaseSource: where a tuning worker takes its tasks: a file that workers of one file system share,
// or a Purlin server (docs/formats/backlog.md).
//
// One thread. Failure: kCancelled where a lease is lost (the result does not count); kUnavailable
// and kTimeout where the server cannot be reached; the file's.
#pragma once

#include "backlog/leases.h"
#include "base/status.h"
#include "base/time.h"
#include "fleet/client/server_client.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet {

enum class TaskEnd {
  kDone,
  kGivenBack,  // the device was needed, or the worker stops: the task is free again
  kFailed,     // counts as an attempt
};

class LeaseSource {
 public:
  virtual ~LeaseSource() = default;
  virtual Result<std::optional<backlog::Lease>> take(const std::string& worker,
                                                     const std::vector<std::string>& devices,
                                                     double seconds) = 0;
  virtual Status heartbeat(const std::string& id, std::int64_t token, double seconds) = 0;
  virtual Status end(const std::string& id, std::int64_t token, TaskEnd how,
                     const std::string& outcome, double gpu_s) = 0;
  virtual std::string name() const = 0;  // for messages
};

// `clock` outlives it.
Result<std::unique_ptr<LeaseSource>> open_lease_file(const std::string& path, Clock& clock);
Result<std::unique_ptr<LeaseSource>> open_lease_server(std::unique_ptr<ServerClient> client);

// The file of leases next to a config cache.
std::string lease_path(const std::string& cache_directory);

}  // namespace purlin::fleet
