// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include "base/os/descriptor.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace purlin {
namespace {

namespace fs = std::filesystem;

Status os_error(std::string_view verb, const std::string& path, int code) {
  const Code kind = code == ENOENT ? Code::kNotFound : Code::kIo;
  return error(kind, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

// False with errno set.
bool write_all(int fd, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t put = ::write(fd, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// Whether the file system, not this file, is what the call failed for.
bool is_unsupported(int code) {
  return code == EPERM || code == ENOTSUP || code == ENOSYS || code == EINVAL || code == EMLINK ||
         code == EXDEV;
}

}  // namespace

// A name that was renamed into, linked into or made in a folder is durable only after the folder is
// synced. Some file systems refuse to sync a folder, and a folder without read permission cannot be
// opened: both count as success. Every other error, such as a disk's, is reported.
Status sync_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0 && ::fsync(folder.get()) == 0) return Status::ok();
  switch (errno) {
    case EINVAL:
    case ENOTSUP:
    case ENOSYS:
    case EBADF:
    case EACCES:
    case EPERM:
      return Status::ok();
    default:
      return os_error("sync the directory", path, errno);
  }
}

Result<int> open_to_read(const std::string& path) {
  // Neither the opening of a pipe nor that of a terminal may wait for anybody.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return os_error("read", path, errno);
  struct stat info {};
  struct statfs system {};
  const char* kind = nullptr;
  if (::fstat(fd, &info) != 0 || ::fstatfs(fd, &system) != 0)
    kind = "no file that can be examined";
  else if (S_ISDIR(info.st_mode))
    kind = "a directory";
  else if (S_ISCHR(info.st_mode) && info.st_rdev != makedev(1, 3))  // /dev/null is an empty file
    kind = "a device";
  else if (S_ISBLK(info.st_mode))
    kind = "a device";
  else if (S_ISFIFO(info.st_mode) && system.f_type != PIPEFS_MAGIC)
    kind = "a named pipe";
  if (kind == nullptr && ::fcntl(fd, F_SETFL, 0) == 0) return fd;
  if (kind == nullptr) kind = "no file that can be read";
  ::close(fd);
  return error(Code::kIo, "cannot read '{}': it is {}; name a regular file", path, kind);
}

Status read_parts(const std::string& path, std::size_t max_bytes,
                  const std::function<Status(std::string_view part)>& take) {
  PURLIN_ASSIGN(const int fd, open_to_read(path));
  const Descriptor file(fd);
  std::size_t taken = 0;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", path, errno);
    if (got == 0) return Status::ok();
    taken += static_cast<std::size_t>(got);
    if (taken > max_bytes)
      return error(Code::kInvalid, "'{}' is larger than the limit of {} bytes", path, max_bytes);
    PURLIN_TRY(take({buffer, static_cast<std::size_t>(got)}));
  }
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  std::string contents;
  PURLIN_TRY(read_parts(path, max_bytes, [&](std::string_view part) {
    contents += part;
    return Status::ok();
  }));
  return contents;
}

Result<AtomicFile> AtomicFile::create(const std::string& name) {
  // A link stays a link, and what is no file (/dev/null, a pipe) is written to: renaming over it
  // would put a plain file in its place.
  std::error_code missing;
  const fs::path target = fs::canonical(name, missing);
  AtomicFile file;
  file.path_ = missing ? name : target.string();
  if (!missing && fs::exists(target) && !fs::is_regular_file(target) && !fs::is_directory(target)) {
    file.fd_ = ::open(file.path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return os_error("write", file.path_, errno);
    return file;
  }
  static std::atomic<unsigned> serial{0};
  // A name left over by a killed process of the same id, which containers give out again and again,
  // is not ours to use: the next serial is.
  std::string temporary;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary = fmt::format("{}.tmp.{}.{}", file.path_, ::getpid(), serial++);
    file.fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd_ >= 0 || errno != EEXIST) break;
  }
  if (file.fd_ < 0) return os_error("write", file.path_, errno);
  file.temporary_ = std::move(temporary);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::append(std::string_view bytes) {
  return write_all(fd_, bytes) ? Status::ok() : os_error("write", path_, errno);
}

Status AtomicFile::commit() {
  if (temporary_.empty()) return Status::ok();
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return os_error("write", path_, errno);
  temporary_.clear();
  return sync_folder(parent_path(path_));
}

Result<bool> AtomicFile::commit_new() {
  if (temporary_.empty()) return false;  // a device or a pipe is there
  if (::fsync(fd_) != 0) return os_error("write", path_, errno);
  if (::link(temporary_.c_str(), path_.c_str()) == 0) {
    // If this fails, a second name of the same file stays, which is harmless.
    ::unlink(temporary_.c_str());
  } else if (errno == EEXIST) {
    // NFS tells this, too, of a link that it made when the answer was lost and the request came
    // again.
    struct stat mine {
    }, there{};
    if (::fstat(fd_, &mine) != 0 || ::stat(path_.c_str(), &there) != 0 ||
        mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)
      return false;
    ::unlink(temporary_.c_str());
  } else if (!is_unsupported(errno)) {
    return os_error("write", path_, errno);
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) !=
             0) {
    if (errno == EEXIST) return false;
    if (!is_unsupported(errno)) return os_error("write", path_, errno);
    return error(Code::kUnavailable,
                 "the file system of '{}' has neither hard links nor renames that replace nothing",
                 path_);
  }
  temporary_.clear();
  PURLIN_TRY(sync_folder(parent_path(path_)));
  return true;
}

