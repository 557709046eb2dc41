// SPDX-License-Identifier: Apache-2.0
#include "runtime/c_api/support.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace purlin::runtime {
namespace {

// A plain array: no destructor to run when a thread of the host program ends.
thread_local char error_text[2048] = "";

}  // namespace

const char* last_error() noexcept { return error_text; }

purlin_status fail(purlin_status status, const char* text) noexcept {
  std::snprintf(error_text, sizeof error_text, "%s", text);
  return status;
}

purlin_status fail(const Status& status) noexcept {
  purlin_status code = PURLIN_FAILED;
  switch (status.code()) {
    case Code::kInvalid:
      code = PURLIN_INVALID;
      break;
    case Code::kNotFound:
      code = PURLIN_NOT_FOUND;
      break;
    case Code::kUnavailable:
      code = PURLIN_UNAVAILABLE;
      break;
    case Code::kIo:
      code = PURLIN_IO;
      break;
    case Code::kCorrupt:
      code = PURLIN_CORRUPT;
      break;
    default:
      break;
  }
  return fail(code, status.message().c_str());
}

size_t copy_text(std::string_view text, char* buffer, size_t size) noexcept {
  if (buffer != nullptr && size > 0) {
    const size_t kept = std::min(size - 1, text.size());
    std::memcpy(buffer, text.data(), kept);
    buffer[kept] = '\0';
  }
  return text.size();
}

}  // namespace purlin::runtime
