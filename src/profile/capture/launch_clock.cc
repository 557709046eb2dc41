// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/launch_clock.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <vector>

namespace purlin::profile::capture {
namespace {

// What stands for more than this was recorded in a window, and told of after it was weighed.
constexpr double kAlone = 1.01;
// Less than this of what time expects between two windows: ids stand still.
constexpr double kStandsStill = 0.02;
// More than any number of threads launches.
constexpr double kMostPerNs = 0.05;
// Beyond it, ids may have come round unseen.
constexpr double kMostAhead = double{1u << 30};
// How far windows as a whole, and one, may be taken to be from what time says of them.
constexpr double kMostApart = 4, kMostCorrected = 2;
// Of what was given out too much or too little, what the next window makes up for.
constexpr double kMadeUp = 0.5;
constexpr int kMemory = 64;  // windows
constexpr double kFewLaunches = 4, kFewWindows = 4;
// Windows that tell how many ids a launch has; more is a window that is none.
constexpr double kEnoughLaunches = 8, kMostPerLaunch = 32;
// The share of a window's ids without a record from which on it is not chance.
constexpr double kCaptured = 0.05;

}  // namespace

std::int64_t LaunchClock::unwrap(std::uint32_t id) const {
  if (!any_) return id;
  return last_ + static_cast<std::int32_t>(id - static_cast<std::uint32_t>(last_));
}

void LaunchClock::start(std::int64_t now_ns, bool stood_still) {
  if (running_) return;
  running_ = true;
  finding_ = !stood_still;
  given_ = known_ = alone_ = late_ = launches_ = open_ns_ = 0;
  settled_ = before_ = last_;
  due_from_ = static_cast<double>(last_);
  before_ns_ = now_ns;
}

bool LaunchClock::is_new(std::int64_t id) {
  const std::int64_t chunk = id >> 6;
  if (chunk != chunk_ || bits_ == nullptr) {
    if (seen_.size() >= kMostChunks) {
      full_ = true;
      return false;
    }
    chunk_ = chunk;
    bits_ = &seen_[chunk];  // stays where it is as others come
  }
  const std::uint64_t bit = std::uint64_t{1} << (id & 63);
  const bool known = (*bits_ & bit) != 0;
  *bits_ |= bit;
  return !known;
}

void LaunchClock::see(std::uint32_t id, double weight) {
  const std::int64_t at = unwrap(id);
  if (!any_) {
    finding_ = finding_ || running_;
    last_ = at;
    settled_ = before_ = at - 1;
  }
  any_ = true;
  if (running_ && at <= settled_) {
    if (!gone_back_ || at > backwards_) backwards_ = at;
    gone_back_ = true;
    return;
  }
  last_ = std::max(last_, at);
  if (!running_ || !is_new(at)) return;
  if (weight > 0) {
    known_ += weight;
    ++(weight > kAlone ? late_ : alone_);
  } else {
    if (launches_ == 0 || at < first_) first_ = at;
    if (launches_ == 0 || at > latest_) latest_ = at;
    launches_ += 1;
  }
}

void LaunchClock::see_now(std::uint32_t id, std::int64_t now_ns) {
  const std::int64_t at = unwrap(id);
  if (!running_ || at < last_) return;
  last_ = at;
  now_ns_ = now_ns;
}

LaunchClock::Weight LaunchClock::settle(const Stretch& stretch) {
  Weight weight = {stretch.by_time, false, 0};
  left_out_ = 0;
  if (running_) {
    learn_captured(stretch);
    const bool known = learn_calls(stretch);
    if (launches_ == 0 && !gone_back_) {
      given_ += known_ * per_launch_;
      if (stretch.last && now_ns_ != 0 && known)
        left_out_ = std::max(0.0, static_cast<double>(last_) - due_from_ - given_) / per_launch_;
      if (stretch.by_time > 0) open_ns_ += stretch.time_ns / stretch.by_time;
      weight.counted = moves_;  // none
    } else {
      weight = known && believed(stretch) ? by_ids(stretch) : by_time(stretch);
    }
  }
  forget();
  return weight;
}

void LaunchClock::forget() {
  seen_.clear();
  bits_ = nullptr;
  launches_ = known_ = alone_ = late_ = 0;
  gone_back_ = full_ = false;
  settled_ = last_;
}

// How many ids a launch has, with those of the calls around it. False: not known yet.
bool LaunchClock::learn_calls(const Stretch& stretch) {
  if (stretch.calls && !calls_) {
    calls_ = true;
    per_launch_ = ids_ = timed_ = span_ns_ = 0;
    lessons_ = 0;
  }
  if (calls_ && launches_ >= kEnoughLaunches) {
    const double seen = static_cast<double>(latest_ - first_) / (launches_ - 1);
    if (seen <= kMostPerLaunch)
      per_launch_ += (seen - per_launch_) / (per_launch_ > 0 ? std::min(lessons_ + 1, 8) : 1);
  }
  return per_launch_ > 0;
}

// Ids between so many windows: their launches' largest gaps, but for the 63 ids at an end of one
// that may be missed.
double LaunchClock::between(int windows) const {
  if (windows < 2) return 0;
  std::vector<std::int64_t> chunks;
  chunks.reserve(seen_.size());
  for (const auto& [chunk, bits] : seen_)
    if (bits != 0) chunks.push_back(chunk);
  std::sort(chunks.begin(), chunks.end());
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    const std::int64_t last = chunks[i - 1] * 64 + 63 - std::countl_zero(seen_.at(chunks[i - 1]));
    const std::int64_t next = chunks[i] * 64 + std::countr_zero(seen_.at(chunks[i]));
    gaps.push_back(next - last - 1);
  }
  const std::size_t count = std::min(gaps.size(), static_cast<std::size_t>(windows - 1));
  const auto end = gaps.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(gaps.begin(), end, gaps.end(), std::greater<>());
  return static_cast<double>(std::accumulate(gaps.begin(), end, std::int64_t{0}));
}

