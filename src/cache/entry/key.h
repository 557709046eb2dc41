// SPDX-License-Identifier: Apache-2.0
// CacheKey: everything that decides whether a stored winner is about this launch.
//
// Each field is plain text, so that a miss can be explained field by field. `bucket` is the problem
// shape after the spec's bucketing: "M=1024,N=1024,K=1024". In a key that is looked up, an empty
// field is one the caller does not state and is not compared; op, kernel, backend and arch always
// are. Thread-safety: value types.
#pragma once

#include "base/json/json.h"
#include "cache/entry/bucket.h"
#include "model/device/device.h"
#include "model/spec/spec.h"

#include <array>
#include <string>
#include <utility>
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
  std::string layout{};     // of the buffers: "A=row,B=column,C=row"

  // Field names and values in the order a lookup weighs them.
  std::vector<std::pair<std::string, std::string>> fields() const;
  // 32 hex digits over the fields that are not empty, so that a field added later changes no id.
  std::string id() const;
  bool operator==(const CacheKey&) const = default;
};

Json to_json(const CacheKey& key);
Result<CacheKey> key_from_json(const Json& json);
Result<CacheKey> key_from_json(const JsonView& json);

Result<CacheKey> make_key(const KernelSpec& spec, const ProblemShape& problem,
                          const DeviceInfo& device, bool cold_cache);

// How a stored key stands to the one wanted.
enum class Match {
  kSame,
  kTransferable,  // other device model, toolkit or driver; same arch: served only on request
  kForeign,       // never served: another arch, op, dtype, source, …
};
// What a difference in a field means; one for each of fields(), in their order.
struct KeyFieldRule {
  const char* name;
  bool always;       // compared even where the caller states nothing
  bool environment;  // a validation under the wanted value stands in for it
  Match on_other;    // kTransferable or kForeign
  int weight;        // of a difference in `distance`
  // Entries written before the field existed lack it: they agree with any value, from farther away.
  bool newer = false;
};
constexpr std::size_t kKeyFields = 12;
constexpr int kNotRecorded = 1;  // the distance of a newer field that is not there
constexpr std::size_t kBucketField = 3, kToolkitField = 7, kDriverField = 8;
const std::array<KeyFieldRule, kKeyFields>& key_field_rules();

struct FieldComparison {
  std::string field, wanted, stored;
  Match match = Match::kSame;
};
struct Comparison {
  Match match = Match::kSame;
  std::vector<FieldComparison> fields;  // every field, in the order of fields()
  int distance = 0;                     // 0 = same; smaller is nearer
};
Comparison compare(const CacheKey& wanted, const CacheKey& stored);
// The verdict and the distance alone. The buckets are not compared.
struct KeyMatch {
  Match match = Match::kSame;
  int distance = 0;
};
KeyMatch compare_but_bucket(const CacheKey& wanted, const CacheKey& stored);
// As a message names it: "'f32'", and "none" where it is empty.
std::string or_none(std::string_view text);
// A line for each field: "arch: 'sm_90' wanted, 'sm_80' stored; never served across archs".
std::vector<std::string> explain(const Comparison& comparison);

}  // namespace purlin::cache
