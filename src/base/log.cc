// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/output/escaped.h"

#include <cstdio>

namespace purlin {

void Log::write(Level level, std::string_view text) {
  if (level < threshold_) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  emit(level, text);
}

void Log::emit(Level level, std::string_view text) {
  constexpr std::string_view kPrefix[] = {
      "purlin: debug: ", "purlin: ", "purlin: warning: ", "purlin: error: ", ""};
  const std::string line =
      fmt::format("{}{}\n", kPrefix[static_cast<int>(level)], shown_text(text, false));
  // Not fmt::print, which throws where stderr is closed or full.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace purlin
