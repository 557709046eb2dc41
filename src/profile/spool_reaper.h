// SPDX-License-Identifier: Apache-2.0
// Folders that runs of `purlin profile` left behind because they were killed.
//
// A run holds a lock on its folder. A folder without a lock belongs to no run: it stays for a day,
// so that the user can still read it (docs/guide/profiling.md), and then a later run removes it.
// Thread-safety: one thread. Failure: none; what cannot be removed stays.
#pragma once

#include "base/os/descriptor.h"

#include <cstdint>
#include <string>

namespace purlin::profile {

// Held while the run lasts; not inherited by its command.
class SpoolLock {
 public:
  explicit SpoolLock(const std::string& folder);
  bool held() const { return held_; }

 private:
  Descriptor folder_;
  bool held_ = false;
};

// Those of this user next to `spool`; how many went.
int reap_spools(const std::string& spool, std::int64_t now_ns);

}  // namespace purlin::profile
