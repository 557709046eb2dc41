// SPDX-License-Identifier: Apache-2.0
// Winners in other tools' files: any bytes give entries or a Status; an entry can be stored, and
// what is written again is read as the same winners.
#include "cache/foreign/foreign.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace purlin::cache;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The first line is the file's name, which is parsed too.
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string_view name = bytes.substr(0, line);
  const std::string_view text = line < bytes.size() ? bytes.substr(line + 1) : "";
  ForeignFacts facts;
  facts.key.arch = "sm_90";
  facts.dimensions = {"M", "N", "K"};
  static_cast<void>(guess_foreign_format(name, text));
  for (const ForeignFormat format :
       {ForeignFormat::kTriton, ForeignFormat::kVllmMoe, ForeignFormat::kTunableOp}) {
    const auto read = read_foreign(format, name, text, facts);
    if (!read.is_ok()) continue;
    for (const Entry& entry : read->entries)
      if (entry.verified || !entry_from_json(to_json(entry)).is_ok()) __builtin_trap();
    if (format == ForeignFormat::kTriton) continue;
    const auto files = write_foreign(format, read->entries);
    if (!files.is_ok()) __builtin_trap();
    std::size_t again = 0;
    for (const auto& [file, contents] : *files) {
      const auto copy = read_foreign(format, file, contents, facts);
      if (!copy.is_ok()) __builtin_trap();
      again += copy->entries.size();
    }
    if (again == 0 || again > read->entries.size()) __builtin_trap();
  }
  return 0;
}
