// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/session/session.h"

#include "profile/capture/recording/json_text.h"
#include "profile/capture/session/definitions.h"
#include "profile/format/wire.h"
#include "profile/run_facts.h"
#include "profile/spool_fault.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t kControlNs = 500'000'000;  // how long `purlin capture` may have to wait
// After a request another one may follow: for so long, so soon.
constexpr std::int64_t kAfterRequestNs = 2'000'000'000, kControlSoonNs = 5'000'000;
constexpr std::int64_t kFirstSealsNs = 10'000'000;
// What the start-up window costs is not to be taken for the whole run's cost where that is killed
// in it.
constexpr std::int64_t kMinAgeNs = 10'000'000'000;

thread_local bool own_thread = false;

// The arguments with spaces between, as `ps` shows them.
std::string command_line() {
  char buffer[4096];
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  std::string text(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& character : text)
    if (character == '\0') character = ' ';
  return text;
}

std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

std::string labels() {
  JsonText text;
  for (const auto& [key, value] : facts_of_this_run()) text.text(key, value);
  return text.finish();
}

// Not strtod: whether it takes a point is for the program's locale to say.
std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Beyond the program's file size limit (ulimit -f) a write must fail, not end the program.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    const timespec now = {};
    while (!was_pending_ && sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace

std::string Source::control(const ControlRequest&) {
  return JsonText().text("error", "this capture takes no requests").finish();
}

bool SessionOptions::from_environment(const char* layer, SessionOptions& options) {
  options.spool = variable("PURLIN_SPOOL");
  options.layer = layer;
  options.every_launch = variable("PURLIN_FULL") == "1";
  options.idle = variable("PURLIN_IDLE") == "1";
  options.waits = variable("PURLIN_WAITS") == "1";
  if (const auto lasting = number(variable("PURLIN_LASTING_LAUNCH_NS")))
    options.lasting_launch_ns = std::clamp(*lasting, 0.0, 1e6);
  if (const auto budget = number(variable("PURLIN_BUDGET")); budget && *budget > 0 && *budget <= 1)
    options.budget = *budget;
  long window_ms = 0, cell_ms = 0;
  if (std::sscanf(variable("PURLIN_WINDOW").c_str(), "%ld@%ld", &window_ms, &cell_ms) == 2 &&
      window_ms > 0 && window_ms <= cell_ms && cell_ms <= 86'400'000) {
    options.full_window_ns = window_ms * 1'000'000;
    options.full_cell_ns = cell_ms * 1'000'000;
  }
  const long long bytes = std::strtoll(variable("PURLIN_SPOOL_FILE_BYTES").c_str(), nullptr, 10);
  if (bytes >= 4096) options.file_bytes = static_cast<std::uint64_t>(bytes);
  const long period = std::strtol(variable("PURLIN_SEAL_PERIOD_MS").c_str(), nullptr, 10);
  if (period >= 10 && period <= 3'600'000) options.period_ms = period;
  if (options.spool.empty()) return false;
  options.sampler = ProcessSampler::from_environment(options.budget, options.layer == "cuda");
  options.windows = options.sampler.windows;
  return true;
}

CaptureSession::CaptureSession(SessionOptions options, Source& source)
    : options_(std::move(options)), source_(source), recorder_(options_.every_launch) {
  const ProcessSampler& sampler = options_.sampler;
  for (const ProcessSampler::Note& note : sampler.notes) recorder_.note(note.cause, note.text);
  if (!sampler.path.empty() && sampler.left_out.empty())
    keeper_.emplace(sampler.path, sampler.identity);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&condition_, &attributes);
  pthread_condattr_destroy(&attributes);
}

std::string CaptureSession::process_from(std::int64_t start_ns) const {
  return JsonText()
      .integer("pid", ::getpid())
      .integer("parent", ::getppid())
      .text("command", command_line())
      .text("layer", options_.layer)
      .integer("start_ns", start_ns)
      .integer("stands_for", options_.sampler.one_in)
      .raw("labels", labels())
      .finish();
}

std::string CaptureSession::path_from(std::int64_t start_ns) const {
  return options_.spool + '/' + options_.layer + '-' + std::to_string(::getpid()) + '-' +
         std::to_string(start_ns) + ".plprof";
}

bool CaptureSession::create(SpoolFile& file) {
  file.fd = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  struct stat created = {};
  if (file.fd < 0 || ::fstat(file.fd, &created) != 0) return false;
  file.device = created.st_dev;
  file.inode = created.st_ino;
  return true;
}

