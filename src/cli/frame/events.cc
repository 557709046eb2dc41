// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/events.h"

#include "base/time.h"
#include "base/version.h"

namespace purlin::cli {

void Events::declare(Flags& flags) {
  flags.flag("--json-lines", on_,
             {"Print what happens as JSON lines, the result last",
              "The schema is purlin.events/1. Texts for people are left out of stdout."});
}

Status Events::begin(const Context& context, std::string_view verb, bool json) {
  if (!on_) return Status::ok();
  if (json) return error(Code::kInvalid, "give one of --json and --json-lines");
  context_ = &context;
  begin_ns_ = system_clock().monotonic_ns();
  write("begin", {{"schema", "purlin.events/1"}, {"tool_version", version()}, {"verb", verb}});
  return Status::ok();
}

void Events::write(std::string_view event, std::initializer_list<Json::Member> members) {
  if (!on_ || context_ == nullptr) return;
  const double seconds = static_cast<double>(system_clock().monotonic_ns() - begin_ns_) * 1e-9;
  Json line = Json::object({{"event", event}, {"seconds", seconds}});
  for (const Json::Member& member : members) line.set(member.key, member.value);
  const std::lock_guard lock(mutex_);
  context_->print(line.dump() + "\n");
  std::fflush(context_->out);
}

void Events::result(const Json& document, int exit_code) {
  write("result", {{"exit_code", exit_code}, {"document", document}});
}

}  // namespace purlin::cli
