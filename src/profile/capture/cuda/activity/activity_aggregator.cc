// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/activity_aggregator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::size_t kRemembered = 16;             // periods, windows
constexpr std::size_t kMaxKept = 32;                // buffers, of more than one period
constexpr int kMaxDeferred = 4;                     // windows
constexpr std::int64_t kReleaseNs = 1'000'000'000;  // a buffer that no window needed for so long

}  // namespace

void ActivityAggregator::lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  const std::int64_t began = monotonic_ns();
  *buffer = buffers_.lend();
  *size = *buffer != nullptr ? Buffers::kBytes : 0;
  if (*buffer != nullptr) {
    const std::lock_guard<std::mutex> lock(out_mutex_);
    out_.push_back({*buffer, began});
  }
  *most_records = 0;
  if (!work_began_.load(std::memory_order_relaxed) && session_.hurry()) work_began_ = true;
  cost_ns_ += monotonic_ns() - began;
}

void ActivityAggregator::take(CUcontext context, std::uint32_t stream, std::uint8_t* bytes,
                              std::size_t valid) {
  const std::int64_t began = monotonic_ns();
  std::size_t dropped = 0;  // asked before any lock is taken: CUPTI may hold its own
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) dropped_ += dropped;
  Buffer buffer = {bytes, valid};
  // Counted before it is held: a held buffer may be aggregated and lent again at any time.
  const bool later = valid > 0 && !weights_known(), room = later && has_room();
  if (later) count(buffer, !room);
  if (!room || !hold(buffer)) {
    if (valid > 0) aggregate(buffer, !later);
    buffers_.give_back(bytes);
  }
  {
    const std::lock_guard<std::mutex> lock(out_mutex_);
    std::erase_if(out_, [&](const Out& out) { return out.bytes == bytes; });
  }
  cost_ns_ += monotonic_ns() - began;
  // A full one: the overhead controller may not want many of these.
  if (valid > Buffers::kBytes / 8 * 7) session_.poke();
  const std::uint64_t before = recorded_bytes_.fetch_add(valid);
  if (before < kManyBytes && before + valid >= kManyBytes) session_.wake();
}

const ActivityAggregator::Period& ActivityAggregator::period_of(std::int64_t start_ns) const {
  auto period = periods_.end() - 1;
  while (period != periods_.begin() && start_ns < period->from_ns) --period;
  return *period;
}

ActivityAggregator::Counts ActivityAggregator::take_counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::int64_t first_ns = std::exchange(first_ns_, 0);
  return {static_cast<double>(launches_.exchange(0)), static_cast<double>(nodes_.exchange(0)),
          first_ns > 0 ? wall_ns() - first_ns : 0, work_rates_.per_ns()};
}

DeviceBusy::Hidden ActivityAggregator::hidden(const DeviceBusy::Prices& prices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return busy_.judge(prices);
}

void ActivityAggregator::leave_out_from(std::int64_t from_ns) {
  begin_period_at({from_ns, 0, true, false, 0});
}

void ActivityAggregator::begin_period(double weight, bool final, bool requested) {
  begin_period_at({wall_ns(), weight, final, requested, 0});
  attribution_.keep_times(requested);
}

void ActivityAggregator::begin_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (windows_.size() >= kRemembered) windows_.erase(windows_.begin());
  windows_.push_back({wall_ns(), 0});
  busy_.open(windows_.back().from_ns);
}

void ActivityAggregator::drop_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!windows_.empty() && windows_.back().to_ns == 0) windows_.pop_back();
  busy_.close(wall_ns());
}

void ActivityAggregator::end_window() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!windows_.empty()) windows_.back().to_ns = wall_ns();
  busy_.close(wall_ns());
  closed_ns_ = monotonic_ns();
}

void ActivityAggregator::window_closed(std::int64_t now_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ns_ = now_ns;
}

bool ActivityAggregator::awaits_records() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return awaits_records_now();
}

bool ActivityAggregator::awaits_records_now() {
  const bool open = windows_.empty() || windows_.back().to_ns == 0;
  const std::lock_guard<std::mutex> lock(out_mutex_);
  return std::any_of(out_.begin(), out_.end(),
                     [&](const Out& out) { return open || out.lent_ns <= closed_ns_; });
}

