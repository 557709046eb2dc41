// SPDX-License-Identifier: Apache-2.0
// Who encloses whom on the host: parents of ops, and the ops around calls, from times alone.
// Pure function; nothing can fail.
#pragma once

#include "model/profile/timeline.h"

namespace purlin::profile {

// Replaces Op::parent and Call::op. In any order; ops of one thread nest or follow one another.
void link_host(Timeline& timeline);

}  // namespace purlin::profile
