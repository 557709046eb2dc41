// SPDX-License-Identifier: Apache-2.0
// CacheKey: everything that decides whether a stored winner is about this launch.
//
// Each field is plain text, so that a miss can be explained field by field. `bucket` is the problem
// shape after the spec's bucketing: "M=1024,N=1024,K=1024". Thread-safety: a value type.
#pragma once

#include "base/json.h"
#include "model/device.h"
#include "model/spec.h"

#include <string>
#include <vector>

namespace purlin::cache {

struct CacheKey {
  std::string op;      // "gemm"
  std::string kernel;  // spec name
  std::string dtype;   // "f32"
  std::string bucket;
  std::string backend;  // "cuda"
  std::string arch;     // "sm_90": an entry of another arch is never served
  std::string device;   // model name
  std::string toolkit;  // what compiled it
  std::string driver;
  std::string source_hash;  // kernel source and options
  std::string policy;       // how it was measured: "warm" or "cold"

  // Field names and values in the order a lookup weighs them.
  std::vector<std::pair<std::string, std::string>> fields() const;
  std::string id() const;  // 32 hex digits over all fields
  bool operator==(const CacheKey&) const = default;
};

Json to_json(const CacheKey& key);
Result<CacheKey> key_from_json(const Json& json);

// The bucket of an extent: "exact" -> itself, "pow2" -> next power of two, "multiple:64" -> rounded
// up.
Result<std::int64_t> bucket_extent(std::string_view rule, std::int64_t extent);
Result<std::string> bucket_of(const KernelSpec& spec, const ProblemShape& problem);
Result<CacheKey> make_key(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, bool cold_cache);

}  // namespace purlin::cache
