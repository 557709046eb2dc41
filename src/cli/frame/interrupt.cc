// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/interrupt.h"

#include <cstdint>
#include <ctime>
#include <unistd.h>

namespace purlin::cli {
namespace {

// A signal handler can reach only globals.
std::atomic<bool> interrupt_asked{false};
std::atomic<std::int64_t> interrupt_ns{0};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// A scheduler that ends a job signals each of its processes, and a parent passes it on to its
// child: both are the same request.
constexpr std::int64_t kSameRequestNs = 1'000'000'000;

std::int64_t handler_clock_ns() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int signal) {
  static constexpr char kText[] = "\npurlin: stopping; once more to end at once\n";
  const std::int64_t now_ns = handler_clock_ns();
  if (interrupt_asked.exchange(true)) {
    if (now_ns - interrupt_ns.load() < kSameRequestNs) return;
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // comes when this handler has ended
    return;
  }
  interrupt_ns.store(now_ns);
  static_cast<void>(!::write(STDERR_FILENO, kText, sizeof kText - 1));
}

}  // namespace

Interrupt::Interrupt() {
  interrupt_asked.store(false);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaddset(&action.sa_mask, SIGINT);
  ::sigaddset(&action.sa_mask, SIGTERM);
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
