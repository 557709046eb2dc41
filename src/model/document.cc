// SPDX-License-Identifier: Apache-2.0
#include "model/document.h"

#include "base/json/json_view.h"
#include "base/text.h"
#include "base/version.h"

namespace purlin {

namespace {

Status check_schema_text(std::string_view text, std::string_view name, int version) {
  if (text.empty()) return error(Code::kInvalid, "not a '{}' document: it has no \"schema\"", name);
  // Split at the last slash; without one, what follows is the whole name and no number.
  const std::size_t slash = text.rfind('/');
  const std::int64_t major = parse_int(text.substr(slash + 1)).value_or(0);
  if (text.substr(0, slash) != name || major < 1)
    return error(Code::kInvalid, "this is a '{}' document; '{}/{}' is wanted", text, name, version);
  if (major > version)
    return error(Code::kCorrupt,
                 "'{}' was written by a newer Purlin; this one reads up to '{}/{}'. Update Purlin",
                 text, name, version);
  return Status::ok();
}

}  // namespace

Json new_document(std::string_view schema, const Environment& environment) {
  return Json::object(
      {{"schema", schema}, {"tool_version", version()}, {"environment", to_json(environment)}});
}

Status check_schema(const Json& document, std::string_view name, int version) {
  return check_schema_text(document["schema"].as_string(), name, version);
}
Status check_schema(const JsonView& document, std::string_view name, int version) {
  return check_schema_text(document["schema"].as_string(), name, version);
}

}  // namespace purlin
