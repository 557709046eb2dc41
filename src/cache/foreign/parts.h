// SPDX-License-Identifier: Apache-2.0
// What the readers of foreign winners share. Internal to cache/foreign; pure functions.
#pragma once

#include "base/json/json.h"
#include "cache/foreign/foreign.h"

namespace purlin::cache::foreign {

Result<ForeignEntries> read_triton(std::string_view name, std::string_view bytes,
                                   const ForeignFacts& facts);
Result<NamedFiles> write_triton(std::span<const Entry> entries);
Result<ForeignEntries> read_vllm_moe(std::string_view name, std::string_view bytes,
                                     const ForeignFacts& facts);
Result<NamedFiles> write_vllm_moe(std::span<const Entry> entries);
Result<ForeignEntries> read_tunable_op(std::string_view bytes, const ForeignFacts& facts);
Result<NamedFiles> write_tunable_op(std::span<const Entry> entries);

// The file's name without folders.
std::string_view base_name(std::string_view path);
// The arch and backend that follow from the model's name, where they are not stated.
void fill_device(CacheKey& key);
// Completes an entry whose key, config and problem are set: the caller's facts, the bucket, the
// provenance. kInvalid where the arch is not known.
Status finish(Entry& entry, ForeignFormat format, const ForeignFacts& facts);
// A member of a config; nullopt for what a config cannot hold.
std::optional<Value> plain_value(const Json& json);

}  // namespace purlin::cache::foreign
