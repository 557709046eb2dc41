// SPDX-License-Identifier: Apache-2.0
// What a Chrome trace says around its events: devices, versions, ranks, times, the recorder's own
// warnings. Pure functions over the members of the outer object; what is absent stays unknown.
#pragma once

#include "base/json/json.h"
#include "profile/import/chrome/records.h"

#include <cstdint>
#include <vector>

namespace purlin::profile {

// Added to all times: Kineto writes them relative to "baseTimeNanoseconds".
std::int64_t base_time_ns(const Json& members);
// Fills devices and ranks; the index in Environment::devices of each of Records::devices.
std::vector<std::uint16_t> read_environment(const Json& members, Records& records,
                                            Profile& profile);
// recorded_at and the processes' times, where the clock is the wall's.
void set_times(std::int64_t begin_ns, std::int64_t end_ns, Profile& profile, Records& records);
void note_warnings(const Json& members, Profile& profile);

}  // namespace purlin::profile
