// SPDX-License-Identifier: Apache-2.0
// What captured names say: a capture library writes the names of ranges around a launch as the
// program gave them (docs/formats/profile.md, "Ops as captured"), since it does as little as it can
// inside the program. Here they become op, problem shape and dtype of rows, and ops of the
// timeline.
//
// Pure over the profile of one process, fresh from the spool; names are foreign text.
#pragma once

#include "model/profile/profile.h"

namespace purlin::profile {

void name_ops(Profile& profile);

}  // namespace purlin::profile
