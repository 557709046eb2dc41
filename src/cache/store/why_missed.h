// SPDX-License-Identifier: Apache-2.0
// Why a program's lookup found nothing, in one sentence: another operation or kernel, other names
// of the dimensions, another device or version, or a bucket that was never tuned.
//
// For people: it reads entries, so no hot path asks it. Reads `stores` only, in their order.
// Thread-safety: that of the stores. Cannot fail; what cannot be read does not count.
#pragma once

#include "cache/store/store.h"

#include <span>
#include <string>

namespace purlin::cache {

struct MissReason {
  // "op", "kernel", "dimensions", a field of the key, "bucket", "problem", "status"
  std::string field;
  std::string text;
  // The kernel was tuned at these dimensions: somewhere there is a spec for it.
  bool has_spec = false;
};

// `wanted` as programs state it: an empty field is any, and its bucket does not count.
MissReason why_missed(std::span<const Store> stores, const CacheKey& wanted,
                      const ProblemShape& problem);

}  // namespace purlin::cache
