// SPDX-License-Identifier: Apache-2.0
#include "tune/session/journal.h"

#include "base/files.h"
#include "model/document.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxJournalBytes = std::size_t{4} << 30;

Status os_error(std::string_view verb, const std::string& path) {
  return error(Code::kIo, "cannot {} the session's journal '{}': {}", verb, path,
               std::strerror(errno));
}

}  // namespace

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      header_(std::move(other.header_)),
      fd_(std::exchange(other.fd_, -1)),
      records_(std::move(other.records_)),
      finished_(std::move(other.finished_)),
      finished_budget_(std::move(other.finished_budget_)) {}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);  // and with it goes the lock
}

Result<Journal> Journal::open(const std::string& path, const Json& header) {
  PURLIN_TRY(make_directories(parent_path(path)));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return os_error("open", path);
  Journal journal(path, header, fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return os_error("lock", path);
    return error(Code::kUnavailable,
                 "another process is running this session (it holds '{}'); wait for it, or give "
                 "another --seed",
                 path);
  }
  PURLIN_TRY(journal.load());
  return journal;
}

Status Journal::load() {
  PURLIN_ASSIGN(const std::string text, read_file(path_, kMaxJournalBytes));
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  std::size_t number = 0;
  for (std::size_t start = 0; start < whole;) {
    const std::size_t end = text.find('\n', start);
    const Result<Json> line = Json::parse(std::string_view(text).substr(start, end - start));
    ++number;
    const Status status = line.is_ok() ? take(*line, number) : line.status();
    if (!status.is_ok())
      return error(Code::kCorrupt, "'{}' line {}: {}; --fresh starts the session anew", path_,
                   number, status.message());
    start = end + 1;
  }
  if (whole < text.size() && ::ftruncate(fd_, static_cast<off_t>(whole)) != 0)
    return os_error("repair", path_);
  return number == 0 ? write_line(header_) : Status::ok();
}

Status Journal::take(const Json& line, std::size_t number) {
  if (number == 1) return check_schema(line, "purlin.session", 1);
  if (const Json* reason = line.find("finished")) {
    finished_ = reason->as_string();
    finished_budget_ = line["budget"].as_string();
    return Status::ok();
  }
  const Json* evaluation = line.find("evaluation");
  if (evaluation == nullptr) return Status::ok();  // of a newer Purlin, and not needed here
  PURLIN_ASSIGN(Evaluation made, evaluation_from_json(*evaluation));
  records_.push_back({std::move(made), line["elapsed_s"].as_double()});
  finished_.clear();
  return Status::ok();
}

Status Journal::write_line(const Json& line) {
  const std::string text = line.dump() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return os_error("write", path_);
    done += static_cast<std::size_t>(wrote);
  }
  return ::fdatasync(fd_) == 0 ? Status::ok() : os_error("write", path_);
}

Status Journal::append(const Evaluation& evaluation, double elapsed_s) {
  return write_line(Json::object({{"evaluation", to_json(evaluation)}, {"elapsed_s", elapsed_s}}));
}

Status Journal::finish(std::string_view reason, std::string_view budget) {
  finished_ = reason;
  finished_budget_ = budget;
  return write_line(Json::object({{"finished", reason}, {"budget", budget}}));
}

Status Journal::restart() {
  records_.clear();
  finished_.clear();
  if (::ftruncate(fd_, 0) != 0) return os_error("empty", path_);
  return write_line(header_);
}

}  // namespace purlin::tune
