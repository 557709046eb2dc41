// SPDX-License-Identifier: Apache-2.0
// Interrupt: Ctrl-C, SIGTERM and SIGHUP as a request that the loop of a verb polls. Another signal,
// a second later or more, ends the process at once. Owned by the verb while it runs; its end
// restores the previous handlers.
#pragma once

#include <atomic>
#include <signal.h>

namespace purlin::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static const std::atomic<bool>& flag();  // [MT]
  static bool requested() { return flag().load(); }

 private:
  struct sigaction interrupt_, terminate_, hang_up_;  // what was there before
};

}  // namespace purlin::cli
