// SPDX-License-Identifier: Apache-2.0
// BudgetWatch: stops the capture of a process that capture slows more than its budget allows.
//
// A capture limits itself (docs/design/overhead-controller.md); this is the second line, outside of
// the process. Where overhead was above `limit` of the time in `looks` periods in a row, the
// process is asked to stop recording through its control socket, once. One owner, one thread.
// Failure: the request fails, and is repeated in the next period; counts show both.
#pragma once

#include "base/log.h"
#include "base/status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace purlin::fleet {

struct BudgetWatchOptions {
  double limit = 0.05;  // of the process's time; 0 = off
  int looks = 3;
};

class BudgetWatch {
 public:
  // Asks the process of that capture to record nothing.
  using Stop = std::function<Status(const std::string& capture)>;
  BudgetWatch(BudgetWatchOptions options, Stop stop, Log& log)
      : options_(options), stop_(std::move(stop)), log_(log) {}
  // What capture took of `wall_ns`, in one period.
  void look(const std::string& capture, double overhead_ns, double wall_ns);
  void forget(const std::string& capture) { above_.erase(capture); }
  std::uint64_t stopped() const { return stopped_; }
  std::uint64_t failed() const { return failed_; }

 private:
  const BudgetWatchOptions options_;
  const Stop stop_;
  Log& log_;
  std::map<std::string, int> above_;  // periods in a row; -1: it was stopped
  std::uint64_t stopped_ = 0, failed_ = 0;
};

}  // namespace purlin::fleet
