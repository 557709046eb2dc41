// SPDX-License-Identifier: Apache-2.0
// SpoolFinder: the capture files of all users in the folders that a collector watches.
//
// Files and folders belong to strangers. A file counts if it is regular, no link, has one name,
// belongs to its folder's owner (or the folder is open to all, as /tmp is), and is within bounds.
// It is opened once, without following links, and read through that descriptor: a swap of names
// changes nothing. One owner, one thread. Failure: a folder or file that cannot be used is counted
// by cause.
#pragma once

#include "base/os/descriptor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace purlin::fleet {

struct FoundCapture {
  std::string key;     // of its folder, name and inode: the same after a restart
  std::string folder;  // for its control socket, and to remove it
  std::string name;
  uid_t owner = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<Descriptor> file;
  bool is_watched_folder = false;  // below a folder that was named, not of `purlin profile`
};

struct SpoolFinderOptions {
  std::vector<std::string> folders;    // of spools, or of folders of spools: PURLIN_SPOOL
  std::vector<std::string> temporary;  // where `purlin profile` makes its own: /tmp
  std::size_t max_files = 4096, max_folders = 4096;
};

class SpoolFinder {
 public:
  explicit SpoolFinder(SpoolFinderOptions options) : options_(std::move(options)) {}
  // Those that are there now; ones that were found before keep their descriptor.
  std::vector<FoundCapture> look();
  // "not_permitted", "link", "foreign_owner", "several_names", "too_many", … of the last look.
  const std::map<std::string, std::uint64_t>& refused() const { return refused_; }

 private:
  void look_in(int parent, const std::string& path, bool watched, int levels);
  void look_at(int folder, const std::string& path, const std::string& name, bool watched);

  const SpoolFinderOptions options_;
  std::map<std::string, std::shared_ptr<Descriptor>> open_, found_now_;
  std::vector<FoundCapture> found_;
  std::size_t folders_ = 0;
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace purlin::fleet
