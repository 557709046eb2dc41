// SPDX-License-Identifier: Apache-2.0
// Records in files that people and other programs hand around: bundles, and the JSON documents that
// `purlin cache` prints. Pure functions. Failure: as decode_bundle's; kInvalid for what is neither.
#pragma once

#include "base/status.h"
#include "cache/share/bundle.h"

#include <span>
#include <string>
#include <string_view>

namespace purlin::cache {

// {"schema": "purlin.cache-export/1", …, "records": [{"kind", "id", "payload"}]}
Result<Json> export_document(std::span<const CacheRecord> records);

// A bundle, or the JSON of `cache export`, `cache ls --json`, `cache get --json` or of one entry.
// With a key only a bundle that it signed is taken.
Result<Bundle> read_records(std::string_view bytes, const SigningKey* key);

}  // namespace purlin::cache
