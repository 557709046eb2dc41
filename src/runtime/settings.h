// SPDX-License-Identifier: Apache-2.0
// Settings: what the environment says about the runtime, and the log that it asks for.
//
// Read once, when a cache is opened. A variable that makes no sense is as good as unset, and the
// log says so: a program must not fail over its environment. Thread-safety: Settings is a value;
// RuntimeLog is [MT].
#pragma once

#include "base/log.h"

#include <cstdio>
#include <optional>
#include <string>

namespace purlin::runtime {

struct Settings {
  bool disabled = false;             // PURLIN_DISABLE=1
  bool record = true;                // PURLIN_RECORD=0: no work list
  std::optional<bool> serve_stale;   // PURLIN_REVALIDATE=serve | refuse
  std::optional<int> shadow_every;   // PURLIN_SHADOW=1000; 0 = off
  Level log_level = Level::kSilent;  // PURLIN_LOG=debug | info | warning | error
  std::string log_file;              // PURLIN_LOG=info:FILE; "" = stderr
  std::string problems;              // what was not understood
  static Settings from_environment();
};

// Bounded: after kMaxLines it says that it ends, and ends. Lines go to stderr or are appended to a
// file; one that cannot be opened falls back to stderr.
class RuntimeLog : public Log {
 public:
  static constexpr int kMaxLines = 1000;
  explicit RuntimeLog(const Settings& settings);
  ~RuntimeLog() override;
  bool enabled(Level level) const { return level >= level_; }

 protected:
  void emit(Level level, std::string_view text) override;

 private:
  const Level level_;
  std::FILE* file_;  // stderr where it is not ours
  int lines_ = 0;
};

}  // namespace purlin::runtime
