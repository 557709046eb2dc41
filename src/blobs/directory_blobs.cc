// SPDX-License-Identifier: Apache-2.0
#include "blobs/directory_blobs.h"

#include "base/files.h"
#include "base/os/wall_time.h"
#include "base/sha256.h"
#include "base/text.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace purlin::blobs {
namespace {

// False also if a parent of the path is not a folder. An error such as a missing permission is not
// absence: an unreadable share is not an empty share.
Result<bool> is_there(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return error(Code::kIo, "cannot read '{}': {}", path, std::strerror(errno));
}

class DirectoryBlobs : public BlobStore {
 public:
  DirectoryBlobs(std::string directory, double longest_wait_s, Clock& clock)
      : directory_(std::move(directory)), longest_wait_s_(longest_wait_s), clock_(clock) {}

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    PURLIN_ASSIGN(const bool there, is_there(path));
    if (!there) return error(Code::kNotFound, "'{}' does not exist", path);
    PURLIN_ASSIGN(std::string bytes, read_file(path, max_bytes));
    Blob blob{std::move(bytes), ""};
    blob.tag = sha256_hex(blob.bytes);
    return blob;
  }

  // Takes no lock, and cannot come between a put_if_match's comparison and its rename all the same:
  // from one to the other the name is there, and what is published here replaces nothing. (Nor does
  // a removal come between: what is removed, segments and probes, is not swapped by others.)
  Result<Put> put_if_absent(const std::string& key, std::string_view bytes) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    PURLIN_ASSIGN(bool there, is_there(path));
    if (there) return conflict(path);  // costs no write
    PURLIN_TRY(make_directories_durably(parent_path(path)));
    PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(path));
    PURLIN_TRY(file.append(bytes));
    const Result<bool> placed = file.commit_new();
    if (placed.is_ok() && !*placed) return conflict(path);
    if (placed.is_ok()) return Put::kStored;
    if (placed.status().code() != Code::kUnavailable) return placed.status();
    // FAT, some network and user space file systems: all who write there come this way.
    PURLIN_ASSIGN(const FileLock lock, this->lock());
    PURLIN_ASSIGN(there, is_there(path));
    if (there) return conflict(path);
    PURLIN_TRY(file.commit());
    return Put::kStored;
  }

  Result<Put> put_if_match(const std::string& key, std::string_view bytes,
                           const std::string& tag) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    PURLIN_ASSIGN(const bool there, is_there(path));
    if (!there) return Put::kConflict;
    PURLIN_ASSIGN(const FileLock lock, this->lock());
    const Result<std::string> current = read_file(path);
    if (!current.is_ok() && current.status().code() != Code::kNotFound) return current.status();
    if (!current.is_ok() || sha256_hex(*current) != tag) return Put::kConflict;
    PURLIN_TRY(write_atomic(path, bytes));
    return Put::kStored;
  }

  Result<std::vector<BlobInfo>> list(const std::string& folder) override {
    const std::string path = join_path(directory_, folder);
    std::vector<BlobInfo> found;
    if (!is_directory(path)) return found;
    PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(path));
    for (const std::string& name : names) {
      struct stat info {};
      // A file that went meanwhile, or a folder, is no object.
      if (::stat(join_path(path, name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      found.push_back(
          {folder + name, static_cast<std::uint64_t>(info.st_size), wall_ns_of(info.st_mtim)});
    }
    return found;
  }

  Status remove(const std::string& key) override {
    PURLIN_TRY(check_key(key));
    return remove_file(join_path(directory_, key));
  }

  std::string name() const override { return directory_; }

 private:
  // The writer may not have synced the name yet. A caller that gets kConflict goes on as if it had
  // stored the object.
  static Result<Put> conflict(const std::string& path) {
    PURLIN_TRY(sync_folder(parent_path(path)));
    return Put::kConflict;
  }
  Result<FileLock> lock() {
    return FileLock::acquire(join_path(directory_, ".lock"), longest_wait_s_, clock_);
  }

  const std::string directory_;
  const double longest_wait_s_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<BlobStore> make_directory_blobs(std::string directory, double longest_wait_s,
                                                Clock& clock) {
  return std::make_unique<DirectoryBlobs>(std::move(directory), longest_wait_s, clock);
}

}  // namespace purlin::blobs
