// SPDX-License-Identifier: Apache-2.0
// Backlog: what is to be tuned or validated next, kept beside the config cache that it is about.
//
// Whoever finds that a winner no longer wins, or that what it was measured on has changed, queues a
// task; the same finding queued twice is one task that was seen twice. Append-only JSON lines
// (docs/formats/backlog.md): safe between processes, durable when queue() returns. Free functions,
// thread-safe. Failure: kIo; kCorrupt for a damaged file.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "model/device/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::cache {

struct Task {
  std::string kind;  // "retune": the winner lost; "validate": it may have, as its environment
                     // changed; "tune": programs run it without an entry
  std::string kernel, shape;
  std::string spec;    // path of the kernel's spec, "" where not known
  std::string device;  // model
  std::string toolkit, driver;
  std::string reason;     // a sentence
  double ratio = 0;       // slowdown seen, 0 = none known
  std::string queued_at;  // the latest time
  int seen = 1;
  std::uint64_t launches = 0;  // of programs that it is about; 0 = not known

  // Of kind, kernel, shape, device, toolkit and driver: what makes two findings one task.
  std::string id() const;
};
Json to_json(const Task& task);

std::string backlog_path(const std::string& cache_directory);
Status queue(const std::string& cache_directory, const std::vector<Task>& tasks);
// kNotFound where no open task has that id.
Status finish(const std::string& cache_directory, const std::string& id);
// Open tasks: largest slowdown first, then the most often seen.
Result<std::vector<Task>> open_tasks(const std::string& cache_directory);

}  // namespace purlin::cache
