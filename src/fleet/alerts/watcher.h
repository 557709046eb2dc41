// SPDX-License-Identifier: Apache-2.0
// Watcher: looks at the fleet at intervals, in a separate thread: what became slower, stragglers,
// thin nodes. It sends findings, and puts what is worth tuning into the shared backlog.
//
// Gate, clock and log outlive it. `metrics` [MT]. Failure: logged; the next round tries again.
#pragma once

#include "backlog/leases.h"
#include "base/log.h"
#include "base/time.h"
#include "fleet/alerts/courier.h"
#include "fleet/api/store_gate.h"
#include "fleet/backlog/known_times.h"
#include "store/raws.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace purlin::fleet {

struct WatcherOptions {
  AlertConfig config;
  std::string backlog_path;  // leases; "" = the backlog is left alone
  std::size_t tasks = 200;   // of a round
  std::string caches{};      // folder of shared caches, for the best known times; "" = none
  store::RawRetention raws{};
};

class Watcher {
 public:
  // Without a courier nothing is sent. The first round begins at once.
  Watcher(StoreGate& gate, WatcherOptions options, std::optional<Courier> courier, Clock& clock,
          Log& log);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  std::string metrics() const;

 private:
  void run();
  Status round();

  StoreGate& gate_;
  const WatcherOptions options_;
  std::optional<Courier> courier_;
  Clock& clock_;
  Log& log_;
  KnownTimes known_times_;  // of the thread
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  Verdicts verdicts_;
  Courier::Counts sent_;
  std::int64_t ended_ns_ = 0;  // of the last round that succeeded
  std::thread thread_;         // last: it uses the members above
};

// One look at the fleet, without effects.
struct Look {
  Verdicts verdicts;
  double left_out_share = 0;  // of the GPU time: kernels beyond what one look can hold
  std::vector<Finding> findings;
  std::vector<backlog::Leases::Put> tasks;
  struct Change {
    std::int64_t at_ns = 0;
    std::set<std::string> nodes;  // that ran the kernel around it
  };
  std::vector<Change> changes;  // of the alarms: their raw profiles are kept longer
};
// Its tasks alone: kernels that tuning could make faster, over all nodes and times.
Result<std::vector<backlog::Leases::Put>> tasks_of_fleet(store::Reader& reader,
                                                         const AlertConfig& config,
                                                         std::size_t tasks,
                                                         const std::vector<MeasuredTime>& measured,
                                                         std::int64_t now_ns);
Result<Look> look_at(store::Reader& reader, const AlertConfig& config, std::size_t tasks,
                     const std::vector<MeasuredTime>& measured, std::int64_t now_ns);

}  // namespace purlin::fleet
