// SPDX-License-Identifier: Apache-2.0
#include "model/document.h"

#include "base/text.h"
#include "base/version.h"

namespace purlin {

Json new_document(std::string_view schema, const Environment& environment) {
  return Json::object(
      {{"schema", schema}, {"tool_version", version()}, {"environment", to_json(environment)}});
}

Status check_schema(const Json& document, std::string_view name, int version) {
  const std::string& schema = document["schema"].as_string();
  if (schema.empty())
    return error(Code::kInvalid, "not a '{}' document: it has no \"schema\"", name);
  // Split at the last slash; without one, what follows is the whole name and no number.
  const std::string_view text = schema;
  const std::size_t slash = text.rfind('/');
  const std::int64_t major = parse_int(text.substr(slash + 1)).value_or(0);
  if (text.substr(0, slash) != name || major < 1)
    return error(Code::kInvalid, "this is a '{}' document; '{}/{}' is wanted", schema, name,
                 version);
  if (major > version)
    return error(Code::kCorrupt,
                 "'{}' was written by a newer Purlin; this one reads up to '{}/{}'. Update Purlin",
                 schema, name, version);
  return Status::ok();
}

}  // namespace purlin
