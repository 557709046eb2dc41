// SPDX-License-Identifier: Apache-2.0
// Diagnostics for people on stderr. Data never goes through here.
//
// A Log is passed to the code that reports something; there is no global Log. [MT] every method.
#pragma once

#include <fmt/core.h>

#include <mutex>
#include <string>
#include <string_view>

namespace purlin {

enum class Level { kDebug, kInfo, kWarning, kError, kSilent };

class Log {
 public:
  explicit Log(Level threshold = Level::kInfo) : threshold_(threshold) {}
  virtual ~Log() = default;

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
  }
  void write(Level level, std::string_view text);

 protected:
  virtual void emit(Level level, std::string_view text);  // called with the lock held

 private:
  Level threshold_;
  std::mutex mutex_;
};

}  // namespace purlin
