// SPDX-License-Identifier: Apache-2.0
// The backlog of the made-up week: the tasks that its kernels give, of which a made-up pool has
// tuned some, tunes two and failed at one. Failure: the store's, and the file's of the leases.
#pragma once

#include "backlog/leases.h"
#include "base/status.h"
#include "store/store.h"

#include <cstdint>

namespace purlin::fleet {

Status fill_made_backlog(store::Reader& reader, backlog::Leases& leases, std::int64_t now_ns);

}  // namespace purlin::fleet
