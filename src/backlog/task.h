// SPDX-License-Identifier: Apache-2.0
// Task: one kernel at one problem shape that is to be tuned or validated, and what is known of the
// GPU time that this can save.
//
// A source of tasks fills in the facts that it has. A fact of value 0, or without a value, is not
// known; order.h has the assumption for it. Value types, safe on any thread. Cannot fail.
#pragma once

#include "base/json/json.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace purlin::backlog {

struct TaskKey {
  // "retune": a cached winner became slower. "validate": its environment changed, so that it may
  // have become slower. "tune": programs run the kernel without an entry.
  std::string kind;
  std::string kernel, shape;
  std::string device;  // model
  std::string toolkit, driver;

  // 12 hex digits. Two findings with the same id are one task.
  std::string id() const;
  auto operator<=>(const TaskKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Task {
  TaskKey key;
  std::string spec;            // path of the kernel's spec, "" where not known
  std::string dtype;           // of the operands, "" where not known
  std::uint64_t launches = 0;  // of programs
  double launch_ns = 0;        // mean GPU time of a launch
  // The share of the GPU time that the task can save, between 0 and 1.
  std::optional<double> headroom;
  double ratio = 0;             // measured slowdown, 1.2 = 20 % more time
  std::string reason;           // a sentence
  std::string first_queued_at;  // RFC 3339
  std::string queued_at;        // the latest time, RFC 3339
  int seen = 1;                 // number of findings

  std::string id() const { return key.id(); }
};

// The members of a finding in the file and of a task in a list (docs/formats/backlog.md).
Json to_json(const Task& task);
// A member that is absent or of another type is not known.
Task task_from_json(const Json& json);

}  // namespace purlin::backlog