// Launches that are captured have an id and no record, as those have that will be told of late,
// with the weight of their window: of the ids of windows, from first launch to last, so many are a
// launch.
void LaunchClock::learn_captured(const Stretch& stretch) {
  if (stretch.calls || calls_ || full_ || alone_ + late_ > 0 || launches_ < kEnoughLaunches) return;
  spans_ += static_cast<double>(latest_ - first_ + 1) - between(stretch.windows);
  in_spans_ += launches_;
  const double ids = spans_ / in_spans_;
  per_launch_ = ids > 1 + kCaptured ? ids : 1;
}

// Whether ids tell what lay between the windows before and these; learns from it.
bool LaunchClock::believed(const Stretch& stretch) {
  if (full_ || launches_ == 0 || finding_) return false;
  const auto span = static_cast<double>(stretch.closed_ns - before_ns_);
  const double open = open_ns_ + stretch.time_ns / stretch.by_time;
  const double seen = (launches_ + late_) * per_launch_, known = alone_ * per_launch_;
  const auto ids = static_cast<double>(latest_ - before_) - known;
  if (span <= 0 || open <= 0 || ids > span * kMostPerNs) return false;
  if (std::max(seen / open, span_ns_ > 0 ? ids_ / span_ns_ : 0) * span > kMostAhead) return false;
  const double timed = seen * span / open;
  const auto between = static_cast<double>(first_ - before_ - 1) - known;
  moves_ = moves_ || between > kStandsStill * (timed - seen);
  if (!moves_) return false;
  // Where a part of the time was recorded throughout, the rest of it is not known; and what ran
  // long after it was launched may seem to belong to the window that comes next.
  if ((known > 0.05 * ids || ids < launches_) && span_ns_ > 0) return true;
  if (ids < launches_) return false;
  if (++lessons_ > kMemory) {
    ids_ /= 2, timed_ /= 2, span_ns_ /= 2;
    lessons_ /= 2;
  }
  ids_ += ids;
  timed_ += timed;
  span_ns_ += span;
  return true;
}

// Begins anew with what these windows stand for.
LaunchClock::Weight LaunchClock::by_time(const Stretch& stretch) {
  if (launches_ == 0 && gone_back_) last_ = backwards_;
  const auto rest = static_cast<double>(stretch.now_ns - stretch.closed_ns);
  const double timed = launches_ * per_launch_ * stretch.by_time;
  finding_ = false;
  before_ = last_;
  before_ns_ = stretch.closed_ns;
  open_ns_ = 0;
  due_from_ = static_cast<double>(last_);
  given_ = stretch.time_ns > 0 ? timed * rest / stretch.time_ns : 0;
  return {stretch.by_time, false, 0};
}

LaunchClock::Weight LaunchClock::by_ids(const Stretch& stretch) {
  const double rate = ids_ / span_ns_;
  const double seen = launches_ * per_launch_, known = known_ * per_launch_;
  const std::int64_t until = std::max(stretch.closed_ns, now_ns_);
  const auto rest = static_cast<double>(std::max<std::int64_t>(0, stretch.now_ns - until));
  const double passed = static_cast<double>(last_) - due_from_ - given_ - known;
  const double due = passed + rate * rest;
  const double usual =
      stretch.by_time * std::clamp(ids_ / timed_, 1 / kMostApart, kMostApart) * seen;
  const double expected = rate * stretch.time_ns;
  double ids = 0;  // that they stand for
  if (stretch.last) {
    ids = std::min(due, usual + kMostCorrected * std::max(usual, ids_ / lessons_));
  } else {
    ids = usual *
          std::clamp(1 + kMadeUp * (due - expected) / expected, 1 / kMostCorrected, kMostCorrected);
    // Few launches in few windows say little, replays of graphs, mostly: what has passed is theirs.
    const double early = std::min(1.0, kFewWindows / lessons_);
    const double few = early * early / (1 + launches_ / kFewLaunches);
    ids += few * (passed - ids);
  }
  Weight weight;
  weight.value = std::max(1.0, ids / seen);
  weight.counted = true;
  weight.launches = weight.value * launches_;
  given_ += known + weight.value * seen;
  before_ = latest_;
  before_ns_ = stretch.closed_ns;
  open_ns_ = 0;
  return weight;
}

}  // namespace purlin::profile::capture
