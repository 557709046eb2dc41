// SPDX-License-Identifier: Apache-2.0
// What both engines decide of a batch before they store it. Pure functions.
#pragma once

#include "store/store.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace purlin::store {

// The days that have rows or coverage of a batch, and the day that counts it.
std::set<std::int64_t> days_of(const Batch& batch);
// All times moved by the skew in whole hours, so that rows stay rows of an hour.
void move_times(Batch& batch);
// The 16 bytes by which a store knows a batch, of its SHA-256 in hexadecimal; "" where it is none.
std::string short_hash(std::string_view sha256_hex);

struct Admission {
  Status status;  // kInvalid: its hash is none
  std::set<std::int64_t> days;
  bool quarantined = false, too_old = false;
  bool counts() const { return status.is_ok() && !quarantined && !too_old; }
};
// `horizon_ns`: days before it have no hours any more.
Admission admit(const HashedBatch& batch, std::int64_t max_skew_ns, std::int64_t horizon_ns);

}  // namespace purlin::store
