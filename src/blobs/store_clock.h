// SPDX-License-Identifier: Apache-2.0
// The clock of a store, told by its own answers, against this machine's: the age of an object is
// reckoned by one clock, however wrong the other is. Pure functions. [MT]
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

// Puts the times of objects listed at `store_now_ns` of the store's clock, when this machine's said
// `local_now_ns`, right by the difference. 0 stays 0, for unknown, and so does what would be before
// 1970 or beyond 2262. A difference of at most two seconds, the grain of dates and the way of an
// answer, is none.
void to_local_clock(std::span<BlobInfo> objects, std::int64_t store_now_ns,
                    std::int64_t local_now_ns);

}  // namespace purlin::blobs
