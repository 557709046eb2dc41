// SPDX-License-Identifier: Apache-2.0
// HostEvents: a recorder's data of the host: the ops of launches, and, for a timeline, the calls
// that launched them and the ranges around.
//
// Owned by a Recorder, used with its lock held. Texts are the recorder's, by their ids. The number
// of ops is bounded by correlation.h, that of events by the recorder.
#pragma once

#include "model/profile/timeline.h"
#include "profile/format/events.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture {

class HostEvents {
 public:
  struct OpIds {  // texts; 0 = none, else id + 1, as in wire::KernelDefinition
    std::uint32_t op = 0, shape = 0, dtype = 0;
  };

  // Numbers from 1; 0 is "no op".
  std::uint32_t add_op(const OpIds& op);
  OpIds op(std::uint32_t number) const { return ops_[number < ops_.size() ? number : 0]; }

  std::uint32_t name(std::uint32_t text);    // of the timeline, by a text's id
  std::uint32_t add_call(const Call& call);  // its number in the file
  void add_range(const Range& range) { ranges_.add(range); }

  std::size_t size() const { return calls_.size() + ranges_.size(); }
  void append(std::string& out);  // the chunks since the last time
  void begin_file() { next_call_ = 0; }

 private:
  std::vector<OpIds> ops_ = {{}};
  std::unordered_map<std::uint32_t, std::uint32_t> names_;
  std::vector<std::uint32_t> new_names_;
  wire::CallEncoder calls_;
  wire::RangeEncoder ranges_;
  std::uint32_t next_call_ = 0;
};

}  // namespace purlin::profile::capture
