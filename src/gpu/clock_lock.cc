// SPDX-License-Identifier: Apache-2.0
#include "gpu/clock_lock.h"

#include "base/text.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace purlin::gpu {
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

Result<unsigned> parse_clock(const std::string& text, const DeviceInfo& device) {
  if (text == "base") return 0u;
  if (text == "max" && device.clock_mhz > 0) return static_cast<unsigned>(device.clock_mhz);
  const std::optional<std::int64_t> mhz = parse_int(text);
  if (mhz && *mhz >= 100 && *mhz <= 10000) return static_cast<unsigned>(*mhz);
  return error(Code::kInvalid, "a clock is \"base\", \"max\" or MHz from 100 to 10000, not '{}'",
               text);
}

Result<std::unique_ptr<ClockLock>> ClockLock::acquire(std::unique_ptr<Monitor> monitor,
                                                      unsigned mhz,
                                                      const std::vector<std::string>& keeper) {
  // The keeper is ready before the clock is locked. Its own process group protects it from Ctrl-C.
  Process::Options options;
  options.argv = keeper;
  options.in = options.out = Process::Stream::kPipe;
  PURLIN_ASSIGN(Process process, Process::start(options));
  if (!hears(process.out_fd(), kReadyMs))
    return error(Code::kUnavailable,
                 "the clock is not locked: the process that unlocks it did not start");
  std::unique_ptr<ClockLock> lock(new ClockLock(std::move(monitor), std::move(process)));
  PURLIN_TRY(lock->monitor_->lock_clocks(mhz, mhz));  // where this fails, unlocking does no harm
  return lock;
}

ClockLock::~ClockLock() {
  // If this fails, the keeper tries again, and reports what to do if it fails, too.
  const bool restored = monitor_->unlock_clocks().is_ok();
  if (restored) (void)!::write(keeper_.in_fd(), "done\n", 5);
  keeper_.close_in();
  (void)keeper_.wait(kGoodbyeS);
}

Status keep_clock(Monitor& monitor) {
  // Terminals and schedulers signal whole sessions; this process must outlive them.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  if (::write(STDOUT_FILENO, "ready\n", 6) != 6)
    return error(Code::kIo, "no process reads from the keeper of the clock");
  const bool done = hears(STDIN_FILENO, -1);
  return done ? Status::ok() : monitor.unlock_clocks();
}

}  // namespace purlin::gpu