bool ActivityAggregator::start_counter(bool stood_still) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (counter_.running()) return false;
  counter_.start(monotonic_ns(), stood_still);
  return true;
}

bool ActivityAggregator::wants_last_id() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counter_.running();
}

void ActivityAggregator::await_last_id() {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_ns_ = monotonic_ns();
}

void ActivityAggregator::stop_counter() {
  const std::lock_guard<std::mutex> lock(mutex_);
  counter_.stop();
  const std::lock_guard<std::mutex> out(out_mutex_);
  out_.clear();  // another client may have them
}

void ActivityAggregator::begin_period_at(const Period& period) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (periods_.size() >= kRemembered) {
    settled_.add(periods_.front());
    periods_.erase(periods_.begin());
  }
  // One that was to begin later is overtaken.
  while (periods_.size() > 1 && periods_.back().from_ns >= period.from_ns) periods_.pop_back();
  periods_.push_back(period);
}

bool ActivityAggregator::weights_known() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return all_final();
}

bool ActivityAggregator::all_final() const {
  return std::all_of(periods_.begin(), periods_.end(),
                     [](const Period& period) { return period.final; });
}

bool ActivityAggregator::has_room() {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_kept(kMaxHeld - std::min(kMaxHeld, held_.size() + 1));
  return held_.size() < kMaxHeld;
}

void ActivityAggregator::keep(Kept&& last) {
  const std::size_t most = std::max(kMaxKept, last.buffers.size());
  kept_.push_back(std::move(last));
  drop_kept(most);
}

// The oldest, and those of periods that are forgotten, until at most so many buffers are left.
void ActivityAggregator::drop_kept(std::size_t most) {
  std::size_t left = 0;
  for (const Kept& each : kept_) left += each.buffers.size();
  auto end = kept_.begin();
  for (; end != kept_.end() && (left > most || end->from_ns < periods_.front().from_ns); ++end) {
    left -= end->buffers.size();
    for (const Buffer& buffer : end->buffers) buffers_.give_back(buffer.bytes);
  }
  kept_.erase(kept_.begin(), end);
}

// Adds launches of which only the number is known: those after the last window with launches, and
// those held back from earlier windows. Each window's share is that of the launches that it
// represents. False: no window had launches, or too long ago.
bool ActivityAggregator::give_to_kept(double launches) {
  std::vector<Kept> kept;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_kept(kMaxHeld);
    kept.swap(kept_);
  }
  double all = 0;
  for (const Kept& each : kept) all += each.launches;
  for (const Kept& each : kept) {
    const Again again = {each.from_ns, each.last_from_ns, launches * each.weight / all};
    for (const Buffer& buffer : each.buffers) {
      aggregate(buffer, false, &again);
      buffers_.give_back(buffer.bytes);
    }
  }
  return !kept.empty();
}

bool ActivityAggregator::hold(Buffer& buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (all_final()) return false;
  buffer.names.take_from(cupti_, buffer.bytes, buffer.valid);
  held_.push_back(std::move(buffer));
  return true;
}

// A weight by time would be given to records unseen, and a short window's weight is great.
bool ActivityAggregator::defer(double weight, double time_ns, double alone_ns, const Doubt& doubt) {
  deferred_.alone_ns += alone_ns;
  if (time_ns > 0) {
    const double open_ns = time_ns / weight;
    deferred_.windows += 1;
    deferred_.time_ns += time_ns;
    deferred_.open_ns += open_ns;
    deferred_.doubt.switched += open_ns * doubt.switched;
    deferred_.doubt.waited += open_ns * doubt.waited;
  }
  return counter_.running() && !counter_.has_records() && deferred_.windows > 0 &&
         deferred_.windows < kMaxDeferred && awaits_records_now();
}

