// SPDX-License-Identifier: Apache-2.0
// Winners in other tools' files: Triton's autotune.json, vLLM's fused-MoE configs, PyTorch's
// TunableOp results. Read into entries, and written again.
//
// Such a file has the fastest config, and few facts about the machine. An entry states only the
// facts that its file or the caller states. It is not verified, and its strategy names its origin
// ("import vllm-moe"). The rules of every lookup then refuse it to a caller that states more facts
// (docs/formats/foreign.md). Pure functions. Failure: kInvalid names the error in the file, or the
// fact to state about it.
#pragma once

#include "base/status.h"
#include "cache/entry/entry.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::cache {

enum class ForeignFormat { kTriton, kVllmMoe, kTunableOp };
std::string_view foreign_format_name(ForeignFormat format);  // "triton", "vllm-moe", "tunableop"
Result<ForeignFormat> parse_foreign_format(std::string_view name);
// By the file's name and how it begins; nullopt where it looks like none of them.
std::optional<ForeignFormat> guess_foreign_format(std::string_view name, std::string_view bytes);

constexpr std::size_t kMaxForeignBytes = std::size_t{64} << 20;

// What the caller knows and the file does not say.
struct ForeignFacts {
  CacheKey key;                         // its fields that are not empty replace the file's
  std::vector<std::string> dimensions;  // Triton: the names of the key's arguments
};
struct ForeignEntries {
  std::vector<Entry> entries;
  std::vector<std::string> skipped;  // rows left out, and why
};
// `name`: of the file, parts of which are facts.
Result<ForeignEntries> read_foreign(ForeignFormat format, std::string_view name,
                                    std::string_view bytes, const ForeignFacts& facts);

// Files by name (Triton's in a folder each), from the entries that were imported in that format or
// have keys of that format. kNotFound without such entries.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;
Result<NamedFiles> write_foreign(ForeignFormat format, std::span<const Entry> entries);

}  // namespace purlin::cache
