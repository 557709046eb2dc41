// SPDX-License-Identifier: Apache-2.0
// The tuning work list from any bytes: it stays within its bounds, and what was read survives being
// written and read again.
#include "backlog/work_list.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using purlin::backlog::WorkList;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json =
      purlin::Json::parse({reinterpret_cast<const char*>(data), size}, {std::size_t{16} << 20, 16});
  if (!json.is_ok()) return 0;
  const auto list = WorkList::from_document(*json);
  if (!list.is_ok()) return 0;
  if (list->rows().size() > WorkList::kMaxRows) std::abort();
  const auto again = WorkList::from_document(list->document());
  if (!again.is_ok() || again->rows().size() != list->rows().size()) std::abort();
  return 0;
}
