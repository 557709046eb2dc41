// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/launch_counter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace purlin::profile::capture {
namespace {

// A record with a larger weight belongs to a window, and was reported after the window was weighed.
constexpr double kAlone = 1.01;
// Less than this of what time expects between two windows: ids stand still.
constexpr double kStandsStill = 0.02;
// More than any number of threads launches.
constexpr double kMaxPerNs = 0.05;
// The maximum ratio between the weight by IDs and the weight by time: of all windows, and of one.
constexpr double kMaxApart = 4, kMaxCorrected = 2;
// Of what was given out too much or too little, what the next window makes up for.
constexpr double kMadeUp = 0.5;
// Of a period's launches, what is held back: at the end more can be given out, not taken back.
constexpr double kHeldBack = 0.5;
constexpr int kMemory = 64;  // windows
constexpr double kFewLaunches = 4, kFewWindows = 4;
// Where every window has missing records: so many IDs that no record has, and such a part of what
// time expects between windows, tell that IDs move.
constexpr double kMinBetween = 8, kPartBetween = 0.25;

}  // namespace

std::int64_t LaunchCounter::unwrap(std::uint32_t id) const {
  if (!any_) return id;
  return last_ + static_cast<std::int32_t>(id - static_cast<std::uint32_t>(last_));
}

void LaunchCounter::start(std::int64_t now_ns, bool stood_still) {
  if (running_) return;
  running_ = true;
  finding_ = !stood_still;
  given_ = known_ = launches_ = before_value_ = held_back_ = left_out_ = beyond_ = 0;
  now_ns_ = 0;
  settled_ = latest_ = last_;
  due_from_ = static_cast<double>(last_);
  begin_lesson(now_ns);
}

void LaunchCounter::begin_lesson(std::int64_t closed_ns) {
  before_ = latest_;
  before_ns_ = closed_ns;
  incomplete_[0] = incomplete_[1] = {};
  open_ns_ = weighed_ = alone_ = alone_ns_ = 0;
}

void LaunchCounter::see(std::uint32_t id, double weight, std::int64_t start_ns) {
  const std::int64_t at = unwrap(id);
  if (!any_) {
    finding_ = finding_ || running_;
    last_ = at;
    settled_ = before_ = at - 1;
  }
  any_ = true;
  if (running_ && at <= settled_) {
    if (weight > 0) return;
    back_at_ = backwards_ > 0 ? std::max(back_at_, at) : at;
    backwards_ += 1;
    return;
  }
  backwards_ = 0;
  last_ = std::max(last_, at);
  if (!running_ || !seen_.insert(at)) return;
  if (weight > 0) {
    known_ += weight;
    ++(weight > kAlone ? weighed_ : alone_);
    known_latest_ = std::max(known_latest_, at);
  } else {
    if (launches_ == 0 || at < first_) first_ = at;
    if (launches_ == 0 || at > latest_) latest_ = at;
    launches_ += 1;
    if (listed_.size() < kMaxListed) listed_.emplace_back(at, start_ns);
  }
}

void LaunchCounter::see_now(std::uint32_t id, std::int64_t now_ns) {
  const std::int64_t at = unwrap(id);
  if (!running_ || at < last_) return;
  last_ = at;
  now_ns_ = now_ns;
}

LaunchCounter::Weight LaunchCounter::settle(const Stretch& stretch) {
  Weight weight = {stretch.by_time, false, 0};
  left_out_ = 0;
  if (running_) {
    alone_ns_ += stretch.alone_ns;
    learn_ids_per_launch(stretch);
    const bool known = ids_per_launch_.known();
    const bool anew = launches_ == 0 && backwards_ >= IdsPerLaunch::kMinLaunches;
    if (!stretch.complete || stretch.time_ns <= 0 || (launches_ == 0 && !anew)) {
      weight = for_now(stretch);
    } else {
      weight = known && believed(stretch) ? by_ids(stretch) : by_time(stretch);
    }
    if (launches_ > 0) before_value_ = weight.value;
    if (stretch.last && known) left_out_ = owed(stretch) / ids_per_launch_.value();
    const double passed = static_cast<double>(last_) - due_from_;
    if (stretch.last && moves_ && !finding_ && now_ns_ != 0 && given_ > passed)
      beyond_ = 1 - passed / given_;
  }
  launches_ = known_ = 0;
  known_latest_ = -1;
  listed_.clear();
  if (!stretch.complete) return weight;
  seen_.clear();
  settled_ = last_;
  incomplete_[0] = incomplete_[1] = {};
  return weight;
}

