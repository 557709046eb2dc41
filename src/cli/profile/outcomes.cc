// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/outcomes.h"

#include "base/files.h"
#include "base/json/json_lines.h"
#include "base/text.h"

namespace purlin::cli {

std::string outcomes_path() { return join_path(user_state_directory(), "advice_outcomes.jsonl"); }

std::vector<analyze::Outcome> read_outcomes(const Context& context) {
  std::vector<analyze::Outcome> out;
  const Result<std::string> text = read_file(outcomes_path());
  if (!text.is_ok()) return out;
  std::size_t unreadable = 0;
  for (const std::string& line : split(*text, '\n')) {
    if (line.empty()) continue;
    const Result<Json> json = Json::parse(line);
    if (json.is_ok()) {
      if (Result<analyze::Outcome> outcome = analyze::outcome_from_json(*json); outcome.is_ok()) {
        out.push_back(std::move(*outcome));
        continue;
      }
    }
    ++unreadable;
  }
  if (unreadable > 0)
    context.log.warn("{}: {} left out: no outcome of a change", outcomes_path(),
                     counted(static_cast<double>(unreadable), "line"));
  return out;
}

Status append_outcome(const analyze::Outcome& outcome) {
  PURLIN_ASSIGN(JsonLines file, JsonLines::open(outcomes_path()));
  for (const Json& line : file.take_lines())
    if (line["rule"].as_string() == outcome.rule && line["before"].as_string() == outcome.before &&
        line["after"].as_string() == outcome.after)
      return error(Code::kInvalid, "{}: this outcome of {} is recorded already", file.path(),
                   outcome.rule);
  return file.append(to_json(outcome));
}

}  // namespace purlin::cli
