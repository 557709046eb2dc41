// SPDX-License-Identifier: Apache-2.0
// The bytes of a timeline's events: activities, calls, ops and ranges, one chunk type each.
// docs/formats/profile.md, "Events", is the reference.
//
// The repeated fields of an event (row, stream, thread, name, …) are its identity. The identity is
// written in full at its first use in a chunk, later as a number of one or two bytes. Times are
// relative to the previous event, durations to the identity's last. Every chunk stands alone, so
// that chunks can be decoded in any order and at the same time; only an op's parent is relative to
// the op's index. Indices are not checked here. Like wire.h: standard library only, compiled into
// the capture libraries; a decoder never reads past its bytes. Thread-safety: none; values.
#pragma once

#include "model/profile/timeline.h"
#include "profile/format/wire.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::wire {

constexpr std::size_t kMaxIdentity = 6;
using Identity = std::array<std::uint32_t, kMaxIdentity>;  // what a kind does not use is 0

// The least bytes of an event: identity, start, duration.
constexpr std::size_t kMinEventBytes = 3;

// base time and count, with which the payload of each event chunk begins (LAUNCHES: after the
// process).
struct EventsHead {
  std::int64_t base_ns = 0;
  std::size_t count = 0;
};

class EventsEncoder {
 public:
  std::size_t count() const { return count_; }
  std::size_t size() const { return body_.size(); }
  std::string finish();  // the chunk's payload; then starts again

 protected:
  struct Known {
    std::uint32_t number = 0;
    std::int64_t duration_ns = 0;
    std::uint64_t bytes = 0;
  };
  // Writes identity, start and duration; what else an event has follows in body_.
  Known& begin(const Identity& identity, std::size_t width, std::int64_t start_ns,
               std::int64_t since_ns, std::int64_t duration_ns);

  Encoder body_;
  std::size_t count_ = 0;
  std::int64_t base_ns_ = 0, previous_ns_ = 0;
  std::uint32_t link_ = 0;  // the last call or op that was pointed at

 private:
  struct Hash {
    std::size_t operator()(const Identity& identity) const;
  };
  std::unordered_map<Identity, Known, Hash> known_;
};

class EventsDecoder {
 public:
  std::size_t count() const { return head_.count; }
  std::int64_t base_ns() const { return head_.base_ns; }
  bool failed() const { return in_.failed(); }

 protected:
  struct Known {
    Identity identity = {};
    std::int64_t duration_ns = 0;
    std::uint64_t bytes = 0;
  };
  EventsDecoder(std::string_view payload, std::size_t width);
  // Reads identity, start and duration; nullptr where the bytes make no sense.
  Known* begin(std::int64_t& start_ns);

  Decoder in_;
  std::size_t width_;
  EventsHead head_;
  std::int64_t previous_ns_ = 0;
  std::uint32_t link_ = 0;

 private:
  std::vector<Known> known_;  // no more than events decoded
};

class ActivityEncoder : public EventsEncoder {
 public:
  void add(const Activity& activity);
};

class ActivityDecoder : public EventsDecoder {
 public:
  explicit ActivityDecoder(std::string_view payload) : EventsDecoder(payload, 6) {}
  bool next(Activity& activity);  // false: failed
};

class CallEncoder : public EventsEncoder {
 public:
  void add(const Call& call);
};

class CallDecoder : public EventsDecoder {
 public:
  explicit CallDecoder(std::string_view payload) : EventsDecoder(payload, 4) {}
  bool next(Call& call);
};

class OpEncoder : public EventsEncoder {
 public:
  void add(const Op& op);

 private:
  std::uint32_t index_ = 0;  // of the next op, over all chunks
};

class OpDecoder : public EventsDecoder {
 public:
  explicit OpDecoder(std::string_view payload) : EventsDecoder(payload, 5) {}
  bool next(Op& op, std::uint32_t index);  // its own, among all ops of the file
};

class RangeEncoder : public EventsEncoder {
 public:
  void add(const Range& range);
};

class RangeDecoder : public EventsDecoder {
 public:
  explicit RangeDecoder(std::string_view payload) : EventsDecoder(payload, 4) {}
  bool next(Range& range);
};

}  // namespace purlin::profile::wire