// At the end, of ids: what was held back and what came after the last window. Where nothing says
// how far they went since, no more than the former, of what there usually were.
double LaunchCounter::owed(const Stretch& stretch) const {
  if (finding_) return 0;
  const double passed = static_cast<double>(last_) - due_from_ - given_;
  if (now_ns_ != 0) return std::max(0.0, passed);
  const double rate = span_ns_ > 0 ? ids_ / span_ns_ : 0;
  const auto since =
      static_cast<double>(std::max<std::int64_t>(0, stretch.now_ns - stretch.closed_ns));
  return std::clamp(passed + rate * since, 0.0, held_back_);
}

// More than one where launches are captured, which have an id and no record, or where calls have
// ids. Only windows that were seen whole tell, and by themselves: what comes late of windows before
// them has earlier ids.
void LaunchCounter::learn_ids_per_launch(const Stretch& stretch) {
  if (stretch.calls && !calls_) {
    calls_ = true;
    given_ /= ids_per_launch_.learned() ? ids_per_launch_.value() : 1;
    ids_per_launch_.forget();
    ids_ = timed_ = span_ns_ = 0;
    windows_learnt_ = 0;
  }
  if (!stretch.complete || stretch.time_ns <= 0 || seen_.full()) return;
  if (launches_ < IdsPerLaunch::kMinLaunches || first_ <= known_latest_) return;
  if (static_cast<double>(listed_.size()) != launches_) return;
  const bool first = !ids_per_launch_.learned();
  const int windows = std::max(1, stretch.windows);
  ids_per_launch_.learn(std::move(listed_), stretch.time_ns / stretch.by_time / windows, windows);
  if (first) given_ *= ids_per_launch_.value();  // until now it was launches
}

double LaunchCounter::usual() const {
  return timed_ > 0 ? std::clamp(ids_ / timed_, 1 / kMaxApart, kMaxApart) : 1;
}

// Whether ids tell what lay between the windows before and these; learns from it.
bool LaunchCounter::believed(const Stretch& stretch) {
  if (seen_.full() || launches_ == 0 || finding_) return false;
  const auto span = static_cast<double>(stretch.closed_ns - before_ns_) - alone_ns_;
  const double open = open_ns_ + stretch.time_ns / stretch.by_time;
  const double seen = (launches_ + weighed_) * ids_per_launch_.value();
  const auto ids = static_cast<double>(latest_ - before_) - alone_ * ids_per_launch_.value();
  if (span <= 0 || open <= 0 || ids > span * kMaxPerNs) return false;
  const double timed = seen * span / open;
  moves_ = moves_ || ids - seen > kStandsStill * (timed - seen);
  if (!moves_) return false;
  // What ran long after it was launched may seem to belong to the window that comes next.
  if (ids < seen) return span_ns_ > 0;
  if (++windows_learnt_ > kMemory) {
    ids_ /= 2, timed_ /= 2, span_ns_ /= 2;
    windows_learnt_ /= 2;
  }
  ids_ += ids;
  timed_ += timed;
  span_ns_ += span;
  return true;
}

// Where every window has missing records. They are there two windows later, mostly: what is still
// missing then was launched between windows.
bool LaunchCounter::moved_between(const Stretch& stretch) {
  if (finding_ || seen_.full()) return false;
  const auto span = static_cast<double>(stretch.closed_ns - before_ns_) - alone_ns_;
  const Incomplete then = std::exchange(incomplete_[1], incomplete_[0]);
  incomplete_[0] = {last_, open_ns_ > 0 ? span / open_ns_ : 0};
  if (then.times_open <= 1 || then.last <= settled_) return false;
  const double seen = seen_.count(settled_, then.last);
  const double between = static_cast<double>(then.last - settled_) - seen;
  return between >= kMinBetween && between > kPartBetween * seen * (then.times_open - 1);
}

