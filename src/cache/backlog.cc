// SPDX-License-Identifier: Apache-2.0
#include "cache/backlog.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/json/json_lines.h"

#include <algorithm>

namespace purlin::cache {
namespace {

constexpr std::string_view kSchema = "purlin.backlog/1";

Task task_from_json(const Json& json) {
  Task task;
  task.kind = json["kind"].as_string();
  task.kernel = json["kernel"].as_string();
  task.shape = json["shape"].as_string();
  task.spec = json["spec"].as_string();
  task.device = json["device"].as_string();
  task.toolkit = json["toolkit"].as_string();
  task.driver = json["driver"].as_string();
  task.reason = json["reason"].as_string();
  task.ratio = json["ratio"].as_double();
  task.queued_at = json["queued_at"].as_string();
  task.launches = static_cast<std::uint64_t>(std::max<std::int64_t>(json["launches"].as_int(), 0));
  return task;
}

// Tasks in the order first queued, after all that was finished.
std::vector<Task> replay(const std::vector<Json>& lines) {
  std::vector<Task> tasks;
  for (const Json& line : lines) {
    const std::string& done = line["done"].as_string();
    if (!done.empty()) {
      std::erase_if(tasks, [&](const Task& task) { return task.id() == done; });
      continue;
    }
    Task task = task_from_json(line);
    if (task.kind.empty()) continue;
    const auto same = std::find_if(tasks.begin(), tasks.end(),
                                   [&](const Task& other) { return other.id() == task.id(); });
    if (same == tasks.end()) {
      tasks.push_back(std::move(task));
    } else {
      task.seen = same->seen + 1;
      *same = std::move(task);
    }
  }
  return tasks;
}

// Runs `use(file, lines)` with the file held; others wait.
template <typename Use>
Status with_file(const std::string& cache_directory, Use use) {
  PURLIN_TRY(make_directories(cache_directory));
  const std::string path = backlog_path(cache_directory);
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path + ".lock"));
  PURLIN_ASSIGN(JsonLines file, JsonLines::open(path));
  const std::vector<Json> lines = file.take_lines();
  return use(file, lines);
}

}  // namespace

std::string Task::id() const {
  FieldHasher hasher;
  hasher.add(kind).add(kernel).add(shape).add(device).add(toolkit).add(driver);
  return hasher.hex().substr(0, 12);
}

Json to_json(const Task& task) {
  return Json::object({{"schema", kSchema},
                       {"id", task.id()},
                       {"kind", task.kind},
                       {"kernel", task.kernel},
                       {"shape", task.shape},
                       {"spec", task.spec},
                       {"device", task.device},
                       {"toolkit", task.toolkit},
                       {"driver", task.driver},
                       {"reason", task.reason},
                       {"ratio", task.ratio},
                       {"queued_at", task.queued_at},
                       {"seen", task.seen},
                       {"launches", task.launches}});
}

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
      if (task.id() == id) return file.append(Json::object({{"schema", kSchema}, {"done", id}}));
    return error(Code::kNotFound, "no open task has the id '{}'; see purlin backlog", id);
  });
}

Result<std::vector<Task>> open_tasks(const std::string& cache_directory) {
  std::vector<Task> tasks;
  if (!file_exists(backlog_path(cache_directory))) return tasks;
  // Reads without a lock and writes nothing, so that it works on a cache that is not one's own. The
  // last line may be under way.
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
  tasks = replay(lines);
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return a.ratio != b.ratio ? a.ratio > b.ratio : a.seen > b.seen;
  });
  return tasks;
}

}  // namespace purlin::cache
