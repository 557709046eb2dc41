// SPDX-License-Identifier: Apache-2.0
// A stored entry as a member of `purlin.cache/1`: what `cache ls --json`, the page and a server
// answer. Pure function.
#pragma once

#include "base/json/json.h"
#include "cache/store/store.h"

namespace purlin::cache {

// `served`: it is the one of its key.
Json entry_document(const StoredEntry& stored, bool served);

}  // namespace purlin::cache
