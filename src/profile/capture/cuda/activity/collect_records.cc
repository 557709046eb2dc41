// SPDX-License-Identifier: Apache-2.0
// ActivityAggregator's walk over a buffer's records: it counts launches and time, and adds the
// records to the recorder's rows.
#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/activity/record_facts.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::int64_t kCallNs = 300;  // of a call's record, the program's thread's

}  // namespace

// Memcpy, memset and waits have about the overhead of launches.
class ActivityAggregator::Tally {
 public:
  // `as_planned`: the planned weights replace the unknown ones.
  Tally(bool keeps_ids, bool as_planned, const std::vector<Span>& windows)
      : keeps_ids_(keeps_ids), as_planned_(as_planned), windows_(windows) {}
  void see(const CUpti_Activity& record) {
    ++all_;
    if (keeps_ids_) see_id(record);
    if (record.kind == CUPTI_ACTIVITY_KIND_RUNTIME || record.kind == CUPTI_ACTIVITY_KIND_DRIVER)
      ++calls_;
    see_work(record);
  }
  void add_to(ActivityAggregator& aggregator) const {
    {
      const std::lock_guard<std::mutex> lock(aggregator.mutex_);
      aggregator.busy_.add(busy_);
      const std::int64_t first_ns = busy_.first_ns();
      if (aggregator.first_ns_ == 0 || (first_ns > 0 && first_ns < aggregator.first_ns_))
        aggregator.first_ns_ = first_ns;
      for (const auto& [slot, begun] : slots_) aggregator.work_rates_.add(slot, begun);
      for (const StreamTime::Run& run : runs_) {
        const Period& period = aggregator.period_of(run.start_ns);
        aggregator.streams_.add(run, period.final || as_planned_ ? period.weight : 0);
      }
      for (const auto& [id, start_ns] : launch_ids_) {
        const Period& period = aggregator.period_of(start_ns);
        if (!period.final || period.weight > 0)
          aggregator.counter_.see(id, period.final || as_planned_ ? period.weight : 0, start_ns);
      }
      if (version_id_ != 0 && aggregator.awaited_ns_ != 0)
        aggregator.counter_.see_now(version_id_ - 1, aggregator.awaited_ns_);
      aggregator.launches_ += all_ - nodes_ - calls_;  // with their time: take_counts
      aggregator.nodes_ += nodes_;
    }
    aggregator.cost_ns_ += static_cast<std::int64_t>(calls_) * kCallNs;
  }

 private:
  void see_work(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
        nodes_ += kernel.graphId != 0 ? 1 : 0;
        return began(work_of(kernel));
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return began(work_of(reinterpret_cast<const CUpti_ActivityMemcpy6&>(record)));
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return began(work_of(reinterpret_cast<const CUpti_ActivityMemset4&>(record)));
      default:
        return;
    }
  }
  void began(const DeviceBusy::Work& work) {
    busy_.add(work);
    if (runs_.empty() || !runs_.back().take(work)) runs_.emplace_back().take(work);
    if (work.start_ns <= 0) return;
    const std::int64_t slot = WorkRates::slot_of(work.start_ns);
    if (slots_.empty() || slots_.back().first != slot) slots_.push_back({slot, {}});
    (work.node ? slots_.back().second.nodes : slots_.back().second.launches) += 1;
  }
  template <class Record>
  void see_launch(const CUpti_Activity& record) {
    const auto& launch = reinterpret_cast<const Record&>(record);
    // Memcpy is also recorded between windows, but only windows count here.
    if (record.kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
        record.kind != CUPTI_ACTIVITY_KIND_KERNEL &&
        !in_window(static_cast<std::int64_t>(launch.start)))
      return;
    // The nodes of a graph have their replay's id.
    if (launch_ids_.empty() || launch_ids_.back().first != launch.correlationId)
      launch_ids_.emplace_back(launch.correlationId, static_cast<std::int64_t>(launch.start));
  }
  bool in_window(std::int64_t start_ns) const {
    return std::any_of(windows_.begin(), windows_.end(), [&](const Span& window) {
      return start_ns >= window.from_ns && (window.to_ns == 0 || start_ns <= window.to_ns);
    });
  }
  void see_id(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL:
        return see_launch<CUpti_ActivityKernel10>(record);
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return see_launch<CUpti_ActivityMemcpy6>(record);
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return see_launch<CUpti_ActivityMemset4>(record);
      case CUPTI_ACTIVITY_KIND_DRIVER: {
        const auto& call = reinterpret_cast<const CUpti_ActivityAPI&>(record);
        if (call.cbid == CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion)
          version_id_ = call.correlationId;
        return;
      }
      default:
        return;
    }
  }
  const bool keeps_ids_, as_planned_;
  const std::vector<Span>& windows_;
  std::uint64_t all_ = 0, nodes_ = 0, calls_ = 0;
  std::uint32_t version_id_ = 0;  // of a call for the driver's version
  std::vector<std::pair<std::uint32_t, std::int64_t>> launch_ids_;  // and when they began
  std::vector<std::pair<std::int64_t, WorkRates::Amounts>> slots_;
  DeviceBusy::Batch busy_{wall_ns()};
  std::vector<StreamTime::Run> runs_;
};

