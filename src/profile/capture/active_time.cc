// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/active_time.h"

#include <utility>

namespace purlin::profile::capture {

void ActiveTime::add(std::int64_t slot) {
  if (!slots_.insert(slot).second) return;
  ++fresh_;
  if (slots_.size() > kMost) slots_.erase(slots_.begin());
}

std::int64_t ActiveTime::take() { return std::exchange(fresh_, 0) * kSlotNs; }

}  // namespace purlin::profile::capture