void CaptureSession::open_file() {
  const std::int64_t start = wall_ns();
  began_ns_ = monotonic_ns();
  continue_at_ = options_.file_bytes;
  process_ = process_from(start);
  recorder_.set_build(variable("PURLIN_BUILD_LABEL"));
  recorder_.set_meta(process_, "[]");
  file_.path = path_from(start);
  if (!create(file_)) report_fault(errno);
}

// A program may close descriptors that it does not know, and get the number for its own file. The
// session must not write to that file.
bool CaptureSession::reach_file() {
  const auto ours = [&](int fd) {
    struct stat now = {};
    return ::fstat(fd, &now) == 0 && now.st_dev == file_.device && now.st_ino == file_.inode;
  };
  if (file_.fd < 0 || ours(file_.fd)) return file_.fd >= 0;
  file_.fd = ::open(file_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file_.fd < 0) report_fault(errno);
  if (file_.fd < 0 || ours(file_.fd)) return file_.fd >= 0;
  ::close(std::exchange(file_.fd, -1));
  return false;
}

bool CaptureSession::write_at(SpoolFile& file, std::string_view bytes) {
  const NoSizeSignal no_signal;
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t got = ::pwrite(file.fd, bytes.data() + written, bytes.size() - written,
                                 static_cast<off_t>(file.offset + written));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      report_fault(got < 0 ? errno : ENOSPC);
      (void)!::ftruncate(file.fd, static_cast<off_t>(file.offset));
      return false;
    }
    written += static_cast<std::size_t>(got);
  }
  file.offset += bytes.size();
  recorder_.add_bytes_written(bytes.size());
  return true;
}

// On a full disk the period stays pending for the next time, and the file ends at its last seal.
bool CaptureSession::write_pending() {
  if (!write_at(file_, pending_)) return false;
  pending_.clear();
  if (next_) switch_file();
  return true;
}

// A long run's file would grow for ever. The next file begins with the definitions of this one, and
// this one ends in order, so that a collector can remove it. Where that fails, this one goes on.
void CaptureSession::continue_in_another() {
  continue_at_ = file_.offset + options_.file_bytes / 4;  // the next attempt
  std::string bytes(file_.offset, '\0');
  const int fd = ::open(file_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const ssize_t got = fd < 0 ? -1 : ::pread(fd, bytes.data(), bytes.size(), 0);
  if (fd >= 0) ::close(fd);
  if (got != static_cast<ssize_t>(bytes.size()) || bytes.size() < wire::kHeaderBytes) return;
  const std::int64_t start = wall_ns();
  SpoolFile next;
  next.path = path_from(start);
  std::string begin;
  wire::append_header(begin);
  begin += definitions_of(std::string_view(bytes).substr(wire::kHeaderBytes));
  if (!create(next) || !write_at(next, begin)) {
    if (next.fd >= 0) {
      ::close(next.fd);
      ::unlink(next.path.c_str());
    }
    return;
  }
  process_ = process_from(start);
  pending_ = recorder_.end_file(file_.offset, start, process_);
  next_pending_ = definitions_of(pending_);
  next_ = std::move(next);
  (void)write_pending();
}

void CaptureSession::switch_file() {
  ::close(std::exchange(file_.fd, -1));
  file_ = std::move(*next_);
  next_.reset();
  pending_ = std::move(next_pending_);
  next_pending_.clear();
  continue_at_ = std::max(options_.file_bytes, 4 * (file_.offset + pending_.size()));
}

// The launcher says it to the user. It judges by the file whether later writes replaced it.
void CaptureSession::report_fault(int code) {
  if (!std::exchange(reported_, true))
    send_spool_fault(options_.spool, {options_.layer, ::getpid(), code});
}

void CaptureSession::start() {
  open_file();
  seal(false);
  if (options_.has_control()) (void)control_.open(options_.spool, options_.layer != "cuda");
  // The program's signal handlers must not run on a thread it does not know of.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int failed = pthread_create(&thread, nullptr, &CaptureSession::run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) {
    pthread_detach(thread);
    return;
  }
  recorder_.note("no_thread",
                 "the thread that seals periods could not be started: a program that is "
                 "killed leaves nothing");
}

void CaptureSession::set_devices(const std::string& devices) { recorder_.set_devices(devices); }

void CaptureSession::wake() {
  pthread_mutex_lock(&mutex_);
  awake_ = true;
  pthread_cond_signal(&condition_);
  pthread_mutex_unlock(&mutex_);
}

