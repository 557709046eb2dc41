// SPDX-License-Identifier: Apache-2.0
#include "base/os/keeper.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace purlin {
namespace {

constexpr int kReadyMs = 10000;
constexpr double kGoodbyeS = 5;

// A byte of `fd` within the time; false when there is none.
bool hears(int fd, int timeout_ms) {
  pollfd waits{fd, POLLIN, 0};
  char byte = 0;
  int ready = 0;
  do {
    ready = ::poll(&waits, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1 && ::read(fd, &byte, 1) == 1;
}

}  // namespace

Result<Keeper> Keeper::start(const std::vector<std::string>& command) {
  // Its own process group protects it from Ctrl-C.
  Process::Options options;
  options.argv = command;
  options.in = options.out = Process::Stream::kPipe;
  PURLIN_ASSIGN(Process process, Process::start(options));
  if (!hears(process.out_fd(), kReadyMs))
    return error(Code::kUnavailable, "the process that tidies up did not start");
  return Keeper(std::move(process));
}

Keeper::~Keeper() {
  if (process_.pid() < 0) return;  // moved from
  process_.close_in();
  (void)process_.wait(kGoodbyeS);
}

void Keeper::dismiss() { (void)!::write(process_.in_fd(), "done\n", 5); }

Status keep_until_gone(const std::function<Status()>& tidy) {
  // Terminals and schedulers signal whole sessions; this process must outlive them.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  if (::write(STDOUT_FILENO, "ready\n", 6) != 6)
    return error(Code::kIo, "no process reads from the keeper");
  return hears(STDIN_FILENO, -1) ? Status::ok() : tidy();
}

}  // namespace purlin
