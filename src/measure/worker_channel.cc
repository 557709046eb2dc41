// SPDX-License-Identifier: Apache-2.0
#include "measure/worker_channel.h"

#include "base/text.h"
#include "base/time.h"
#include "measure/worker_protocol.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace purlin::measure {
namespace {

constexpr double kGoodbyeS = 1.0;
constexpr std::size_t kErrorTailBytes = 8192;
constexpr std::int64_t kStopLookNs = 100'000'000;

// Milliseconds to the deadline for poll(), at least 0.
int left_ms(std::int64_t deadline_ns) {
  const std::int64_t left = deadline_ns - system_clock().monotonic_ns();
  return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30));
}

// Writing to a child that has died raises SIGPIPE. A library may not change how the program
// handles signals, so the signal is held back in this thread and taken out again.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec now{0, 0};
    while (!was_pending_ && ::sigtimedwait(&set_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t set_, before_;
  bool was_pending_;
};

std::string doing(const std::string& step) {
  if (step == "compile") return "while compiling";
  if (step == "verify") return "in the launch that is verified";
  if (step == "measure") return "while measuring";
  if (step == "reference") return "in the reference";
  if (step == "compile reference") return "while compiling the reference";
  return "while setting up";
}

}  // namespace

Result<std::unique_ptr<WorkerChannel>> WorkerChannel::start(
    const std::string& executable, const std::map<std::string, std::string>& environment) {
  Process::Options options;
  options.argv = {executable, "worker"};
  options.environment = environment;
  options.in = options.out = options.err = Process::Stream::kPipe;
  PURLIN_ASSIGN(Process process, Process::start(options));
  for (const int fd : {process.in_fd(), process.out_fd(), process.err_fd()})
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return std::unique_ptr<WorkerChannel>(new WorkerChannel(std::move(process)));
}

WorkerChannel::~WorkerChannel() {
  process_.close_in();
  process_.wait(kGoodbyeS);  // ~Process kills what is still there
}

void WorkerChannel::drain_errors() {
  char buffer[1 << 12];
  ssize_t got = 0;
  while ((got = ::read(process_.err_fd(), buffer, sizeof buffer)) > 0) {
    errors_.append(buffer, static_cast<std::size_t>(got));
    if (errors_.size() > 2 * kErrorTailBytes) errors_.erase(0, errors_.size() - kErrorTailBytes);
  }
}

