// SPDX-License-Identifier: Apache-2.0
// Events: what a running verb does, as JSON lines on stdout for programs (--json-lines). Each line
// is one object and is written at once. The last line is the result. docs/formats/events.md lists
// the events.
//
// Owned by the verb's Command. write() is [MT]. Without the flag, it does nothing.
#pragma once

#include "base/json/json.h"
#include "cli/frame/command.h"

#include <initializer_list>
#include <mutex>
#include <string_view>

namespace purlin::cli {

class Events {
 public:
  void declare(Flags& flags);
  bool on() const { return on_; }
  // The first line. kInvalid together with --json, whose one document is also on stdout.
  Status begin(const Context& context, std::string_view verb, bool json);
  // Members are in the order given, after "event" and "seconds" since the first line.
  void write(std::string_view event, std::initializer_list<Json::Member> members);
  void result(const Json& document, int exit_code);

 private:
  bool on_ = false;
  const Context* context_ = nullptr;
  std::int64_t begin_ns_ = 0;
  std::mutex mutex_;
};

}  // namespace purlin::cli
