// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/stream_time.h"

#include <algorithm>
#include <limits>

namespace purlin::profile::capture {
namespace {

// A run is short against windows, so that all of its work is of one window.
constexpr std::int64_t kLongestRunNs = 1'000'000;

}  // namespace

bool StreamTime::Run::take(const DeviceBusy::Work& work) {
  if (work.start_ns <= 0 || work.end_ns < work.start_ns) return true;  // not known
  if (pieces == 0) {
    stream = work.stream;
    start_ns = end_ns = work.start_ns;
  } else if (!(stream == work.stream) || work.start_ns < start_ns ||
             work.start_ns - start_ns > kLongestRunNs) {
    return false;
  }
  busy_ns += std::max<std::int64_t>(0, work.end_ns - std::max(end_ns, work.start_ns));
  end_ns = std::max(end_ns, work.end_ns);
  pieces += 1;
  return true;
}

StreamTime::OfStream* StreamTime::find(const DeviceBusy::Stream& stream) {
  if (last_found_ < count_ && streams_[last_found_].stream == stream) return &streams_[last_found_];
  for (std::size_t i = 0; i < count_; ++i)
    if (streams_[i].stream == stream) return &streams_[last_found_ = i];
  if (count_ == kMaxStreams) return nullptr;
  streams_[count_].stream = stream;
  return &streams_[last_found_ = count_++];
}

void StreamTime::add(const Run& run, double weight) {
  OfStream* of = run.pieces > 0 ? find(run.stream) : nullptr;
  if (of == nullptr) return;
  if (of->first_ns == 0 || run.start_ns < of->first_ns) of->first_ns = run.start_ns;
  const std::int64_t room_ns = run.end_ns - std::max(run.start_ns, of->until_ns);
  const auto busy = static_cast<double>(std::clamp<std::int64_t>(room_ns, 0, run.busy_ns));
  of->until_ns = std::max(of->until_ns, run.end_ns);
  if (weight > 0) {
    of->represented_ns += weight * busy;
  } else {
    of->unknown_ns += busy;
    of->pieces += run.pieces;
  }
}

double StreamTime::most(std::int64_t now_ns, bool last) const {
  double most = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count_; ++i) {
    const OfStream& of = streams_[i];
    if (of.unknown_ns <= 0) continue;
    const double queued = last ? 0 : DeviceBusy::kQueued * of.unknown_ns / of.pieces;
    const double room = static_cast<double>(now_ns - of.first_ns) + queued - of.represented_ns;
    most = std::min(most, room / of.unknown_ns);
  }
  return std::max(1.0, most);
}

void StreamTime::settle(double weight) {
  for (std::size_t i = 0; i < count_; ++i) {
    streams_[i].represented_ns += weight * streams_[i].unknown_ns;
    streams_[i].unknown_ns = streams_[i].pieces = 0;
  }
}

double StreamTime::beyond_ns(std::int64_t now_ns) const {
  double beyond = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const OfStream& of = streams_[i];
    const std::int64_t until_ns = std::max(now_ns, of.until_ns);
    beyond += std::max(0.0, of.represented_ns - static_cast<double>(until_ns - of.first_ns));
  }
  return beyond;
}

}  // namespace purlin::profile::capture
