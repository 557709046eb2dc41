// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_record.h"

#include "profile/capture/sampling/cost_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::string_view kHeader = "purlin-cost/3";
constexpr std::string_view kEnd = "end\n";
constexpr int kIdentityLines = 3;
constexpr double kMillion = 1e6;
constexpr std::int64_t kMaxPpm = 1'000'000'000;
constexpr double kFade = 0.25;
// What capture costs is an estimate: where it is beyond the budget, so much more may be, too.
constexpr double kMargin = 1.5;
constexpr int kTemporaries = 16;  // that killed writers may leave behind, of each record
constexpr time_t kStaleS = 60;

std::int64_t ppm(double share) {
  const double value = std::round(share * kMillion);
  return value > 0 ? static_cast<std::int64_t>(std::min(value, static_cast<double>(kMaxPpm))) : 0;
}

// Takes "NAME TEXT\n" off the front.
bool take_line(std::string_view& text, std::string_view name, std::string_view& value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end <= name.size() || text.substr(0, name.size()) != name ||
      text[name.size()] != ' ')
    return false;
  value = text.substr(name.size() + 1, end - name.size() - 1);
  text.remove_prefix(end + 1);
  return true;
}

bool take_number(std::string_view& text, std::string_view name, std::int64_t most,
                 std::int64_t& value) {
  std::string_view digits;
  if (!take_line(text, name, digits) || digits.empty() || digits.front() == '-') return false;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return failed == std::errc() && end == digits.data() + digits.size() && value <= most;
}

std::string failure(const char* what, const std::string& path) {
  return std::string("cannot ") + what + ' ' + path + ": error " + std::to_string(errno);
}

// -1 when it cannot be opened. Never waits, because the path may name something other than a file.
int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool make_folders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (::mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST && errno != EISDIR &&
        errno != EROFS && errno != EACCES)
      return false;
  return true;
}

