// SPDX-License-Identifier: Apache-2.0
#include "fleet/demo/made_backlog.h"

#include "fleet/alerts/watcher.h"

#include <optional>
#include <string>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kMadeLeaseNs = 24LL * 3600 * 1'000'000'000;  // as long as a demo may run

struct MadeTask {
  const char* worker;
  const char* device;
  const char* outcome;  // as `purlin tune --backlog` states it; "" while it is under way
  double gpu_s;         // that its tuning took
  bool failed = false;
};
// In the order in which the pool takes them: of each device, the largest saving first.
constexpr MadeTask kMadePool[] = {
    {"l40s-tuner-1", "NVIDIA L40S", "no config worked", 6.5, true},
    {"a100-tuner-1", "NVIDIA A100-SXM4-80GB", "1.31x of the default", 412},
    {"a100-tuner-2", "NVIDIA A100-SXM4-80GB", "1.00x of the default", 96},
    {"h100-tuner-1", "NVIDIA H100 80GB HBM3", "1.18x of the default", 655},
    {"h200-tuner-1", "NVIDIA H200", "1.09x of the default", 388},
    {"h100-tuner-1", "NVIDIA H100 80GB HBM3", "", 0},
    {"mi300-tuner-1", "AMD Instinct MI300X", "", 0},
};

Status work(const MadeTask& made, backlog::Leases& leases, std::int64_t now_ns) {
  const int attempts = made.failed ? backlog::Leases::kMaxAttempts : 1;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    PURLIN_ASSIGN(const std::optional<backlog::Lease> lease,
                  leases.take(made.worker, {made.device}, kMadeLeaseNs, now_ns));
    if (!lease || *made.outcome == '\0') return Status::ok();
    const std::string id = lease->ranked.task.id();
    PURLIN_TRY(made.failed
                   ? leases.give_back(id, lease->token, made.outcome, true, made.gpu_s, now_ns)
                   : leases.finish(id, lease->token, made.outcome, made.gpu_s, now_ns));
  }
  return Status::ok();
}

}  // namespace

Status fill_made_backlog(store::Reader& reader, backlog::Leases& leases, std::int64_t now_ns) {
  PURLIN_ASSIGN(const std::vector<backlog::Leases::Put> tasks,
                tasks_of_fleet(reader, AlertConfig{}, WatcherOptions{}.tasks, {}, now_ns));
  PURLIN_TRY(leases.put(tasks, now_ns));
  for (const MadeTask& made : kMadePool) PURLIN_TRY(work(made, leases, now_ns));
  return Status::ok();
}

}  // namespace purlin::fleet
