// SPDX-License-Identifier: Apache-2.0
// Packets for Perfetto's page about GPU compute: render stages with what was launched, and the
// counters of their rows (docs/formats/export.md). A separate sequence of packets, because interned
// data belongs to one. The profile outlives it. One owner, one thread.
#pragma once

#include "model/profile/profile.h"
#include "profile/export/protobuf.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace purlin::profile {

class PerfettoGpu {
 public:
  explicit PerfettoGpu(const Profile& profile);
  // Before all others: what the events refer to, and the counters of each GPU.
  std::vector<Message> begin(std::uint64_t time) const;
  // Of a kernel; none beyond the first launches of its row. Times as in the trace.
  std::vector<Message> launch(const Activity& activity, const std::string& name,
                              std::uint64_t begin, std::uint64_t end);

 private:
  std::uint64_t id_on(std::uint64_t device, std::uint32_t counter) const;
  Message counters(const Activity& activity, std::uint64_t time, bool of_end,
                   std::uint64_t duration) const;
  Message stage(const Activity& activity, const std::string& name, std::uint64_t begin,
                std::uint64_t duration);

  const Profile& profile_;
  std::map<std::string, std::uint32_t> counter_ids_;
  std::map<std::uint64_t, std::uint64_t> queues_;  // device and stream -> iid
  std::vector<std::uint32_t> launches_;            // written, by row
  std::uint64_t events_ = 0;
};

}  // namespace purlin::profile
