// SPDX-License-Identifier: Apache-2.0
// Asks the hook in a running PyTorch process of the same user for a trace (`purlin capture window
// --torch`). The request is a file in the process's spool, the answer its note. Bounded in time.
#pragma once

#include "profile/torch/note.h"

namespace purlin::profile {

// The note of the trace, which is in the profile when the run has ended. kNotFound where the
// process does not run under `purlin profile` or has no hook; kInvalid with the reason why there is
// no trace.
Result<TorchNote> request_torch_trace(std::int64_t pid, double timeout_s = 60);

}  // namespace purlin::profile
