// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

namespace purlin {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kIo:
      return "io";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kFailed:
      return "failed";
    case Code::kTimeout:
      return "timeout";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  return {code_, fmt::format("{}: {}", context, message_)};
}

}  // namespace purlin
