// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/folding.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

// CUPTI appends fields to its records and renames the type; what is read here has been in the same
// place since CUDA 12.0, the oldest version load_cupti accepts.
#define PURLIN_SAME_PLACE(newer, older, field) \
  static_assert(offsetof(newer, field) == offsetof(older, field))
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, registersPerThread);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, start);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, gridX);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, localMemoryPerThread);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, name);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, graphId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, correlationId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, clusterX);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, start);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, deviceId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, streamId);
PURLIN_SAME_PLACE(CUpti_ActivityKernel10, CUpti_ActivityKernel8, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, graphId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, graphNodeId);
PURLIN_SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset3, graphId);
#undef PURLIN_SAME_PLACE

const char* copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return "h2d";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return "d2h";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "h2h";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "p2p";
    default:
      return "d2d";
  }
}

// A record that was flushed before the work ended has no end.
bool has_times(std::uint64_t start, std::uint64_t end) { return start != 0 && end >= start; }

std::uint32_t count(std::int32_t value) {
  return value > 0 ? static_cast<std::uint32_t>(value) : 0;
}

LaunchFacts facts_of(const CUpti_ActivityKernel10& record) {
  LaunchFacts facts;
  facts.name = record.name != nullptr ? record.name : "(unnamed kernel)";
  facts.grid = {count(record.gridX), count(record.gridY), count(record.gridZ)};
  facts.block = {count(record.blockX), count(record.blockY), count(record.blockZ)};
  if (record.clusterX > 0) facts.cluster = {record.clusterX, record.clusterY, record.clusterZ};
  facts.dynamic_shared_bytes = count(record.dynamicSharedMemory);
  facts.static_shared_bytes = count(record.staticSharedMemory);
  facts.registers = record.registersPerThread;
  facts.local_bytes = record.localMemoryPerThread;
  facts.device = record.deviceId;
  facts.stream = record.streamId;
  facts.graph = record.graphId;
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  if (record.graphId != 0) facts.origin = LaunchOrigin::kGraph;
  return facts;
}

// Of a copy or a set.
template <class Record>
CopyFacts facts_of(const Record& record, const char* kind) {
  CopyFacts facts;
  facts.kind = kind;
  facts.device = record.deviceId;
  facts.stream = record.streamId;
  facts.bytes = record.bytes;
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  return facts;
}

// nullptr: no wait of the host's (a stream that waits for an event keeps nobody there).
const char* wait_kind(CUpti_ActivitySynchronizationType type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
      return "event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
      return "stream";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
      return "context";
    default:
      return nullptr;
  }
}

WaitFacts facts_of(const CUpti_ActivitySynchronization2& record) {
  WaitFacts facts;
  facts.kind = wait_kind(record.type);
  facts.start_ns = static_cast<std::int64_t>(record.start);
  facts.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  return facts;
}

constexpr std::size_t kRemembered = 16;             // periods, windows
constexpr std::int64_t kReleaseNs = 1'000'000'000;  // what no window needed for so long
constexpr std::int64_t kCallNs = 300;               // of a call's record, the program's thread's

}  // namespace

void Folding::lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  const std::int64_t began = monotonic_ns();
  *buffer = buffers_.lend();
  *size = *buffer != nullptr ? Buffers::kBytes : 0;
  if (*buffer != nullptr) ++out_;
  *most_records = 0;
  if (!work_began_.load(std::memory_order_relaxed) && session_.hurry()) work_began_ = true;
  cost_ns_ += monotonic_ns() - began;
}

void Folding::take(CUcontext context, std::uint32_t stream, std::uint8_t* bytes,
                   std::size_t valid) {
  const std::int64_t began = monotonic_ns();
  std::size_t dropped = 0;  // asked before any lock is taken: CUPTI may hold its own
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) dropped_ += dropped;
  Buffer buffer = {bytes, valid};
  // Counted before it is held: what is held may be folded and lent again at any time.
  const bool later = valid > 0 && !weights_known(), room = later && has_room();
  if (later) count(buffer, !room);
  if (!room || !hold(buffer)) {
    if (valid > 0) fold(buffer, !later);
    buffers_.give_back(bytes);
  }
  lost_ = std::min(lost_.load(), --out_);
  cost_ns_ += monotonic_ns() - began;
  // A full one: the governor may not want many of these.
  if (valid > Buffers::kBytes / 8 * 7) session_.poke();
}

