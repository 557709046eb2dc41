// SPDX-License-Identifier: Apache-2.0
// Asks a captured process of the same user to start, stop or widen its capture, through the control
// socket in its spool (session/control.h). The process is found by its number; its spool is read
// from its environment in /proc. One request, one answer, bounded in time.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "profile/control_text.h"

#include <string>

namespace purlin::profile {

// The spool of a process that runs under `purlin profile`. kNotFound otherwise.
Result<std::string> spool_of(std::int64_t pid);
// The process's answer. kNotFound where it does not run, runs without capture or has not used CUDA.
Result<Json> ask_capture(std::int64_t pid, const ControlRequest& request, double timeout_s = 5);

// The same of a capture whose spool is known: `pid` is the number that the process sees itself, in
// a container another one than outside.
Result<Json> ask_capture_in(const std::string& spool, std::int64_t pid,
                            const ControlRequest& request, double timeout_s = 5);

}  // namespace purlin::profile
