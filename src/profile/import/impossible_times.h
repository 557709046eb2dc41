// SPDX-License-Identifier: Apache-2.0
// Times that cannot be: the clock of a record is not that of the recording, or a kernel seems to
// run while later ones of its in-order stream begin and end. Importers keep such times out of
// their sums and say so. Thread-safety: values and pure functions.
#pragma once

#include "model/profile/profile.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace purlin::profile {

// The middle one of the starts; 0 without any. Reorders them.
std::int64_t middle_of(std::vector<std::int64_t>& starts);
// No recording lasts so long that both of its ends are further than this from its middle.
constexpr std::int64_t kFarthestNs = std::int64_t{86'400} * 1'000'000'000;
inline bool is_far(std::int64_t start_ns, std::int64_t duration_ns, std::int64_t middle_ns) {
  return start_ns < middle_ns - kFarthestNs || start_ns > middle_ns + kFarthestNs ||
         duration_ns > kFarthestNs;
}

// Work of in-order streams, given from the last to the first. Memory: a few numbers per stream.
class InOrderStreams {
 public:
  // The duration that the work can have. What seems to run on while at least two later ones of its
  // stream begin and end gets the time up to the next start. Neighbours may overlap a little:
  // clocks are rounded, and dependent launches begin early.
  std::int64_t possible_duration(std::uint64_t stream, std::int64_t start_ns,
                                 std::int64_t duration_ns);

 private:
  struct Later {  // the next of a stream, and the end of the one behind it
    std::int64_t start_ns = 0, end_ns = 0, second_end_ns = 0;
    int count = 0;
  };
  std::unordered_map<std::uint64_t, Later> streams_;
};

// For a profile whose streams are in order and whose timeline is sorted: leaves out activities that
// are far from the recording or there twice, cuts overlong kernels, and adds all to the notes.
// Nodes of graphs may run side by side and stay. Sums change with the timeline, where it holds all
// of a row.
void keep_possible_times(Profile& profile);

}  // namespace purlin::profile
