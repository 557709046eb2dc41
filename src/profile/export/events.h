// SPDX-License-Identifier: Apache-2.0
// What the exporters share: the walk over a timeline's events in order, the track of each, and the
// buffer before the sink. One owner, one thread.
#pragma once

#include "profile/export/export.h"

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace purlin::profile {

// Collects text and hands it on in pieces. The first failure is kept and ends the writing.
class ExportBuffer {
 public:
  explicit ExportBuffer(const ExportSink& sink) : sink_(sink) {}
  std::string& text() { return text_; }
  // After each event; false: the sink failed, stop.
  bool flush_if_full() { return text_.size() < kPiece || flush(); }
  bool flush();
  const Status& status() const { return status_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  const ExportSink& sink_;
  std::string text_;
  Status status_;
};

// A track of a viewer: a stream or a host thread, or a further lane of one.
struct Track {
  bool on_device = false;
  std::uint32_t owner = 0;    // device, or index of the process
  std::uint32_t process = 0;  // whose stream it is
  std::uint32_t id = 0;       // stream or thread
  int lane = 0;
};

// Gives events to lanes so that those of a lane nest or follow one another. Events of one stream or
// thread must come in order of start, the longer of two that start together first.
class Tracks {
 public:
  using Ended = std::function<void(std::size_t track, std::int64_t end)>;
  // `ended` hears of each event's end once nothing can come before it any more.
  explicit Tracks(Ended ended = {}) : ended_(std::move(ended)) {}
  std::size_t place(const Track& stream_or_thread, std::int64_t begin, std::int64_t end);
  void finish();
  const std::vector<Track>& all() const { return tracks_; }

 private:
  using Key = std::tuple<bool, std::uint32_t, std::uint32_t, std::uint32_t>;
  void end_until(std::size_t track, std::int64_t at);
  std::vector<Track> tracks_;
  std::vector<std::vector<std::int64_t>> open_;  // ends of what is under way, outermost first
  std::map<Key, std::vector<std::size_t>> lanes_;
  Ended ended_;
};

struct Event {
  const Activity* activity = nullptr;  // one of these
  const Call* call = nullptr;
  const Op* op = nullptr;
  const Range* range = nullptr;
  std::int64_t begin = 0, end = 0;
  std::uint32_t index = 0;  // in its vector
  Track where;              // lane not yet decided
};
// Host events in order of start, then device by device. Stops when `each` returns false.
void for_each_event(const Timeline& timeline, const std::function<bool(const Event&)>& each);

std::int64_t earliest(const Timeline& timeline);  // begin of its first event; 0 without any
// Which calls launched something that is in the timeline.
std::vector<bool> linked_calls(const Timeline& timeline);
Status require_timeline(const Profile& profile);
// "NVIDIA H200 (0)", "python3 (1469)".
std::string device_title(const Profile& profile, std::uint32_t device);
std::string process_title(const Profile& profile, std::uint32_t process);
std::string track_title(const Track& track, bool shared_device);
// For each device whether several processes ran on it.
std::map<std::uint32_t, bool> shared_devices(const Timeline& timeline);

}  // namespace purlin::profile
