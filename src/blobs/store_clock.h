// SPDX-License-Identifier: Apache-2.0
// Compares the clock of a store, from its answers, with this machine's clock. So one clock gives
// the age of an object, even if the other clock is wrong. Pure functions. [MT]
#pragma once

#include "blobs/blob_store.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace purlin::blobs {

// "Mon, 23 Nov 2026 23:07:09 GMT" (RFC 9110, 5.6.7: the form that is sent; the two obsolete ones
// are not read), in nanoseconds since 1970; nullopt for other texts.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// Corrects the times of objects by the difference of the two clocks. The objects were listed at
// `store_now_ns` of the store's clock, which was `local_now_ns` of this machine's clock. 0 means
// unknown and stays 0. A time that would be before 1970 or after 2262 becomes 0. A difference of at
// most two seconds counts as none: dates have whole seconds, and an answer takes time to arrive.
void to_local_clock(std::span<BlobInfo> objects, std::int64_t store_now_ns,
                    std::int64_t local_now_ns);

}  // namespace purlin::blobs
