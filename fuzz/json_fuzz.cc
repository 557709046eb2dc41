// SPDX-License-Identifier: Apache-2.0
// JSON: what is read must come back the same after being written, and a view of it is the same.
#include "base/json/json.h"
#include "base/json/json_view.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

bool same(const purlin::Json& json, const purlin::JsonView& view) {
  if (json.is_null() != view.is_null() || json.is_bool() != view.is_bool() ||
      json.is_int() != view.is_int() || json.is_number() != view.is_number() ||
      json.is_array() != view.is_array() || json.is_object() != view.is_object() ||
      json.is_string() != view.is_string() || json.as_string() != view.as_string() ||
      json.as_bool() != view.as_bool() || json.as_int() != view.as_int() ||
      json.as_double() != view.as_double() || json.size() != view.size())
    return false;
  auto item = json.items().begin();
  for (const purlin::JsonView each : view.items())
    if (!same(*item++, each)) return false;
  auto member = json.members().begin();
  for (const purlin::JsonView::Member each : view.members()) {
    if (member->key != each.key || !same(member->value, each.value)) return false;
    ++member;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const purlin::Result<purlin::Json> read = purlin::Json::parse(text);
  purlin::JsonScan scan;
  if (scan.scan(text) && (!read.is_ok() || !same(*read, scan.root()))) std::abort();
  if (!read.is_ok()) return 0;
  for (const int indent : {-1, 2}) {
    const purlin::Result<purlin::Json> again = purlin::Json::parse(read->dump(indent));
    if (!again.is_ok() || again->dump() != read->dump()) std::abort();
  }
  return 0;
}
