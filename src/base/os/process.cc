// SPDX-License-Identifier: Apache-2.0
#include "base/os/process.h"

#include "base/time.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace purlin {
namespace {

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    close_fd(read);
    close_fd(write);
  }
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0], write = ends[1];
    return true;
  }
};

std::vector<std::string> build_environment(const Process::Options& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    bool dropped = options.environment.count(name) > 0;
    for (const std::string& unset : options.unset) dropped = dropped || unset == name;
    if (!dropped) result.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Redirects in the child, between fork and exec: async-signal-safe calls only.
void redirect(Process::Stream kind, int pipe_end, int target, int null_flags) {
  if (kind == Process::Stream::kPipe) {
    ::dup2(pipe_end, target);
  } else if (kind == Process::Stream::kToStderr) {
    ::dup2(2, target);
  } else if (kind == Process::Stream::kNull) {
    const int null = ::open("/dev/null", null_flags);
    ::dup2(null, target);
    if (null != target) ::close(null);
  }
}

Exit decode(int status) {
  Exit exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

}  // namespace

std::string Exit::text() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("exit status {}", code);
}

Result<Process> Process::start(const Options& options) {
  if (options.argv.empty()) return error(Code::kInvalid, "no command given");
  Pipe in, out, err, failure;
  if (!failure.open() || (options.in == Stream::kPipe && !in.open()) ||
      (options.out == Stream::kPipe && !out.open()) ||
      (options.err == Stream::kPipe && !err.open()))
    return error(Code::kIo, "cannot create a pipe: {}", std::strerror(errno));

  std::vector<std::string> argv = options.argv;
  std::vector<std::string> environment = build_environment(options);
  const std::vector<char*> argv_pointers = pointers(argv);
  std::vector<char*> environment_pointers = pointers(environment);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return error(Code::kIo, "cannot start '{}': {}", argv[0], std::strerror(errno));
  if (pid == 0) {
    if (options.new_group) ::setpgid(0, 0);
    if (options.dies_with_parent) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);  // the parent ended before prctl
    }
    redirect(options.in, in.read, 0, O_RDONLY);
    redirect(options.err, err.write, 2, O_WRONLY);  // before out, which may follow it
    redirect(options.out, out.write, 1, O_WRONLY);
    ::signal(SIGPIPE, SIG_DFL);
    if (options.directory.empty() || ::chdir(options.directory.c_str()) == 0) {
      environ = environment_pointers.data();
      ::execvp(argv_pointers[0], argv_pointers.data());
    }
    const int code = errno;
    if (::write(failure.write, &code, sizeof code) < 0) ::_exit(127);
    ::_exit(127);
  }
  if (options.new_group) ::setpgid(pid, pid);  // also here: whichever side is first
  close_fd(failure.write);
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(failure.read, &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof code)) {
    ::waitpid(pid, nullptr, 0);
    if (code == ENOENT) return error(Code::kNotFound, "command not found: '{}'", argv[0]);
    return error(Code::kIo, "cannot execute '{}': {}", argv[0], std::strerror(code));
  }
  Process process;
  process.pid_ = pid;
  process.group_ = options.new_group;
  process.in_ = std::exchange(in.write, -1);
  process.out_ = std::exchange(out.read, -1);
  process.err_ = std::exchange(err.read, -1);
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    release();
    pid_ = std::exchange(other.pid_, -1);
    group_ = other.group_;
    exit_ = other.exit_;
    in_ = std::exchange(other.in_, -1);
    out_ = std::exchange(other.out_, -1);
    err_ = std::exchange(other.err_, -1);
  }
  return *this;
}

Process::~Process() { release(); }

void Process::release() {
  if (pid_ > 0 && !exit_) {
    kill(SIGKILL);
    wait();
  }
  close_fd(in_);
  close_fd(out_);
  close_fd(err_);
  pid_ = -1;
}

void Process::close_in() { close_fd(in_); }

std::optional<Exit> Process::wait(double timeout_s) {
  if (exit_ || pid_ <= 0) return exit_;
  const std::int64_t deadline =
      system_clock().monotonic_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  std::int64_t pause_ns = 200'000;
  while (true) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, timeout_s < 0 ? 0 : WNOHANG);
    if (got == pid_) return exit_ = decode(status);
    if (got < 0 && errno != EINTR) return exit_ = Exit{127, 0};
    if (timeout_s >= 0) {
      if (system_clock().monotonic_ns() >= deadline) return std::nullopt;
      system_clock().sleep_ns(pause_ns);
      pause_ns = std::min<std::int64_t>(pause_ns * 2, 10'000'000);
    }
  }
}

void Process::kill(int signal) {
  if (pid_ > 0 && !exit_) ::kill(group_ ? -pid_ : pid_, signal);
}

// How long a wait lasts before its end is looked for.
constexpr int kLookMs = 50;

Result<Captured> run_captured(Process::Options options, double timeout_s, std::size_t max_bytes,
                              const std::function<bool()>& is_over) {
  options.out = Process::Stream::kPipe;
  options.err = Process::Stream::kPipe;
  options.dies_with_parent = true;
  PURLIN_ASSIGN(Process process, Process::start(options));
  Captured captured;
  const std::int64_t deadline =
      system_clock().monotonic_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  pollfd fds[2] = {{process.out_fd(), POLLIN, 0}, {process.err_fd(), POLLIN, 0}};
  std::string* texts[2] = {&captured.out, &captured.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    int wait_ms = -1;
    if (timeout_s > 0) {
      const std::int64_t left = deadline - system_clock().monotonic_ns();
      if (left <= 0) {
        captured.timed_out = true;
        process.kill(SIGKILL);
        break;
      }
      wait_ms = static_cast<int>(std::min<std::int64_t>(left / 1'000'000, 1'000'000)) + 1;
    }
    if (is_over) {
      if (is_over()) {
        process.kill(SIGKILL);
        process.wait();
        return error(Code::kCancelled, "'{}' was stopped", options.argv.front());
      }
      wait_ms = wait_ms < 0 ? kLookMs : std::min(wait_ms, kLookMs);
    }
    if (::poll(fds, 2, wait_ms) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[1 << 14];
      const ssize_t got = ::read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        const std::size_t room = max_bytes - std::min(max_bytes, texts[i]->size());
        captured.truncated = captured.truncated || static_cast<std::size_t>(got) > room;
        texts[i]->append(buffer, std::min(room, static_cast<std::size_t>(got)));
      } else if (got == 0 || errno != EINTR) {
        fds[i].fd = -1;
      }
    }
  }
  // A child may close its streams and run on; the deadline holds for it too.
  if (timeout_s > 0 && !captured.timed_out) {
    const std::int64_t left = std::max<std::int64_t>(0, deadline - system_clock().monotonic_ns());
    if (!process.wait(static_cast<double>(left) / 1e9)) {
      captured.timed_out = true;
      process.kill(SIGKILL);
    }
  }
  captured.exit = *process.wait();
  return captured;
}

}  // namespace purlin