// Copies, sets and waits cost as launches do, about.
class Folding::Tally {
 public:
  // `as_planned`: the weights that are not known will be those.
  explicit Tally(bool keeps_ids, bool as_planned = false)
      : keeps_ids_(keeps_ids), as_planned_(as_planned) {}
  void see(const CUpti_Activity& record) {
    ++all_;
    if (keeps_ids_) see_id(record);
    if (record.kind == CUPTI_ACTIVITY_KIND_RUNTIME || record.kind == CUPTI_ACTIVITY_KIND_DRIVER)
      ++calls_;
    if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
        record.kind == CUPTI_ACTIVITY_KIND_KERNEL)
      nodes_ += reinterpret_cast<const CUpti_ActivityKernel10&>(record).graphId != 0 ? 1 : 0;
  }
  void add_to(Folding& folding) const {
    if (!launch_ids_.empty() || version_id_ != 0) {
      const std::lock_guard<std::mutex> lock(folding.mutex_);
      for (const auto& [id, start_ns] : launch_ids_) {
        const Period& period = folding.period_of(start_ns);
        if (!period.final || period.weight > 0)
          folding.clock_.see(id, period.final || as_planned_ ? period.weight : 0, start_ns);
      }
      if (version_id_ != 0 && folding.awaited_ns_ != 0)
        folding.clock_.see_now(version_id_ - 1, folding.awaited_ns_);
    }
    folding.launches_ += all_ - nodes_ - calls_;
    folding.cost_ns_ += static_cast<std::int64_t>(calls_) * kCallNs;
    folding.nodes_ += nodes_;
  }

 private:
  template <class Record>
  void see_launch(const CUpti_Activity& record) {
    const auto& launch = reinterpret_cast<const Record&>(record);
    // The nodes of a graph have their replay's id.
    if (launch_ids_.empty() || launch_ids_.back().first != launch.correlationId)
      launch_ids_.emplace_back(launch.correlationId, static_cast<std::int64_t>(launch.start));
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
  std::uint64_t all_ = 0, nodes_ = 0, calls_ = 0;
  std::uint32_t version_id_ = 0;  // of a call for the driver's version
  std::vector<std::pair<std::uint32_t, std::int64_t>> launch_ids_;  // and when they began
};

void Folding::count(const Buffer& buffer, bool as_planned) {
  CUpti_Activity* record = nullptr;
  Tally tally(keeps_ids(), as_planned);
  while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS)
    tally.see(*record);
  tally.add_to(*this);
}

const Folding::Period& Folding::period_of(std::int64_t start_ns) const {
  auto period = periods_.end() - 1;
  while (period != periods_.begin() && start_ns < period->from_ns) --period;
  return *period;
}

Folding::Counts Folding::take_counts() {
  return {static_cast<double>(launches_.exchange(0)), static_cast<double>(nodes_.exchange(0))};
}

void Folding::leave_out_from(std::int64_t from_ns) {
  begin_period_at({from_ns, 0, true, false, 0});
}

void Folding::begin_period(double weight, bool final, bool timed) {
  begin_period_at({wall_ns(), weight, final, timed, 0});
  attribution_.keep_times(timed);
}

void Folding::begin_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (windows_.size() >= kRemembered) windows_.erase(windows_.begin());
  windows_.push_back({wall_ns(), 0});
}

void Folding::drop_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!windows_.empty() && windows_.back().to_ns == 0) windows_.pop_back();
}

void Folding::end_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!windows_.empty()) windows_.back().to_ns = wall_ns();
  closed_ns_ = monotonic_ns();
}

bool Folding::start_clock(bool stood_still) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (clock_.running()) return false;
  clock_.start(monotonic_ns(), stood_still);
  return true;
}

bool Folding::wants_last_id() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return clock_.running();
}

void Folding::await_last_id() {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_ns_ = monotonic_ns();
}

void Folding::stop_clock() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clock_.stop();
  lost_ = out_.load();  // another client may have been given them
}

void Folding::begin_period_at(const Period& period) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (periods_.size() >= kRemembered) periods_.erase(periods_.begin());
  // One that was to begin later is overtaken.
  while (periods_.size() > 1 && periods_.back().from_ns >= period.from_ns) periods_.pop_back();
  periods_.push_back(period);
}

bool Folding::weights_known() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return all_final();
}

bool Folding::all_final() const {
  return std::all_of(periods_.begin(), periods_.end(),
                     [](const Period& period) { return period.final; });
}

bool Folding::has_room() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_.size() + kept_.size() >= kMostHeld) keep({}, 0, 0);
  return held_.size() < kMostHeld;
}

void Folding::keep(std::vector<Buffer>&& folded, std::int64_t from_ns, double launches) {
  for (const Buffer& buffer : kept_) buffers_.give_back(buffer.bytes);
  kept_ = std::move(folded);
  kept_from_ns_ = from_ns;
  kept_launches_ = launches;
}

// Launches after the last window that saw any, of which only the number is known. False: none did,
// or too long ago.
bool Folding::give_to_kept(double launches) {
  std::vector<Buffer> kept;
  Again again;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_.empty() || periods_.front().from_ns > kept_from_ns_) return false;
    kept.swap(kept_);
    again = {kept_from_ns_, launches / kept_launches_};
  }
  for (const Buffer& buffer : kept) {
    fold(buffer, false, &again);
    buffers_.give_back(buffer.bytes);
  }
  return true;
}

