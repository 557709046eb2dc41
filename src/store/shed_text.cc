// SPDX-License-Identifier: Apache-2.0
#include "store/shed_text.h"

#include "base/text.h"
#include "store/labels.h"

namespace purlin::store {

std::string shed_text(const std::vector<BatchShed>& shed) {
  std::string out;
  for (const BatchShed& item : shed)
    out += join_fields({item.cause, std::to_string(item.batches), std::to_string(item.rows),
                        std::to_string(item.raw_bytes)}) +
           "\n";
  return out;
}

std::vector<BatchShed> parse_shed(std::string_view text) {
  std::vector<BatchShed> shed;
  for (const std::string& line : split(text, '\n')) {
    const Fields fields = split_fields(line);
    if (fields.size() != 4) continue;
    const auto batches = parse_int(fields[1]), rows = parse_int(fields[2]),
               bytes = parse_int(fields[3]);
    if (!batches || !rows || !bytes) continue;
    shed.push_back({fields[0], static_cast<std::uint64_t>(*batches),
                    static_cast<std::uint64_t>(*rows), static_cast<std::uint64_t>(*bytes)});
  }
  return shed;
}

}  // namespace purlin::store
