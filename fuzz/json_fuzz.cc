// SPDX-License-Identifier: Apache-2.0
// JSON: what is read must come back the same after being written.
#include "base/json.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const purlin::Result<purlin::Json> read = purlin::Json::parse(text);
  if (!read.is_ok()) return 0;
  for (const int indent : {-1, 2}) {
    const purlin::Result<purlin::Json> again = purlin::Json::parse(read->dump(indent));
    if (!again.is_ok() || again->dump() != read->dump()) std::abort();
  }
  return 0;
}
