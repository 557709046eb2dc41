// SPDX-License-Identifier: Apache-2.0
#include "fleet/answers.h"

#include "base/version.h"

namespace purlin::fleet {

Json answer_document(std::string_view schema) {
  Json result = Json::object({{"schema", schema}});
  result.set("tool_version", version());
  return result;
}

HttpAnswer json_answer(const Json& json, int status) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = json.dump() + "\n";
  return answer;
}

HttpAnswer error_answer(int status, std::string_view message) {
  Json json = answer_document("purlin.error/1");
  json.set("error", Json::object({{"status", status}, {"message", message}}));
  return json_answer(json, status);
}

HttpAnswer error_answer(const Status& status) {
  const Code code = status.code();
  HttpAnswer answer = error_answer(code == Code::kNotFound      ? 404
                                   : code == Code::kInvalid     ? 400
                                   : code == Code::kUnavailable ? 503
                                                                : 500,
                                   status.message());
  if (answer.status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace purlin::fleet