// Creates a new file next to the record. Only kTemporaries names exist, so that killed writers
// leave at most that many files. An old file belongs to no live writer.
int create_temporary(const std::string& path, std::string& temporary) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto first = static_cast<unsigned>(::getpid()) ^ static_cast<unsigned>(now.tv_nsec >> 10);
  for (int attempt = 0; attempt < kTemporaries; ++attempt) {
    temporary =
        path + '~' + std::to_string((first + static_cast<unsigned>(attempt)) % kTemporaries);
    const auto create = [&] {
      return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    };
    int fd = create();
    if (fd < 0 && errno != EEXIST) return -1;
    struct stat there = {};
    if (fd < 0 && ::lstat(temporary.c_str(), &there) == 0 &&
        there.st_mtime + kStaleS < now.tv_sec && ::unlink(temporary.c_str()) == 0)
      fd = create();
    if (fd >= 0) return fd;
  }
  errno = EEXIST;
  return -1;
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t got = ::write(fd, text.data(), text.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

double CostRecord::cost(double of_budget) const {
  return presence + (governed && budget > 0 ? rest * of_budget / budget : rest);
}

int one_in(const CostRecord& record, double budget) {
  const double ratio = record.cost(budget) / budget;
  // What was rounded when it was written must not make one more of it.
  constexpr double kRounding = 1e-4;
  if (!(ratio > 1 + kRounding)) return 1;
  return static_cast<int>(
      std::min(std::ceil(kMargin * ratio - kRounding), double{kMaxRunsPerCapture}));
}

CostRecord blend(const CostRecord& known, const CostRecord& own) {
  CostRecord result = own;
  result.runs = 1;
  // Of another CUPTI nothing is known.
  if (known.runs <= 0 || known.cupti != own.cupti || known.governed != own.governed) return result;
  const double part = std::max(kFade, 1.0 / (static_cast<double>(known.runs) + 1));
  result.presence = known.presence + part * (own.presence - known.presence);
  const double rest = known.cost(own.budget) - known.presence;
  result.rest = rest + part * (own.rest - rest);
  result.runs = std::min<std::int64_t>(known.runs + 1, kMaxPpm);
  return result;
}

std::string to_text(const CostRecord& record) {
  std::string text = std::string(kHeader) + '\n' + record.identity;
  const auto number = [&](const char* name, std::int64_t value) {
    text += std::string(name) + ' ' + std::to_string(value) + '\n';
  };
  number("cupti", record.cupti);
  number("governed", record.governed ? 1 : 0);
  number("ended", record.ended ? 1 : 0);
  number("launch_bound", record.launch_bound ? 1 : 0);
  number("budget_ppm", std::clamp<std::int64_t>(ppm(record.budget), 1, 1'000'000));
  number("presence_ppm", ppm(record.presence));
  number("rest_ppm", ppm(record.rest));
  number("runs", record.runs);
  number("written_s", record.written_s);
  return text += kEnd;
}

std::optional<CostRecord> parse_cost_record(std::string_view text) {
  if (text.size() > kMaxCostBytes || text.substr(0, kHeader.size()) != kHeader) return {};
  text.remove_prefix(kHeader.size());
  if (text.empty() || text.front() != '\n') return {};
  text.remove_prefix(1);
  std::size_t length = 0;
  for (int line = 0; line < kIdentityLines; ++line) {
    const std::size_t end = text.find('\n', length);
    if (end == std::string_view::npos) return {};
    length = end + 1;
  }
  const std::string_view identity = text.substr(0, length);
  text.remove_prefix(length);
  std::int64_t cupti = 0, governed = 0, ended = 0, bound = 0, budget = 0, presence = 0, rest = 0;
  CostRecord record;
  if (!take_number(text, "cupti", UINT32_MAX, cupti) ||
      !take_number(text, "governed", 1, governed) || !take_number(text, "ended", 1, ended) ||
      !take_number(text, "launch_bound", 1, bound) ||
      !take_number(text, "budget_ppm", 1'000'000, budget) || budget == 0 ||
      !take_number(text, "presence_ppm", kMaxPpm, presence) ||
      !take_number(text, "rest_ppm", kMaxPpm, rest) ||
      !take_number(text, "runs", kMaxPpm, record.runs) ||
      !take_number(text, "written_s", INT64_MAX, record.written_s) || text != kEnd)
    return {};
  record.identity = identity;
  record.cupti = static_cast<std::uint32_t>(cupti);
  record.governed = governed == 1;
  record.ended = ended == 1;
  record.launch_bound = bound == 1;
  record.budget = static_cast<double>(budget) / kMillion;
  record.presence = static_cast<double>(presence) / kMillion;
  record.rest = static_cast<double>(rest) / kMillion;
  return record;
}

CostFile read_cost_record(const std::string& path, std::string_view identity) {
  CostFile file;
  const int fd = open_to_read(path);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return file;
    file.state = CostFile::State::kUnusable;
    file.reason = failure("read", path);
    return file;
  }
  char buffer[kMaxCostBytes + 1];
  std::size_t size = 0;
  struct stat info = {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  while (regular && size < sizeof buffer) {
    const ssize_t got = ::read(fd, buffer + size, sizeof buffer - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  ::close(fd);
  std::optional<CostRecord> record = parse_cost_record({buffer, size});
  if (record && record->identity == identity) {
    file.state = CostFile::State::kRead;
    file.record = std::move(*record);
    return file;
  }
  file.state = CostFile::State::kUnusable;
  file.reason = path + (record ? " is another program's" : " is damaged, or of another version");
  return file;
}

std::string write_cost_record(const std::string& path, const CostRecord& record) {
  const std::string text = to_text(record);
  if (text.size() > kMaxCostBytes) return path + " would be too long";
  std::string temporary;
  int fd = create_temporary(path, temporary);
  if (fd < 0 && errno == ENOENT && make_folders(path)) fd = create_temporary(path, temporary);
  if (fd < 0) return failure("create", temporary);
  const bool written = write_whole(fd, text);
  const std::string reason = written ? "" : failure("write", temporary);
  ::close(fd);
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return "";
  const std::string renamed = written ? failure("replace", path) : reason;
  ::unlink(temporary.c_str());
  return renamed;
}

std::string CostKeeper::keep(CostRecord own, std::int64_t age_ns) {
  next_ns_ = std::max(next_ns_, 2 * age_ns);
  const CostFile there = read_cost_record(path_, identity_);
  const bool others = there.state == CostFile::State::kRead && to_text(there.record) != mine_;
  if (others) before_ = there.record;
  own.identity = identity_;
  CostRecord record = before_ ? blend(*before_, own) : blend({}, own);
  record.written_s = ::time(nullptr);
  mine_ = to_text(record);
  std::string reason = write_cost_record(path_, record);
  if (reason.empty() && there.state == CostFile::State::kAbsent) bound_cost_records(path_);
  return reason;
}

}  // namespace purlin::profile::capture