Status write_atomic(const std::string& name, std::string_view contents) {
  PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(name));
  PURLIN_TRY(file.append(contents));
  return file.commit();
}

Status make_directories(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) return error(Code::kIo, "cannot create the directory '{}': {}", path, code.message());
  return Status::ok();
}

Status make_directories_durably(const std::string& path) {
  if (is_directory(path)) return Status::ok();
  const std::string parent = parent_path(path);
  if (parent != path && is_directory(parent))
    PURLIN_TRY(sync_folder(parent_path(parent)));
  else if (parent != path)
    PURLIN_TRY(make_directories_durably(parent));
  std::error_code code;
  const bool made = fs::create_directory(path, code);
  if (code) return error(Code::kIo, "cannot create the directory '{}': {}", path, code.message());
  return made ? sync_folder(parent) : Status::ok();
}

int open_or_create(const std::string& path) {
  // A pipe must not be waited for.
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK;
  const int fd = ::open(path.c_str(), kFlags);
  if (fd >= 0 || errno != ENOENT) return fd;
  return ::open(path.c_str(), kFlags | O_CREAT | O_NOFOLLOW, 0666);
}

bool file_exists(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

bool is_directory(const std::string& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

bool is_link(const std::string& path) {
  std::error_code code;
  return fs::is_symlink(path, code);
}

Result<std::uint64_t> file_size(const std::string& path) {
  std::error_code code;
  const auto size = fs::file_size(path, code);
  if (code) return error(Code::kIo, "cannot read the size of '{}': {}", path, code.message());
  return std::uint64_t{size};
}

// Not by a rename alone: after a power cut, a file system may know one of the two folders only.
Status move_file(const std::string& from, const std::string& to) {
  PURLIN_TRY(remove_file(to));
  const bool linked = ::link(from.c_str(), to.c_str()) == 0;
  if (!linked && (!is_unsupported(errno) || ::rename(from.c_str(), to.c_str()) != 0))
    return error(Code::kIo, "cannot move '{}' to '{}': {}", from, to, std::strerror(errno));
  PURLIN_TRY(sync_folder(parent_path(to)));
  return linked ? remove_file(from) : Status::ok();
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return os_error("remove", path, errno);
  return Status::ok();
}

Status remove_tree(const std::string& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) return error(Code::kIo, "cannot remove '{}': {}", path, code.message());
  return Status::ok();
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator it(path, code);
  if (code) return error(Code::kIo, "cannot list '{}': {}", path, code.message());
  while (it != fs::directory_iterator()) {
    names.push_back(it->path().filename().string());
    it.increment(code);  // at a failure it is at the end, and the list short
    if (code) return error(Code::kIo, "cannot list '{}': {}", path, code.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> make_temporary_directory(std::string_view prefix) {
  std::string pattern = fmt::format("{}/{}.XXXXXX", environment_variable("TMPDIR", "/tmp"), prefix);
  if (::mkdtemp(pattern.data()) == nullptr)
    return error(
        Code::kIo,
        "cannot make a folder in '{}': {}; set TMPDIR to a folder that exists, is writable "
        "and has space",
        parent_path(pattern), std::strerror(errno));
  return pattern;
}

std::string join_path(std::string_view folder, std::string_view name) {
  return (fs::path(folder) / fs::path(name)).lexically_normal().string();
}

std::string parent_path(std::string_view path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string base_name(std::string_view path) { return fs::path(path).filename().string(); }

std::string absolute_path(const std::string& path) {
  std::error_code code;
  const fs::path result = fs::absolute(path, code);
  return code ? path : result.lexically_normal().string();
}

std::string executable_directory() {
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  if (!code) return self.parent_path().string();
  // No /proc, as in a bare chroot: what was executed, which may be relative.
  const auto* executed = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return executed != nullptr ? parent_path(absolute_path(executed)) : ".";
}

std::string module_path(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  return absolute_path(info.dli_fname);
}

bool is_privileged_process() { return ::getauxval(AT_SECURE) != 0; }

std::string environment_variable(const char* name, std::string_view fallback) {
  const char* value = ::secure_getenv(name);
  return value == nullptr || *value == '\0' ? std::string(fallback) : std::string(value);
}

// HOME, else the account's: a folder under /tmp could be somebody else's. A privileged process acts
// for the account whose rights it has, and must not believe files of its caller.
static std::string home_directory() {
  if (std::string home = environment_variable("HOME"); !home.empty()) return home;
  const passwd* account = ::getpwuid(::geteuid());
  const std::string home = account != nullptr && account->pw_dir != nullptr ? account->pw_dir : "";
  return is_directory(home) ? home : "";
}

bool is_private_directory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 0077) == 0;
}

bool is_own_directory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 0022) == 0;
}

Status make_private_directory(const std::string& path) {
  PURLIN_TRY(make_directories(parent_path(path)));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return os_error("create the directory", path, errno);
  // By descriptor: between two looks at a name, another may stand there.
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (folder.get() < 0 || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid() ||
      ::fchmod(folder.get(), 0700) != 0)
    return error(Code::kIo,
                 "'{}' must be a folder of this user, and no link; remove it, or name another",
                 path);
  return Status::ok();
}

std::string private_temporary_directory() {
  const std::string path =
      join_path(environment_variable("TMPDIR", "/tmp"), fmt::format("purlin-{}", ::geteuid()));
  if (::mkdir(path.c_str(), 0700) == 0 || is_private_directory(path)) return path;
  // Nothing can be made below a file: reading finds nothing, and writing says where it failed.
  return fmt::format("/dev/null/not-private{}", path);
}

std::string user_cache_directory() {
  if (std::string home = environment_variable("XDG_CACHE_HOME"); !home.empty())
    return home + "/purlin";
  if (std::string home = home_directory(); !home.empty()) return home + "/.cache/purlin";
  return private_temporary_directory();
}

std::string user_state_directory() {
  if (std::string folder = environment_variable("PURLIN_STATE"); !folder.empty()) return folder;
  if (const std::string home = environment_variable("XDG_STATE_HOME"); !home.empty())
    return home + "/purlin";
  if (const std::string home = home_directory(); !home.empty())
    return home + "/.local/state/purlin";
  return private_temporary_directory();
}

std::string user_config_directory() {
  if (std::string home = environment_variable("XDG_CONFIG_HOME"); !home.empty())
    return home + "/purlin";
  if (std::string home = environment_variable("HOME"); !home.empty())
    return home + "/.config/purlin";
  return "/etc/purlin";
}

Result<FileLock> FileLock::acquire(const std::string& path) {
  const int fd = open_or_create(path);
  if (fd < 0) return os_error("open the lock", path, errno);
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int code = errno;
    ::close(fd);
    return os_error("lock", path, code);
  }
  return FileLock(fd);
}

Result<FileLock> FileLock::acquire(const std::string& path, double seconds, Clock& clock) {
  int fd = open_or_create(path);
  // Another user made it. A lock needs only an open file, not the permission to write.
  if (fd < 0 && errno == EACCES) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open the lock", path, errno);
  FileLock lock(fd);  // not held yet; closes it
  constexpr std::int64_t kFirstPauseNs = 1'000'000, kLongestPauseNs = 50'000'000;
  const std::int64_t end = clock.monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
  for (std::int64_t pause = kFirstPauseNs; ::flock(fd, LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return os_error("lock", path, errno);
    if (clock.monotonic_ns() >= end)
      return error(Code::kUnavailable,
                   "another program holds '{}' (waited {:g} s); try again when it is done, or find "
                   "it with: fuser -v '{}'",
                   path, seconds, path);
    clock.sleep_ns(pause);
    pause = std::min(2 * pause, kLongestPauseNs);
  }
  return lock;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace purlin
