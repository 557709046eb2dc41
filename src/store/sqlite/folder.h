// SPDX-License-Identifier: Apache-2.0
// Folder: the names of an SQLite store's files.
//
// A plain value; reads names only. Failure: kIo.
#pragma once

#include "base/status.h"
#include "store/calendar.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::store {

class Folder {
 public:
  explicit Folder(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }
  std::string catalog() const;
  std::string level_folder(Level level) const;
  std::string path(Level level, std::int64_t ns) const;  // of the period that holds ns
  bool has(Level level, std::int64_t ns) const;
  // The begins of the periods that have a file, ascending.
  Result<std::vector<std::int64_t>> periods(Level level) const;

 private:
  std::string root_;
};

}  // namespace purlin::store
