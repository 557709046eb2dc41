// SPDX-License-Identifier: Apache-2.0
// JsonLines: a file of one JSON value per line that survives its writer's death at any moment.
//
// A line counts once its newline is on disk: append() returns after fsync, and a torn last line is
// cut off when the file is opened again. One process at a time holds a file (flock). Thread-safety:
// belongs to one thread. Failure: kIo; kUnavailable when another process holds it; kCorrupt, with
// the line's number, when it is damaged anywhere but at its end.
#pragma once

#include "base/appended_file.h"
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
  JsonLines(JsonLines&&) = default;

  const std::string& path() const { return path_; }
  // What was in the file when it was opened.
  std::vector<Json> take_lines() { return std::exchange(lines_, {}); }

  Status append(const Json& line);                // durable once it returns ok
  Status append(const std::vector<Json>& lines);  // in one write
  Status clear();                                 // the file is empty afterwards

 private:
  JsonLines(std::string path, AppendedFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Status load();

  std::string path_;
  AppendedFile file_;      // and with it goes the lock
  std::uint64_t end_ = 0;  // of the last whole line
  std::vector<Json> lines_;
};

}  // namespace purlin
