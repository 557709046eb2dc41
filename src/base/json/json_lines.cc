// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_lines.h"

#include "base/appended_file.h"
#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <sys/file.h>

namespace purlin {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 30;

Status os_error(std::string_view verb, const std::string& path) {
  return error(Code::kIo, "cannot {} '{}': {}", verb, path, std::strerror(errno));
}

}  // namespace

Result<JsonLines> JsonLines::open(const std::string& path) {
  PURLIN_ASSIGN(AppendedFile appended, AppendedFile::open(path));
  JsonLines file(path, std::move(appended));
  if (::flock(file.file_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return os_error("lock", path);
    return error(Code::kUnavailable, "another process holds '{}'", path);
  }
  PURLIN_TRY(file.load());
  return file;
}

Status JsonLines::load() {
  PURLIN_ASSIGN(const std::string text, read_file(path_, kMaxBytes));
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  for (std::size_t start = 0; start < whole;) {
    const std::size_t end = text.find('\n', start);
    Result<Json> line = Json::parse(std::string_view(text).substr(start, end - start));
    if (!line.is_ok())
      return error(Code::kCorrupt, "'{}' line {}: {}", path_, lines_.size() + 1,
                   line.status().message());
    lines_.push_back(std::move(line).value());
    start = end + 1;
  }
  end_ = whole;
  return whole < text.size() ? file_.cut(end_) : Status::ok();
}

Status JsonLines::append(const Json& line) { return append(std::vector<Json>{line}); }

Status JsonLines::append(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  PURLIN_TRY(file_.append(end_, text));
  end_ += text.size();
  return Status::ok();
}

Status JsonLines::clear() {
  lines_.clear();
  PURLIN_TRY(file_.cut(0));
  end_ = 0;
  return file_.sync();
}

}  // namespace purlin