// Waits once, then moves what can be moved in each direction.
WorkerChannel::Wake WorkerChannel::pump(std::string_view& unsent, std::int64_t deadline_ns) {
  pollfd fds[3] = {{process_.out_fd(), POLLIN, 0},
                   {process_.err_fd(), POLLIN, 0},
                   {unsent.empty() ? -1 : process_.in_fd(), POLLOUT, 0}};
  const int ready = ::poll(fds, 3, left_ms(deadline_ns));
  if (ready == 0) return Wake::kTimedOut;
  if (ready < 0) return errno == EINTR ? Wake::kReady : Wake::kClosed;
  drain_errors();
  if (fds[2].revents != 0) {
    const WithoutSigpipe guard;
    const ssize_t put = ::write(process_.in_fd(), unsent.data(), unsent.size());
    if (put > 0) unsent.remove_prefix(static_cast<std::size_t>(put));
    // A refused write is not the end: the child may have reported a reason before it ended.
    if (put < 0 && errno != EAGAIN && errno != EINTR) unsent = {};
  }
  if (fds[0].revents != 0) {
    char buffer[1 << 14];
    const ssize_t got = ::read(process_.out_fd(), buffer, sizeof buffer);
    if (got > 0) received_.append(buffer, static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return Wake::kClosed;
  } else if ((fds[1].revents & (POLLHUP | POLLIN)) == POLLHUP) {
    // A child that still runs closed its stderr: nothing is left to read, so do not poll it.
    system_clock().sleep_ns(1'000'000);
  }
  return Wake::kReady;
}

WorkerChannel::Answer WorkerChannel::gone(Answer::Kind kind, const std::string& how) {
  process_.kill(SIGKILL);  // also a compiler that the child has started
  const std::optional<Exit> exit = process_.wait(5);
  drain_errors();
  Answer answer;
  answer.kind = kind;
  answer.step = step_;
  answer.message = !how.empty() ? how
                   : exit       ? "ended with " + exit->text()
                                : std::string("does not end even when killed");
  answer.message += " " + doing(step_);
  std::string_view tail = trim(errors_);
  if (tail.size() > kErrorTailBytes / 4) tail.remove_prefix(tail.size() - kErrorTailBytes / 4);
  if (!tail.empty()) answer.message += fmt::format("; its stderr ends with: {}", tail);
  return answer;
}

// When the wait for one answer ends, and how.
class WorkerChannel::Deadline {
 public:
  explicit Deadline(const Patience& patience)
      : patience_(patience),
        start_ns_(system_clock().monotonic_ns()),
        step_ns_(start_ns_),
        timeout_s_(patience.timeout_s) {}

  void begin_step(std::string_view step) {
    if (!patience_.each_step) return;
    step_ns_ = system_clock().monotonic_ns();
    const bool own = step == "reference" && patience_.reference_timeout_s > 0;
    timeout_s_ = own ? patience_.reference_timeout_s : patience_.timeout_s;
  }
  double timeout_s() const { return timeout_s_; }

  // Until when to wait before asking again. Another thread may set `stop`, and nothing would end
  // the wait for it.
  std::int64_t next_ns() const {
    std::int64_t next = std::min(end_ns(step_ns_, timeout_s_), limit_ns());
    if (patience_.stop != nullptr)
      next = std::min(next, system_clock().monotonic_ns() + kStopLookNs);
    return next;
  }

  std::optional<Answer::Kind> over() {
    const std::int64_t now = system_clock().monotonic_ns();
    if (patience_.stop != nullptr && patience_.stop->load()) {
      if (stopped_ns_ == 0) stopped_ns_ = now;
      if (now >= stopped_ns_ + static_cast<std::int64_t>(patience_.grace_s * 1e9))
        return Answer::Kind::kStopped;
    }
    if (now >= limit_ns()) return Answer::Kind::kStopped;
    if (now >= end_ns(step_ns_, timeout_s_)) return Answer::Kind::kTimedOut;
    return std::nullopt;
  }

 private:
  static std::int64_t end_ns(std::int64_t from_ns, double seconds) {
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    return seconds > 0 && seconds < 1e9 ? from_ns + static_cast<std::int64_t>(seconds * 1e9)
                                        : kNever;
  }
  std::int64_t limit_ns() const { return end_ns(start_ns_, patience_.limit_s); }

  const Patience& patience_;
  const std::int64_t start_ns_;
  std::int64_t step_ns_;         // when the present step began
  double timeout_s_;             // of the present step
  std::int64_t stopped_ns_ = 0;  // when `stop` was seen
};

WorkerChannel::Answer WorkerChannel::ask(Json request, const Patience& patience) {
  request.set("id", ++number_);
  step_.clear();
  errors_.clear();
  const std::string line = request.dump() + "\n";
  std::string_view unsent = line;
  Deadline deadline(patience);
  bool closed = false;
  while (true) {
    while (true) {
      const std::size_t end = received_.find('\n');
      if (end == std::string::npos) break;
      const std::string text = received_.substr(0, end);
      received_.erase(0, end + 1);
      Result<Json> reply = Json::parse(text, {kMaxReplyBytes, 64});
      if (!reply.is_ok() || (*reply)["id"].as_int(-1) != number_)
        return gone(Answer::Kind::kDied,
                    fmt::format("sent '{}' instead of a reply", text.substr(0, 200)));
      if (const Json* step = reply->find("step"); step != nullptr) {
        step_ = step->as_string();
        deadline.begin_step(step_);
        if (patience.on_step != nullptr) (*patience.on_step)(step_);
        continue;
      }
      return {Answer::Kind::kReply, std::move(reply).value(), ""};
    }
    if (received_.size() > kMaxReplyBytes)
      return gone(Answer::Kind::kDied, "sent a reply without an end");
    if (closed) return gone(Answer::Kind::kDied, "");
    const Wake wake = pump(unsent, deadline.next_ns());
    closed = wake == Wake::kClosed;
    // What arrived in time counts.
    if (wake == Wake::kReady && !received_.empty()) continue;
    if (const std::optional<Answer::Kind> over = deadline.over())
      return gone(*over, *over == Answer::Kind::kStopped
                             ? "was stopped"
                             : fmt::format("took longer than {:g} s", deadline.timeout_s()));
  }
}

}  // namespace purlin::measure
