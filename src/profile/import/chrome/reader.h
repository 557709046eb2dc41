// SPDX-License-Identifier: Apache-2.0
// TraceReader: a Chrome trace as a stream of events, from an Input, in one window of memory.
//
// Takes the object form, with "traceEvents" at any place in it, and the bare array. The other
// members of the object are kept as Json where they are small. Where an event makes no sense,
// reading goes on at the next that looks like one; where the text ends or nothing follows, next()
// ends. damage() says where it first went wrong. The window grows for large events up to a bound; a
// larger one is stepped over and counted. Thread-safety: none; one owner.
#pragma once

#include "base/json/json.h"
#include "profile/import/chrome/event.h"
#include "profile/import/input.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::profile {

class TraceReader {
 public:
  static constexpr std::size_t kMaxEventBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxMemberBytes = std::size_t{4} << 20;

  explicit TraceReader(Input input);

  // The next event, valid until the next call. False at the end, and at damage. With `flows`,
  // flow events are looked into as well.
  bool next(ChromeEvent& event, bool flows);

  const Json& members() const { return members_; }  // an object; complete once next() said false
  // Names of members that are not valid JSON, "" without any.
  const std::string& unreadable_members() const { return unreadable_members_; }
  bool found_events() const { return found_events_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t oversized() const { return oversized_; }
  // Ok, or what was first wrong, at which byte of the decoded text.
  const Status& damage() const { return damage_; }
  std::uint64_t damaged_places() const { return damaged_places_; }
  bool reached_end() const { return reached_end_; }  // all text was read, in spite of damage
  const Input& input() const { return input_; }
  // Of the decoded text.
  std::uint64_t offset() const { return offset_of(at_); }

 private:
  enum class State { kStart, kMembers, kEvents, kDone };

  std::uint64_t offset_of(std::size_t at) const { return input_.offset() - (end_ - at); }
  const char* p() const { return window_.data() + at_; }
  const char* end() const { return window_.data() + end_; }
  bool refill();      // more text behind what is left of the window; false at the end
  bool skip_space();  // to the next byte of meaning; false at the end
  bool step_over_value();
  bool read_key(std::string& key);
  void start();
  void end_of_document();
  void member();
  bool event(ChromeEvent& event, bool flows);
  bool find_next_event();
  void note_damage(const char* what, std::uint64_t at);
  bool damaged(const char* what, std::uint64_t at);
  bool cut(const char* where, std::uint64_t began);

  Input input_;
  std::vector<char> window_;
  std::size_t at_ = 0, end_ = 0;
  State state_ = State::kStart;
  bool bare_ = false, found_events_ = false;
  std::uint64_t events_ = 0, oversized_ = 0, list_began_ = 0, damaged_places_ = 0;
  bool reached_end_ = false, input_failed_ = false;
  Json members_ = Json::object();
  std::string unreadable_members_;
  Status damage_;
};

}  // namespace purlin::profile
