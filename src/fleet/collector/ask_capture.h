// SPDX-License-Identifier: Apache-2.0
// Asks a captured process of any user to record nothing, or a window, as that user: a capture
// answers its own user alone. Only the calling thread changes its user, for the time of the call.
// Failure: kNotFound (it does not listen), kUnavailable (this process may not act as that user),
// kFailed (it refuses, or does not answer).
#pragma once

#include "base/status.h"
#include "profile/control_text.h"

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace purlin::fleet {

Status ask_capture(const std::string& spool, std::int64_t pid, uid_t owner,
                   const profile::ControlRequest& request);

}  // namespace purlin::fleet
