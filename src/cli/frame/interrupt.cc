// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/interrupt.h"

#include <unistd.h>

namespace purlin::cli {
namespace {

// A signal handler can reach only a global.
std::atomic<bool> interrupt_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  static constexpr char kText[] = "\npurlin: stopping; once more to end at once\n";
  interrupt_asked.store(true);
  static_cast<void>(!::write(STDERR_FILENO, kText, sizeof kText - 1));
}

}  // namespace

Interrupt::Interrupt() {
  interrupt_asked.store(false);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
  // A terminal that closes. Under nohup it stays ignored.
  ::sigaction(SIGHUP, nullptr, &hang_up_);
  if (hang_up_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
  ::sigaction(SIGHUP, &hang_up_, nullptr);
}

const std::atomic<bool>& Interrupt::flag() { return interrupt_asked; }

}  // namespace purlin::cli
