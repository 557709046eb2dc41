// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/answer.h"

#include "model/document.h"

namespace purlin::cli {

Json document_of(std::string_view schema, std::initializer_list<Json::Member> members) {
  Json document = new_document(schema, host_environment());
  for (const Json::Member& member : members) document.set(member.key, member.value);
  return document;
}

void answer(const Context& context, bool json, const Json& document, std::string_view text) {
  if (json)
    context.print(document.dump(2) + "\n");
  else
    context.print(text);
}

}  // namespace purlin::cli