void ActivityAggregator::settle(double weight, double time_ns, bool last, double alone_ns,
                                const Doubt& doubt_now) {
  std::vector<Buffer> held;
  LaunchCounter::Weight by_ids;
  double left_out = 0, seen = 0;
  std::int64_t from_ns = 0, last_from_ns = 0;
  double settled = 0;  // periods
  Doubt doubt;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool any = !all_final();
    if (attribution_.active()) counter_.stop();
    if (defer(weight, time_ns, alone_ns, doubt_now) && !last) return;
    const Deferred all = std::exchange(deferred_, {});
    alone_ns = all.alone_ns;
    if (all.open_ns > 0) {
      time_ns = all.time_ns;
      weight = std::max(1.0, all.time_ns / all.open_ns);
      doubt = {all.doubt.switched / all.open_ns, all.doubt.waited / all.open_ns};
    }
    const std::int64_t now = monotonic_ns();
    const bool open = !windows_.empty() && windows_.back().to_ns == 0;
    by_ids = counter_.settle({any ? weight : 1, time_ns, open ? now : closed_ns_, now,
                              last || !awaits_records_now(), last, session_.options().waits,
                              alone_ns, all.windows});
    if (any) weight = by_ids.value;
    if (any && !by_ids.counted && weight > 1) {
      weight = std::min(weight, streams_.most(wall_ns(), last));
      by_ids.launches *= weight / by_ids.value;
      doubt.switched += by_ids.value / weight - 1;  // one of the two is wrong
    }
    streams_.settle(weight);
    left_out = counter_.left_out();
    for (const Period& period : periods_) settled += period.final ? 0 : 1;
    for (Period& period : periods_) {
      if (std::exchange(period.final, true)) continue;
      period.weight = weight;
      period.weighed = true;
      period.represents = weight >= 1.01;
      period.counted = by_ids.counted;
      period.size = (by_ids.counted ? by_ids.launches : time_ns) / settled;
      period.doubt = doubt;
      if (from_ns == 0) from_ns = period.from_ns;
      last_from_ns = period.from_ns;
    }
    held.swap(held_);
    seen = settled > 0 ? by_ids.launches : 0;
  }
  for (const Buffer& buffer : held) aggregate(buffer, false);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seen >= weight && !held.empty() && (!last || kept_.empty()))
      keep({std::move(held), from_ns, last_from_ns, weight, seen});
    else
      for (const Buffer& buffer : held) buffers_.give_back(buffer.bytes);
  }
  if (last && left_out >= 1 && !give_to_kept(left_out))
    recorder_.note(
        "ended_before_window",
        "the program ended before a window represented the launches after the last one, or before "
        "the first window, or the records of the last window were no longer kept: so many are in "
        "no row",
        left_out);
  if (last) {
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_kept(0);
  }
}

void ActivityAggregator::Settled::add(const Period& period) {
  if (!period.represents) return;
  const double z = period.weight * period.kernel_ns;
  if (period.counted) return counted.add(z, period.size);
  timed.add(z, period.size);
  switched_ns += z * period.doubt.switched;
  waited_ns += z * period.doubt.waited;
}

void ActivityAggregator::Sums::add(double z_ns, double size) {
  n += 1, z += z_ns, t += size;
  zz += z_ns * z_ns, zt += z_ns * size, tt += size * size;
}

double ActivityAggregator::Sums::variance() const {
  if (n < 2 || t <= 0) return zz;  // the variance needs two windows
  const double rate = z / t;
  return std::max(0.0, zz - 2 * rate * zt + rate * rate * tt) * n / (n - 1);
}

ActivityAggregator::Estimate ActivityAggregator::estimate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Settled all = settled_;
  for (const Period& period : periods_) all.add(period);
  return {total_ns_, all.counted.variance() + all.timed.variance(), all.counted.n, all.timed.n,
          all.switched_ns + std::abs(all.waited_ns) + all.counted.z * counter_.ids_doubt() +
              std::max(streams_.beyond_ns(wall_ns()), counter_.beyond() * total_ns_)};
}

void ActivityAggregator::account() {
  if (const std::int64_t now = monotonic_ns(); now - released_ns_ >= kReleaseNs) {
    released_ns_ = now;
    buffers_.release_unused();
  }
  if (const std::uint64_t dropped = dropped_.exchange(0); dropped > 0)
    recorder_.lose_launches(static_cast<double>(dropped), "records_dropped",
                            "records that CUPTI dropped because buffer space was missing");
  if (const std::uint64_t unfinished = unfinished_copies_.exchange(0); unfinished > 0)
    recorder_.note("unfinished_copies",
                   "memcpy and memset that had not ended when their record was read, or whose end "
                   "CUPTI did not report: they are not here",
                   static_cast<double>(unfinished));
}

}  // namespace purlin::profile::capture::cuda