void ActivityAggregator::count(const Buffer& buffer, bool as_planned) {
  CUpti_Activity* record = nullptr;
  std::vector<Span> windows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    windows = windows_;
  }
  Tally tally(keeps_ids(), as_planned, windows);
  while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS)
    tally.see(*record);
  tally.add_to(*this);
}
// A buffer's calls come before its launches: most launches then find theirs at once.
void ActivityAggregator::take_calls(const Buffer& buffer, Attribution::Batch& ops) {
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER)
      ops.call(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
}

// The duration of a graph's work, -1: not known. Other work has it in its record.
template <class Record>
std::int64_t ActivityAggregator::duration_of(const Record& record,
                                             const std::vector<Span>& windows) {
  if (!has_times(record.start, record.end)) return -1;
  const auto start = static_cast<std::int64_t>(record.start);
  const auto duration = static_cast<std::int64_t>(record.end - record.start);
  if (record.graphId == 0) return duration;
  auto window = windows.rbegin();
  while (window != windows.rend() && start < window->from_ns) ++window;
  if (window == windows.rend() || window->to_ns == 0 ||
      static_cast<std::int64_t>(record.end) <= window->to_ns) {
    node_times_.learn(record.graphId, record.graphNodeId, duration);
    return duration;
  }
  return node_times_.believe(record.graphId, record.graphNodeId, duration);
}

void ActivityAggregator::aggregate(const Buffer& buffer, bool uncounted, const Again* again) {
  std::vector<Period> periods;
  std::vector<Span> windows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    periods = periods_;
    windows = windows_;
  }
  for (Period& period : periods) {
    period.kernel_ns = 0;
    if (again != nullptr) {
      period.weight = again->holds(period) ? again->weight : 0;
      period.requested = false;
    }
  }
  const auto period_of = [&](std::int64_t start_ns) -> Period& {
    auto period = periods.end() - 1;
    while (period != periods.begin() && start_ns < period->from_ns) --period;
    return *period;
  };
  const auto weighed = [&](auto facts) {
    Period& period = period_of(facts.start_ns);
    if constexpr (std::is_same_v<decltype(facts), LaunchFacts>)
      period.kernel_ns += static_cast<double>(std::max<std::int64_t>(0, facts.duration_ns));
    facts.weight = period.weight;
    if constexpr (!std::is_same_v<decltype(facts), WaitFacts>) {
      facts.timed = facts.timed && again == nullptr && period.timed();
      facts.requested = period.requested;
    }
    return facts;
  };
  CUpti_Activity* record = nullptr;
  std::optional<Attribution::Batch> ops;  // its lock is taken before the recorder's
  if (attribution_.active()) ops.emplace(attribution_);
  Recorder::Batch batch(recorder_);
  if (ops) {
    ops->begin(batch);
    take_calls(buffer, *ops);
  }
  const auto copied = [&](const auto& each, const char* kind) {
    CopyFacts facts = facts_of(each, kind);
    facts.duration_ns = duration_of(each, windows);
    if (facts.duration_ns < 0) return void(++unfinished_copies_);
    last_copy_ns_ = std::max<std::int64_t>(last_copy_ns_, facts.start_ns + facts.duration_ns);
    if (again != nullptr || !copies_wanted_) return;
    facts = weighed(facts);
    facts.weight = 1;  // all are recorded, in windows and between
    if (ops) ops->place(facts, each.correlationId);
    batch.copy(facts);
  };
  Tally tally(uncounted && keeps_ids(), false, windows);
  std::int64_t last_start = wall_ns();
  while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS) {
    tally.see(*record);
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        LaunchFacts facts = facts_of(kernel);
        facts.duration_ns = duration_of(kernel, windows);
        facts.ended = facts.duration_ns >= 0;
        // If CUPTI does not report the start, it is about that of the launch before.
        if (kernel.start != 0)
          last_start = facts.start_ns;
        else
          facts.start_ns = last_start, facts.timed = false;
        facts = weighed(facts);
        facts.again = again != nullptr;
        if (facts.weight <= 0 || (facts.again && !facts.ended)) break;
        if (!ops || ops->place(facts, kernel.correlationId)) batch.launch(facts);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        copied(copy, copy_kind(copy.copyKind));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        copied(set, "memset");
        break;
      }
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto& wait = *reinterpret_cast<const CUpti_ActivitySynchronization2*>(record);
        if (wait_kind(wait.type) != nullptr && has_times(wait.start, wait.end))
          if (const WaitFacts facts = weighed(facts_of(wait)); facts.weight > 0) batch.wait(facts);
        break;
      }
      case CUPTI_ACTIVITY_KIND_CONTEXT:  // asked for by Ownership
      case CUPTI_ACTIVITY_KIND_RUNTIME:  // handled above
      case CUPTI_ACTIVITY_KIND_DRIVER:
        break;
      default:
        ++unasked_;
        break;
    }
  }
  seen_records_ = true;
  if (uncounted) tally.add_to(*this);
  add_up(periods, again != nullptr);
}

void ActivityAggregator::add_up(const std::vector<Period>& periods, bool again) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Period& part : periods) {
    total_ns_ += part.weight * part.kernel_ns;
    for (Period& period : periods_)
      if (!again && period.from_ns == part.from_ns) period.kernel_ns += part.kernel_ns;
  }
}

}  // namespace purlin::profile::capture::cuda
