// SPDX-License-Identifier: Apache-2.0
// JsonLines: a file of one JSON value per line that survives its writer's death at any moment.
//
// A line counts once its newline is on disk: append() returns after fsync, and a torn last line is
// cut off when the file is opened again. One process at a time holds a file (flock). Thread-safety:
// belongs to one thread. Failure: kIo; kUnavailable when another process holds it; kCorrupt, with
// the line's number, when it is damaged anywhere but at its end.
#pragma once

#include "base/json/json.h"
#include "base/status.h"

#include <string>
#include <utility>
#include <vector>

namespace purlin {

class JsonLines {
 public:
  // Creates the file, and its folder, where they do not exist.
  static Result<JsonLines> open(const std::string& path);
  JsonLines(JsonLines&& other) noexcept;
  JsonLines& operator=(JsonLines&&) = delete;
  ~JsonLines();

  const std::string& path() const { return path_; }
  // What was in the file when it was opened.
  std::vector<Json> take_lines() { return std::exchange(lines_, {}); }

  Status append(const Json& line);  // durable once it returns ok
  Status clear();                   // the file is empty afterwards

 private:
  JsonLines(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status load();

  std::string path_;
  int fd_;
  std::vector<Json> lines_;
};

}  // namespace purlin
