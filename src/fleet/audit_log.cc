// SPDX-License-Identifier: Apache-2.0
#include "fleet/audit_log.h"

#include "base/files.h"
#include "base/json/json.h"
#include "base/time.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace purlin::fleet {
namespace {

constexpr int kOlderFiles = 4;
constexpr std::size_t kMaxTargetInLine = 1024;

std::string line_of(const AuditEntry& entry) {
  Json json = Json::object({{"time", format_rfc3339_ns(entry.wall_ns)}});
  json.set("token", entry.holder);
  json.set("peer", entry.peer);
  json.set("kind", entry.kind);
  json.set("method", entry.method);
  json.set("target", entry.target.substr(0, kMaxTargetInLine));
  json.set("status", entry.status);
  json.set("bytes", entry.bytes);
  return json.dump() + "\n";
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& path, std::uint64_t max_bytes) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, max_bytes));
  PURLIN_TRY(log->open_file());
  return log;
}

Status AuditLog::open_file() {
  PURLIN_ASSIGN(AppendedFile file, AppendedFile::open(path_));
  file_.reset();
  file_.emplace(std::move(file));
  PURLIN_ASSIGN(const std::string text, read_file(path_));
  const std::size_t end = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  end_ = end;
  return end == text.size() ? Status::ok() : file_->cut(end);
}

Status AuditLog::rotate() {
  for (int i = kOlderFiles - 1; i >= 0; --i) {
    const std::string from = i == 0 ? path_ : fmt::format("{}.{}", path_, i);
    const std::string to = fmt::format("{}.{}", path_, i + 1);
    if (std::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
      return error(Code::kIo, "cannot rename '{}' to '{}': {}", from, to, std::strerror(errno));
  }
  return open_file();
}

Status AuditLog::write(const AuditEntry& entry) {
  const std::string line = line_of(entry);
  const std::lock_guard lock(mutex_);
  if (end_ > 0 && end_ + line.size() > max_bytes_) PURLIN_TRY(rotate());
  PURLIN_TRY(file_->append(end_, line));
  end_ += line.size();
  return Status::ok();
}

}  // namespace purlin::fleet
