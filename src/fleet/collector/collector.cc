// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/collector.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kEndedNs = 60'000'000'000;

// A fresh descriptor of the file that was found, although another may have its name now.
Result<profile::Bytes> bytes_of(const FoundCapture& capture) {
  return profile::Bytes::open(fmt::format("/proc/self/fd/{}", capture.file->get()));
}

// Whether a process has it open to write: in which container does not matter. Where the file system
// knows no leases, yes.
bool has_writer(const FoundCapture& capture) {
  const int file = capture.file->get();
  if (::fcntl(file, F_SETLEASE, F_RDLCK) != 0) return true;
  (void)::fcntl(file, F_SETLEASE, F_UNLCK);
  return false;
}

bool is_old(const FoundCapture& capture, std::int64_t now_ns) {
  struct stat info {};
  return ::fstat(capture.file->get(), &info) == 0 &&
         now_ns - std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 > kEndedNs;
}

}  // namespace

double process_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t process_rss_bytes() {
  const Result<std::string> text = read_file("/proc/self/statm");
  if (!text.is_ok()) return 0;
  const std::vector<std::string> words = split(*text, ' ');
  const std::int64_t pages = words.size() > 1 ? parse_int(words[1]).value_or(0) : 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Collector::Collector(CollectorOptions options, BatchSpool& spool, PlaceLabels& places, Clock& clock,
                     Log& log)
    : options_(std::move(options)),
      spool_(spool),
      clock_(clock),
      log_(log),
      finder_(options_.spools),
      builder_(places),
      budget_(
          options_.budget, [this](const std::string& key) { return stop(key); }, log),
      begin_ns_(clock.wall_ns()) {}

Status Collector::look() {
  const std::int64_t now_ns = clock_.wall_ns();
  follow(finder_.look());
  for (auto& [key, followed] : followed_) read(followed, now_ns);
  look_at_windows(now_ns);
  shed_raws();
  const Status committed = commit(now_ns);
  if (committed.is_ok()) drop_ended();
  first_look_ = false;
  publish(committed, now_ns);
  return committed;
}

// A capture whose file was removed is read to its end through its descriptor.
void Collector::follow(std::vector<FoundCapture> found) {
  for (auto& [key, followed] : followed_) followed.gone = true;
  const ReadMarks& marks = spool_.marks();
  for (FoundCapture& capture : found) {
    const std::string key = capture.key;
    if (const auto known = followed_.find(key); known != followed_.end()) {
      known->second.capture = std::move(capture);
      known->second.gone = false;
      continue;
    }
    const auto mark = marks.find(key);
    std::uint64_t resume_at = mark == marks.end() ? 0 : mark->second.offset;
    // What was sent of it is not known: rather less than twice.
    if (first_look_ && spool_.was_lost()) {
      const Result<profile::Bytes> bytes = bytes_of(capture);
      const Result<profile::Sealed> sealed =
          bytes.is_ok() ? profile::scan(*bytes) : Result<profile::Sealed>(bytes.status());
      if (sealed.is_ok()) resume_at = sealed->end;
    }
    Followed& followed = followed_[key];
    followed.capture = std::move(capture);
    followed.tail = std::make_unique<profile::ProfileTail>(resume_at, options_.tail);
  }
}

void Collector::read(Followed& followed, std::int64_t now_ns) {
  if (followed.unusable || followed.tail->is_final()) return;
  const Result<profile::Bytes> bytes = bytes_of(followed.capture);
  if (!bytes.is_ok() || bytes->size() == followed.seen_bytes) return;
  const std::uint64_t before = followed.tail->offset();
  Result<std::vector<profile::TailPart>> parts = followed.tail->read(*bytes);
  if (!parts.is_ok()) {
    if (parts.status().code() == Code::kIo) {  // again in the next look, from the same place
      followed.tail = std::make_unique<profile::ProfileTail>(before, options_.tail);
      return;
    }
    followed.unusable = true;
    ++state_.unusable;
    log_.warn("'{}/{}' is left alone: {}", followed.capture.folder, followed.capture.name,
              parts.status().message());
    return;
  }
  followed.seen_bytes = bytes->size();
  followed.took = followed.took || !parts->empty();
  for (const profile::TailPart& part : *parts) take(followed, part, now_ns);
}

void Collector::take(const Followed& followed, const profile::TailPart& part, std::int64_t now_ns) {
  builder_.add(part, now_ns);
  const Coverage& coverage = part.profile.coverage;
  const double wall_ns =
      static_cast<double>(std::max<std::int64_t>(0, part.end_ns - part.begin_ns));
  state_.launches_seen += coverage.launches_seen;
  state_.launches_lost += coverage.launches_lost;
  state_.launches_sampled_out += coverage.launches_sampled_out;
  state_.capture_overhead_ns += coverage.overhead_ns;
  state_.captured_ns += wall_ns;
  const ProcessInfo* const process = followed.tail->process();
  // A window that was requested exceeds the budget on purpose.
  if (options_.windows == nullptr || process == nullptr ||
      !options_.windows->is_recording(followed.capture.folder, process->pid))
    budget_.look(followed.capture.key, coverage.overhead_ns, wall_ns);
}

// Before files that ended are removed: their descriptors are then held.
void Collector::look_at_windows(std::int64_t now_ns) {
  if (options_.windows == nullptr || !options_.windows->busy()) return;
  std::vector<LiveCapture> captures;
  for (const auto& [key, followed] : followed_) {
    const ProcessInfo* const process = followed.tail->process();
    if (followed.unusable || process == nullptr) continue;
    captures.push_back({followed.capture, process->pid, followed.tail->sealed_ns(),
                        has_ended(followed, now_ns),
                        builder_.describe(process, followed.tail->environment().build, -1)});
  }
  const Status looked = options_.windows->look(captures, [this] { return clock_.wall_ns(); });
  if (!looked.is_ok()) log_.warn("a requested window waits: {}", looked.message());
}

ReadMarks Collector::marks() const {
  ReadMarks marks;
  for (const auto& [key, followed] : followed_)
    if (followed.tail->offset() > 0) marks[key] = {followed.tail->offset()};
  return marks;
}

store::SpoolFill Collector::spool_fill() const {
  store::SpoolFill fill{spool_.totals().waiting_bytes, spool_.max_bytes()};
  if (options_.raws != nullptr) fill.bytes += options_.raws->totals().waiting_bytes;
  return fill;
}

// The builder keeps what could not be written: the next commit takes it.
Status Collector::commit(std::int64_t now_ns) {
  const std::vector<RawCapture> pointers =
      options_.raws == nullptr ? std::vector<RawCapture>() : options_.raws->pointers();
  std::vector<store::Batch> batches;
  if (!builder_.empty() || !pointers.empty()) {
    const double cpu_ns = process_cpu_s() * 1e9;
    BatchFacts facts{options_.node,           begin_ns_,           now_ns,
                     cpu_ns - cpu_before_ns_, process_rss_bytes(), spool_fill()};
    batches = builder_.batches(facts, pointers);
  }
  std::uint64_t rows = 0;
  for (const store::Batch& batch : batches) rows += batch.rows.size();
  PURLIN_TRY(spool_.commit(std::move(batches), marks()));
  builder_.clear();
  if (!pointers.empty()) options_.raws->forget(pointers);
  begin_ns_ = now_ns;
  cpu_before_ns_ = process_cpu_s() * 1e9;
  state_.rows += rows;
  return Status::ok();
}

Status Collector::stop(const std::string& key) {
  const auto found = followed_.find(key);
  if (found == followed_.end() || !options_.stop)
    return error(Code::kNotFound, "the capture is not followed");
  const ProcessInfo* process = found->second.tail->process();
  return options_.stop(found->second.capture, process == nullptr ? 0 : process->pid);
}

bool Collector::has_ended(const Followed& followed, std::int64_t now_ns) const {
  return followed.tail->is_final() ||
         ((followed.gone || is_old(followed.capture, now_ns)) && !has_writer(followed.capture));
}

// Of captures that ended: what is written now has no address yet.
void Collector::offer_raw(Followed& followed) {
  RawSpool* const raws = options_.raws;
  if (raws == nullptr || std::exchange(followed.offered, true) || followed.unusable) return;
  const ProcessInfo* const process = followed.tail->process();
  const Result<profile::Bytes> bytes = bytes_of(followed.capture);
  if (!bytes.is_ok() || process == nullptr || followed.tail->sealed_ns() == 0) return;
  RawCapture raw;
  raw.pointer.begin_ns = process->start_ns;
  raw.pointer.end_ns = std::max(process->start_ns, followed.tail->sealed_ns());
  raw.pointer.kind = "profile";
  raw.run = builder_.describe(process, followed.tail->environment().build, -1);
  if (!raws->wants(raw.run, bytes->size(), raw.pointer.end_ns)) return;
  std::string buffer;
  const Result<std::string_view> all =
      bytes->read(0, static_cast<std::size_t>(bytes->size()), buffer);
  const Status added = all.is_ok() ? raws->add(*all, std::move(raw)).status() : all.status();
  if (!added.is_ok()) log_.warn("a raw profile is left out: {}", added.message());
}

// Batches come first: raw profiles have what batches leave of the room.
void Collector::shed_raws() {
  if (options_.raws == nullptr) return;
  const std::uint64_t waiting = spool_.totals().waiting_bytes;
  options_.raws->make_room(spool_.max_bytes() > waiting ? spool_.max_bytes() - waiting : 0);
  for (const auto& [cause, bytes] : options_.raws->totals().shed_bytes) {
    std::uint64_t& known = raws_shed_[cause];
    if (bytes > known) spool_.add_shed(cause, bytes - known);
    known = bytes;
  }
}

// Only after a commit: what was read is then safe. The mark of a file that is gone goes with the
// next commit.
void Collector::drop_ended() {
  const std::int64_t now_ns = clock_.wall_ns();
  for (auto at = followed_.begin(); at != followed_.end();) {
    Followed& followed = at->second;
    const FoundCapture& capture = followed.capture;
    const bool ended = has_ended(followed, now_ns);
    const bool removes = options_.remove_read && capture.is_watched_folder && !followed.unusable &&
                         !followed.gone && ended;
    // One that stays was offered before a restart, if nothing was read since.
    if (ended && (followed.took || removes)) offer_raw(followed);
    if (removes && remove_file(join_path(capture.folder, capture.name)).is_ok()) ++state_.removed;
    if (ended && (followed.gone || removes)) {
      budget_.forget(at->first);
      at = followed_.erase(at);
    } else {
      ++at;
    }
  }
}

void Collector::publish(const Status& status, std::int64_t now_ns) {
  ++state_.looks;
  if (!status.is_ok()) ++state_.failed_looks;
  state_.captures = followed_.size();
  state_.stopped = budget_.stopped();
  state_.stop_failures = budget_.failed();
  state_.refused = finder_.refused();
  state_.last_look_ns = now_ns;
  state_.cpu_s = process_cpu_s();
  state_.rss_bytes = process_rss_bytes();
  const std::lock_guard lock(mutex_);
  published_ = state_;
}

CollectorState Collector::state() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace purlin::fleet
