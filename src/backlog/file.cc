// SPDX-License-Identifier: Apache-2.0
#include "backlog/file.h"

#include "base/files.h"
#include "base/json/json_lines.h"

#include <algorithm>

namespace purlin::backlog {
namespace {

// The open tasks, in the order of their first finding.
std::vector<Task> replay(const std::vector<Json>& lines) {
  std::vector<Task> tasks;
  for (const Json& line : lines) {
    const std::string& done = line["done"].as_string();
    if (!done.empty()) {
      std::erase_if(tasks, [&](const Task& task) { return task.id() == done; });
      continue;
    }
    Task task = task_from_json(line);
    if (task.key.kind.empty()) continue;
    const auto same = std::find_if(tasks.begin(), tasks.end(),
                                   [&](const Task& other) { return other.id() == task.id(); });
    if (same == tasks.end()) {
      tasks.push_back(std::move(task));
    } else {
      task.seen = same->seen + 1;
      task.first_queued_at = same->first_queued_at;
      *same = std::move(task);
    }
  }
  return tasks;
}

// Calls `use(file, lines)` under the lock of the file.
template <typename Use>
Status with_file(const std::string& cache_directory, Use use) {
  PURLIN_TRY(make_directories_durably(cache_directory));
  const std::string path = backlog_path(cache_directory);
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path + ".lock"));
  PURLIN_ASSIGN(JsonLines file, JsonLines::open(path));
  const std::vector<Json> lines = file.take_lines();
  return use(file, lines);
}

}  // namespace

std::string backlog_path(const std::string& cache_directory) {
  return join_path(cache_directory, "backlog.jsonl");
}

Status queue(const std::string& cache_directory, const std::vector<Task>& tasks) {
  if (tasks.empty()) return Status::ok();
  return with_file(cache_directory, [&](JsonLines& file, const std::vector<Json>&) -> Status {
    for (const Task& task : tasks) PURLIN_TRY(file.append(to_json(task)));
    return Status::ok();
  });
}

Status finish(const std::string& cache_directory, const std::string& id) {
  return with_file(cache_directory, [&](JsonLines& file, const std::vector<Json>& lines) -> Status {
    for (const Task& task : replay(lines))
      if (task.id() == id)
        return file.append(Json::object({{"schema", kBacklogSchema}, {"done", id}}));
    return error(Code::kNotFound, "no open task has the id '{}'; see purlin backlog", id);
  });
}

Result<std::vector<Task>> open_tasks(const std::string& cache_directory) {
  if (!file_exists(backlog_path(cache_directory))) return std::vector<Task>();
  // Reads without a lock and writes nothing: the user may have no right to write here. Another
  // process may be writing the last line.
  PURLIN_ASSIGN(const std::string text, read_file(backlog_path(cache_directory)));
  std::vector<Json> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != text.npos;
       start = end + 1) {
    Result<Json> line = Json::parse(std::string_view(text).substr(start, end - start));
    if (!line.is_ok())
      return error(Code::kCorrupt, "{}, line {}: {}; remove that line",
                   backlog_path(cache_directory), lines.size() + 1, line.status().message());
    lines.push_back(std::move(line).value());
  }
  return replay(lines);
}

}  // namespace purlin::backlog
