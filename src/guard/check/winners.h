// SPDX-License-Identifier: Apache-2.0
// Winners of the config cache, checked again on the present device: are the outputs still right,
// and is the winner still faster than the default and the runner-up?
//
// Hot keys come first: the keys in the backlog, then the winners measured under another toolkit or
// driver. All are measured together, in the gate's pairs of fresh processes. Thread-safety: free
// functions for one thread. Failure: a Status when the machine or the tool cannot continue. An
// entry that cannot be checked has the reason.
#pragma once

#include "backlog/task.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "cache/store/store.h"
#include "guard/arms/pairs.h"
#include "guard/arms/runner.h"
#include "guard/report/report.h"
#include "model/device/device.h"
#include "model/spec/spec.h"

#include <string>
#include <vector>

namespace purlin::guard {

struct Winner {
  cache::StoredEntry stored;
  std::string spec_path;
  Config default_config, runner_up;  // runner_up is empty where none is known
  cache::CacheKey key;               // of a measurement here and now
  bool hot = false;                  // the backlog names it
  bool changed = false;              // measured under another toolkit or driver

  std::string text() const { return key.kernel + " " + stored.entry.problem.text(); }
};

struct WinnerSearch {
  std::vector<Winner> winners;       // to check, in this order
  std::vector<std::string> skipped;  // entries of this device that cannot be checked, and why
  std::size_t elsewhere = 0;         // entries of other devices
};
struct WinnerFilter {
  std::string op;             // "" = any
  bool changed_only = false;  // only those of another toolkit or driver, not yet validated here
  std::size_t limit = 0;      // 0 = all
};
WinnerSearch find_winners(const cache::Store& store, const std::vector<KernelSpec>& specs,
                          const DeviceInfo& device, const std::vector<backlog::Task>& tasks,
                          const WinnerFilter& filter);

enum class WinnerVerdict {
  kValidated,
  kReplaced,     // the runner-up is faster; it is to be the entry
  kDemoted,      // the default is faster
  kQuarantined,  // wrong outputs, or it does not run
  kInconclusive,
};
std::string_view winner_verdict_name(WinnerVerdict verdict);

struct WinnerResult {
  WinnerVerdict verdict = WinnerVerdict::kInconclusive;
  std::string reason;                                      // a sentence
  std::vector<ReportItem> comparisons;                     // with the default, with the runner-up
  double winner_ns = 0, default_ns = 0, runner_up_ns = 0;  // medians; 0 = not measured
};

struct WinnerCheck {
  Runner& runner;
  DeviceInfo device;
  Design design;
  PairsOptions options;
  Random& random;
  Clock& clock;
};
// One result per winner.
Result<std::vector<WinnerResult>> check_winners(const std::vector<Winner>& winners,
                                                const WinnerCheck& check);

// Records the result: a status or, for a replacement, a new entry, and the tasks that follow. An
// entry of another toolkit or driver that fails here keeps its status: it may still win there.
Status record_winner(cache::Store& store, const Winner& winner, const WinnerResult& result);

}  // namespace purlin::guard
