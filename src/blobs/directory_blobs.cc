// SPDX-License-Identifier: Apache-2.0
#include "blobs/directory_blobs.h"

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"

#include <sys/stat.h>

namespace purlin::blobs {
namespace {

// A swap takes milliseconds: whoever holds the lock for longer hangs, or holds it on purpose.
constexpr double kLongestWaitS = 5;

class DirectoryBlobs : public BlobStore {
 public:
  DirectoryBlobs(std::string directory, Clock& clock)
      : directory_(std::move(directory)), clock_(clock) {}

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    if (!file_exists(path)) return error(Code::kNotFound, "'{}' does not exist", path);
    Result<std::string> bytes = read_file(path, max_bytes);
    if (!bytes.is_ok()) {
      // It may have gone between the two.
      if (!file_exists(path)) return error(Code::kNotFound, "'{}' does not exist", path);
      return bytes.status();
    }
    Blob blob{std::move(bytes).value(), ""};
    blob.tag = sha256_hex(blob.bytes);
    return blob;
  }

  // Takes no lock, and cannot come between a put_if_match's comparison and its rename all the same:
  // from one to the other the name is there, and what is published here replaces nothing. (Nor does
  // a removal come between: what is removed, segments and probes, is not swapped by others.)
  Result<Put> put_if_absent(const std::string& key, std::string_view bytes) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    if (file_exists(path)) return Put::kConflict;  // costs no write
    PURLIN_TRY(make_directories_durably(parent_path(path)));
    PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(path));
    PURLIN_TRY(file.append(bytes));
    const Result<bool> placed = file.commit_new();
    if (placed.is_ok()) return *placed ? Put::kStored : Put::kConflict;
    if (placed.status().code() != Code::kUnavailable) return placed.status();
    // FAT, some network and user space file systems: all who write there come this way.
    PURLIN_ASSIGN(const FileLock lock, this->lock());
    if (file_exists(path)) return Put::kConflict;
    PURLIN_TRY(file.commit());
    return Put::kStored;
  }

  Result<Put> put_if_match(const std::string& key, std::string_view bytes,
                           const std::string& tag) override {
    PURLIN_TRY(check_key(key));
    const std::string path = join_path(directory_, key);
    if (!file_exists(path)) return Put::kConflict;
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
      found.push_back({folder + name, static_cast<std::uint64_t>(info.st_size),
                       std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
    }
    return found;
  }

  Status remove(const std::string& key) override {
    PURLIN_TRY(check_key(key));
    return remove_file(join_path(directory_, key));
  }

  std::string name() const override { return directory_; }

 private:
  Result<FileLock> lock() {
    return FileLock::acquire(join_path(directory_, ".lock"), kLongestWaitS, clock_);
  }

  const std::string directory_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<BlobStore> make_directory_blobs(std::string directory, Clock& clock) {
  return std::make_unique<DirectoryBlobs>(std::move(directory), clock);
}

}  // namespace purlin::blobs
