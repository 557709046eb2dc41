// SPDX-License-Identifier: Apache-2.0
// Keeper: a second process that tidies up what this process leaves behind if it is killed or
// crashes.
//
// It waits on a pipe from this process. If the pipe closes without a message, it tidies up.
// Thread-safety: belongs to one thread. Failure: kUnavailable, with the reason.
#pragma once

#include "base/os/process.h"
#include "base/status.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin {

class Keeper {
 public:
  // `command` must call keep_until_gone(). When this returns, it is ready.
  static Result<Keeper> start(const std::vector<std::string>& command);
  Keeper(Keeper&&) = default;
  Keeper& operator=(Keeper&&) = default;
  ~Keeper();  // the keeper tidies up, unless it was dismissed
  // There is nothing left to tidy up.
  void dismiss();

 private:
  explicit Keeper(Process process) : process_(std::move(process)) {}
  Process process_;
};

// The second process: writes "ready" to stdout, waits for stdin to end, and calls `tidy` unless it
// read a message.
Status keep_until_gone(const std::function<Status()>& tidy);

}  // namespace purlin
