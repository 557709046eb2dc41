// SPDX-License-Identifier: Apache-2.0
// Streams: a timeline's activities grouped by (device, process, stream), each group in order of
// start. Four bytes per activity. Views point into the Streams they came from.
#pragma once

#include "model/profile/profile.h"

#include <cstdint>
#include <span>
#include <vector>

namespace purlin::analyze {

struct StreamWork {
  int device = 0;
  std::uint32_t process = 0, stream = 0;
  std::span<const std::uint32_t> activities;  // indices into Timeline::activities
};

class Streams {
 public:
  explicit Streams(const Timeline& timeline);
  const std::vector<StreamWork>& all() const { return streams_; }  // by device, then first seen

 private:
  std::vector<std::uint32_t> order_;
  std::vector<StreamWork> streams_;
};

}  // namespace purlin::analyze