void CaptureSession::poke() {
  pthread_mutex_lock(&mutex_);
  poked_ = true;
  pthread_cond_signal(&condition_);
  pthread_mutex_unlock(&mutex_);
}

bool CaptureSession::hurry() {
  if (own_thread) return false;
  pthread_mutex_lock(&mutex_);
  hurried_ = poked_ = true;
  pthread_cond_signal(&condition_);
  pthread_mutex_unlock(&mutex_);
  return true;
}

void* CaptureSession::run(void* self) {
  own_thread = true;
  try {
    static_cast<CaptureSession*>(self)->loop();
  } catch (...) {  // out of memory: the program goes on, capture ends with what is sealed
  }
  return nullptr;
}

void CaptureSession::loop() {
  // The first periods are short, so that a program that crashes early leaves something; and once
  // more when it begins to use the device, which may be long after.
  std::int64_t period_ns = std::max<std::int64_t>(options_.period_ms * 1'000'000 / 16, 10'000'000);
  std::int64_t next_seal = monotonic_ns() + period_ns;
  std::int64_t asked_until = 0;
  while (!finished_) {
    if (control_.serve([&](const ControlRequest& request) { return source_.control(request); }))
      asked_until = monotonic_ns() + kAfterRequestNs;
    std::int64_t next = std::min(next_seal, source_.tick());
    if (control_.is_open()) {
      const std::int64_t now = monotonic_ns();
      next = std::min(next, now + (now < asked_until ? kControlSoonNs : kControlNs));
    }
    const timespec until = {static_cast<time_t>(next / 1'000'000'000),
                            static_cast<long>(next % 1'000'000'000)};
    pthread_mutex_lock(&mutex_);
    while (!awake_ && !poked_ && monotonic_ns() < next)
      pthread_cond_timedwait(&condition_, &mutex_, &until);
    const bool woken = std::exchange(awake_, false);
    poked_ = false;
    const bool hurried = std::exchange(hurried_, false);
    pthread_mutex_unlock(&mutex_);
    if (finished_) return;
    if (hurried) {
      period_ns = std::min(kFirstSealsNs, options_.period_ms * 1'000'000);
      next_seal = monotonic_ns() + period_ns;
    }
    const bool due = monotonic_ns() >= next_seal;
    if (woken || due) source_.collect(false);
    if (!due) continue;
    seal(false);
    period_ns = std::min(period_ns * 2, options_.period_ms * 1'000'000);
    next_seal = monotonic_ns() + period_ns;
  }
}

void CaptureSession::keep_cost(bool final) {
  const Recorder::Spent spent = recorder_.spent();
  const std::int64_t age = monotonic_ns() - began_ns_;
  const SamplingFacts& sampling = spent.sampling;
  if (sampling.budget <= 0 || age <= 0) return;
  CostRecord own;
  own.cupti = source_.tracer_version();
  own.governed = options_.sampler.governed;
  own.budget = sampling.budget;
  own.ended = sampling.partly;
  own.launch_bound = sampling.launch_bound;
  // Later runs of such a program do not record memcpy, unless it is requested.
  own.presence = sampling.presence + (options_.sampler.copies_asked_for ? sampling.copies : 0);
  const auto over = static_cast<double>(final ? age : std::max(age, kMinAgeNs));
  own.rest = std::max(0.0, spent.overhead_ns / over - sampling.presence - sampling.copies);
  recorder_.set_one_in(one_in(own, sampling.budget));
  if (!keeper_ || (!final && !keeper_->due(age))) return;
  const NoSizeSignal no_signal;
  if (const std::string reason = keeper_->keep(std::move(own), age); !reason.empty())
    recorder_.note("sample_record",
                   "the overhead of capture could not be stored, so later runs are recorded as if "
                   "this were the first (--sample auto): " +
                       reason);
}

// A period is one write.
void CaptureSession::seal(bool final) {
  const std::lock_guard<std::mutex> lock(file_mutex_);
  keep_cost(final);
  // Twice where a file is to be continued: its last period, and what the next one lacks.
  for (int i = 0; i < 2; ++i)
    if (!reach_file() || !write_pending()) return;
  pending_ = recorder_.drain(file_.offset, wall_ns(), final);
  if (!write_pending()) return;
  if (final) {
    ::close(std::exchange(file_.fd, -1));
  } else if (continue_at_ > 0 && file_.offset >= continue_at_) {
    continue_in_another();
  }
}

void CaptureSession::finish() {
  if (finished_.exchange(true)) return;
  source_.collect(true);
  seal(true);
  control_.close();
}

}  // namespace purlin::profile::capture
