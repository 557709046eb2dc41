// SPDX-License-Identifier: Apache-2.0
// Exposure: what part of the kernels' time delays what comes next. A kernel that got shorter saves
// nothing where the host launches the next work only after it ended: the device would idle longer
// instead. The part of a kernel after the moment its successor was queued is exposed. A
// kernel that the host waits for is exposed as a whole. One pass over the timeline; streams are
// taken one by one.
#pragma once

#include "model/profile/profile.h"

#include <cstddef>
#include <vector>

namespace purlin::analyze {

struct Exposure {
  // false: no timeline, or no call is known of most kernels; all is then taken as exposed.
  bool known = false;
  std::vector<double> share;  // of each row of Profile::kernels, of its time; 1 where not known
  double all = 1;             // of all kernels
  // How long the hosts stood still for their devices, in all: in calls that wait, in launches into
  // a full queue, and after their last call. A host that never waits sets the pace,
  // however long the kernels take.
  double waited_ns = 0;
};
Exposure measure_exposure(const Profile& profile);

}  // namespace purlin::analyze
