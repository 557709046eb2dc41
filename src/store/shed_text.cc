// SPDX-License-Identifier: Apache-2.0
#include "store/shed_text.h"

#include "base/text.h"
#include "store/labels.h"

#include <optional>

namespace purlin::store {
namespace {

constexpr std::string_view kSpoolLine = "spool";

std::optional<std::uint64_t> amount_of(const std::string& field) {
  const auto value = parse_int(field);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

}  // namespace

std::string shed_text(const Batch& batch) {
  std::string out;
  for (const BatchShed& item : batch.shed)
    out += join_fields({item.cause, std::to_string(item.batches), std::to_string(item.rows),
                        std::to_string(item.raw_bytes)}) +
           "\n";
  if (batch.spool.limit_bytes > 0)
    out += join_fields({std::string(kSpoolLine), std::to_string(batch.spool.bytes),
                        std::to_string(batch.spool.limit_bytes)}) +
           "\n";
  return out;
}

ShedAndSpool parse_shed(std::string_view text) {
  ShedAndSpool known;
  for (const std::string& line : split(text, '\n')) {
    const Fields fields = split_fields(line);
    if (fields.size() == 3 && fields[0] == kSpoolLine) {
      const auto bytes = amount_of(fields[1]), limit = amount_of(fields[2]);
      if (bytes && limit) known.spool = {*bytes, *limit};
    }
    if (fields.size() != 4) continue;
    const auto batches = amount_of(fields[1]), rows = amount_of(fields[2]),
               bytes = amount_of(fields[3]);
    if (batches && rows && bytes) known.shed.push_back({fields[0], *batches, *rows, *bytes});
  }
  return known;
}

}  // namespace purlin::store