// Weighs a window with missing records, or with none, by the ratio of earlier windows, and at most
// by the IDs that have passed: launches without a record have one, too. A window that was hardly
// open represents no time: its launches represent only themselves.
LaunchCounter::Weight LaunchCounter::for_now(const Stretch& stretch) {
  const bool alone = stretch.time_ns <= 0;
  double value = alone ? 1 : std::max(1.0, stretch.by_time * usual());
  (alone ? alone_ : weighed_) += launches_;
  if (stretch.by_time > 0) open_ns_ += stretch.time_ns / stretch.by_time;
  if (!alone && launches_ > 0) {
    moves_ = moves_ || moved_between(stretch);
    // Missing records of the window have ids between those of the others.
    const double of_window =
        std::max(launches_ * ids_per_launch_.value(), static_cast<double>(latest_ - first_ + 1));
    if (moves_ && !finding_ && ids_per_launch_.known())
      value = std::clamp(passed() / of_window, 1.0, value);
  }
  given_ += (known_ + value * launches_) * ids_per_launch_.value();
  return {value, moves_, value * launches_};
}

// IDs that no weight represents so far.
double LaunchCounter::passed() const {
  return static_cast<double>(last_) - due_from_ - given_ - known_ * ids_per_launch_.value();
}

// Starts again, from the launches that these windows represent.
LaunchCounter::Weight LaunchCounter::by_time(const Stretch& stretch) {
  if (launches_ == 0) last_ = back_at_;
  backwards_ = 0;
  // A settlement may be late. The time since the window counts only up to the time that the windows
  // represent.
  const double rest =
      std::min(stretch.time_ns, static_cast<double>(stretch.now_ns - stretch.closed_ns));
  const double timed = launches_ * ids_per_launch_.value() * stretch.by_time;
  finding_ = false;
  latest_ = last_;
  begin_lesson(stretch.closed_ns);
  due_from_ = static_cast<double>(last_);
  held_back_ = 0;
  given_ = stretch.time_ns > 0 ? timed * rest / stretch.time_ns : 0;
  return {stretch.by_time, false, 0};
}

LaunchCounter::Weight LaunchCounter::by_ids(const Stretch& stretch) {
  const double rate = ids_ / span_ns_;
  const double seen = launches_ * ids_per_launch_.value(), known = known_ * ids_per_launch_.value();
  const std::int64_t until = std::max(stretch.closed_ns, now_ns_);
  const auto rest = static_cast<double>(std::max<std::int64_t>(0, stretch.now_ns - until));
  const double passed = this->passed();
  const double due = passed + rate * rest;
  const double usual = stretch.by_time * this->usual() * seen;
  const double expected = rate * stretch.time_ns;
  double ids = 0;      // that they represent
  if (stretch.last) {  // hardly more than the window before: a short one would outweigh it
    ids = before_value_ > 0 ? std::min(due, before_value_ * seen * (1 + kHeldBack)) : due;
  } else {
    held_back_ = kHeldBack * expected;
    ids = usual * std::clamp(1 + kMadeUp * (due - held_back_ - expected) / expected,
                             1 / kMaxCorrected, kMaxCorrected);
    // Few launches in few windows say little, replays of graphs, mostly: what has passed is theirs.
    const double early = std::min(1.0, kFewWindows / windows_learnt_);
    const double few = early * early / (1 + launches_ / kFewLaunches);
    ids += few * (passed - ids);
    if (due < 0) ids = 0;  // windows before represent these as well
  }
  Weight weight;
  weight.value = std::max(1.0, ids / seen);
  weight.counted = true;
  weight.launches = weight.value * launches_;
  given_ += known + weight.value * seen;
  begin_lesson(stretch.closed_ns);
  return weight;
}

}  // namespace purlin::profile::capture