bool Folding::hold(Buffer& buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (all_final()) return false;
  buffer.names.take_from(cupti_, buffer.bytes, buffer.valid);
  held_.push_back(std::move(buffer));
  return true;
}

void Folding::settle(double weight, double time_ns, bool last, double alone_ns) {
  std::vector<Buffer> held;
  LaunchClock::Weight by_ids;
  double left_out = 0, seen = 0;
  std::int64_t from_ns = 0;
  bool settled = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool any = !all_final();
    if (attribution_.active()) clock_.stop();
    const std::int64_t now = monotonic_ns();
    const bool open = !windows_.empty() && windows_.back().to_ns == 0;
    by_ids = clock_.settle({any ? weight : 1, time_ns, open ? now : closed_ns_, now,
                            last || !awaits_records(), last, session_.options().waits, alone_ns});
    if (any) weight = by_ids.value;
    left_out = clock_.left_out();
    for (Period& period : periods_)
      if (!std::exchange(period.final, true))
        settled = true, period.weight = weight, from_ns = period.from_ns;
    held.swap(held_);
    seen = settled ? by_ids.launches / weight : 0;
  }
  for (const Buffer& buffer : held) fold(buffer, false);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seen >= 1 && (!last || kept_.empty()))
      keep(std::move(held), from_ns, seen);
    else
      for (const Buffer& buffer : held) buffers_.give_back(buffer.bytes);
  }
  if (last && left_out >= 1 && !give_to_kept(left_out))
    recorder_.note(
        "ended_before_window",
        "the program ended before a window stood for the launches after the last one, or "
        "after its beginning: so many are in no row",
        left_out);
  if (last) {
    const std::lock_guard<std::mutex> lock(mutex_);
    keep({}, 0, 0);
  }
  if (!settled || weight < 1.01) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const double z = weight * periods_.back().kernel_ns;
  by_ids.counted ? counted_.add(z, by_ids.launches) : timed_.add(z, time_ns);
}

void Folding::Sums::add(double z_ns, double size) {
  n += 1, z += z_ns, t += size;
  zz += z_ns * z_ns, zt += z_ns * size, tt += size * size;
}

double Folding::Sums::variance() const {
  if (n < 2 || t <= 0) return zz;  // one window does not tell how they differ
  const double rate = z / t;
  return std::max(0.0, zz - 2 * rate * zt + rate * rate * tt) * n / (n - 1);
}

Folding::Estimate Folding::estimate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {total_ns_, counted_.variance() + timed_.variance(), counted_.n, timed_.n};
}

// A buffer's calls come before its launches: most launches then find theirs at once.
void Folding::take_calls(const Buffer& buffer, Attribution::Batch& ops) {
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER)
      ops.call(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
}

// How long work of a graph took, -1: not known. Other work's record says so itself.
template <class Record>
std::int64_t Folding::duration_of(const Record& record, const std::vector<Span>& windows) {
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

void Folding::fold(const Buffer& buffer, bool uncounted, const Again* again) {
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
      period.weight = period.from_ns == again->from_ns ? again->weight : 0;
      period.timed = false;
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
    facts.timed = facts.timed && period.timed;
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
    facts = weighed(facts);
    if (facts.weight <= 0) return;
    if (ops) ops->place(facts, each.correlationId);
    batch.copy(facts);
  };
  Tally tally(uncounted && keeps_ids());
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
        // Where not even the start is told, it is about that of the launch before.
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
      case CUPTI_ACTIVITY_KIND_RUNTIME:  // seen to above
      case CUPTI_ACTIVITY_KIND_DRIVER:
        break;
      default:
        ++unasked_;
        break;
    }
  }
  seen_records_ = true;
  if (uncounted) tally.add_to(*this);
  add_up(periods);
}

void Folding::add_up(const std::vector<Period>& folded) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Period& part : folded) {
    total_ns_ += part.weight * part.kernel_ns;
    for (Period& period : periods_)
      if (period.from_ns == part.from_ns) period.kernel_ns += part.kernel_ns;
  }
}

void Folding::account() {
  if (const std::int64_t now = monotonic_ns(); now - released_ns_ >= kReleaseNs) {
    released_ns_ = now;
    buffers_.release_unused();
  }
  if (const std::uint64_t dropped = dropped_.exchange(0); dropped > 0)
    recorder_.lose_launches(static_cast<double>(dropped), "records_dropped",
                            "records CUPTI dropped for want of buffer space");
  if (const std::uint64_t unfinished = unfinished_copies_.exchange(0); unfinished > 0)
    recorder_.note("unfinished_copies",
                   "copies and sets that had not ended when their record had to be taken, or whose "
                   "end CUPTI did not tell: they are not here",
                   static_cast<double>(unfinished));
}

}  // namespace purlin::profile::capture::cuda
