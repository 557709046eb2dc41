// SPDX-License-Identifier: Apache-2.0
#include "cache/store/record_log.h"

#include "base/appended_file.h"
#include "base/files.h"
#include "base/hash.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

constexpr char kFileMagic[9] = "PURLINCL";
constexpr std::size_t kHeaderBytes = 16;
constexpr char kFrameMagic[9] = "\xF5PRLNRC\n";  // 0xF5 occurs in no UTF-8 text
constexpr std::size_t kFrameBytes = 32;
constexpr std::size_t kChunk = std::size_t{4} << 20;
constexpr std::size_t kMinChunk = 4096;
constexpr std::size_t kMinAtOnce = 2048, kMaxAtOnce = std::size_t{256} << 10;  // of records apart
static_assert(kChunk > kMaxPayload + kFrameBytes);

template <class T>
void store_le(char* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

template <class T>
T load_le(const char* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value =
        static_cast<T>(value | static_cast<T>(T{static_cast<unsigned char>(from[i])} << (8 * i)));
  return value;
}

struct Frame {
  std::uint32_t length = 0;
  std::uint16_t kind = 0;
  std::uint64_t payload_hash = 0;
};

// False where the 32 bytes are no frame. A frame that passes can be trusted about its length.
bool decode_frame(const char* at, Frame* frame) {
  if (std::memcmp(at, kFrameMagic, 8) != 0) return false;
  if (load_le<std::uint64_t>(at + 24) != hash64(at, 24)) return false;
  frame->length = load_le<std::uint32_t>(at + 8);
  frame->kind = load_le<std::uint16_t>(at + 12);
  frame->payload_hash = load_le<std::uint64_t>(at + 16);
  return frame->length <= kMaxPayload;
}

// Where the next frame after `from` begins, or npos.
std::size_t find_frame(std::string_view bytes, std::size_t from) {
  Frame frame;
  for (std::size_t at = bytes.find(std::string_view(kFrameMagic, 8), from);
       at != std::string_view::npos; at = bytes.find(std::string_view(kFrameMagic, 8), at + 1)) {
    if (bytes.size() - at < kFrameBytes) return std::string_view::npos;
    if (decode_frame(bytes.data() + at, &frame)) return at;
  }
  return std::string_view::npos;
}

Status os_error(std::string_view verb, const std::string& path, int code) {
  return error(Code::kIo, "cannot {} '{}': {}", verb, path, std::strerror(code));
}

// Appends up to `want` bytes at `offset` to `out`; fewer only at the end of the file.
Status read_range(int fd, const std::string& path, std::uint64_t offset, std::size_t want,
                  std::string* out) {
  const std::size_t before = out->size();
  out->resize(before + want);
  std::size_t have = 0;
  while (have < want) {
    const ssize_t got =
        ::pread(fd, out->data() + before + have, want - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  out->resize(before + have);
  return Status::ok();
}

// ok with *whole = false for a header that a crash cut short (or an empty file).
Status check_header(std::string_view bytes, const std::string& path, bool* whole) {
  *whole = bytes.size() >= kHeaderBytes;
  const std::string header = encode_log_header();
  if (!*whole && bytes == std::string_view(header).substr(0, bytes.size())) return Status::ok();
  if (!*whole || std::memcmp(bytes.data(), kFileMagic, 8) != 0)
    return error(Code::kCorrupt,
                 "'{}' is not a Purlin config cache; move it away or name another directory", path);
  const auto version = load_le<std::uint32_t>(bytes.data() + 8);
  if (load_le<std::uint32_t>(bytes.data() + 12) !=
      static_cast<std::uint32_t>(hash64(bytes.data(), 12)))
    return error(Code::kCorrupt, "the header of '{}' is damaged; restore the file or move it away",
                 path);
  if (version > kLogVersion)
    return error(Code::kCorrupt,
                 "'{}' was written by a newer Purlin (cache format {}; this one reads up to {}); "
                 "upgrade, or name another directory",
                 path, version, kLogVersion);
  return Status::ok();
}

// Of the header, the first frame and the frame at `last`; each frame holds its payload's hash.
Result<std::uint64_t> fingerprint_of(int fd, const std::string& path, std::uint64_t last) {
  std::string bytes;
  PURLIN_TRY(read_range(fd, path, 0, kHeaderBytes + kFrameBytes, &bytes));
  PURLIN_TRY(read_range(fd, path, last, kFrameBytes, &bytes));
  if (bytes.size() != kHeaderBytes + 2 * kFrameBytes)
    return error(Code::kCorrupt, "'{}' is shorter than it was", path);
  return hash64(bytes);
}

}  // namespace

std::string encode_log_header() {
  std::string header(kHeaderBytes, '\0');
  std::memcpy(header.data(), kFileMagic, 8);
  store_le<std::uint32_t>(header.data() + 8, kLogVersion);
  store_le<std::uint32_t>(header.data() + 12,
                          static_cast<std::uint32_t>(hash64(header.data(), 12)));
  return header;
}

std::string encode_record(std::uint16_t kind, std::string_view payload) {
  std::string record(kFrameBytes, '\0');
  std::memcpy(record.data(), kFrameMagic, 8);
  store_le<std::uint32_t>(record.data() + 8, static_cast<std::uint32_t>(payload.size()));
  store_le<std::uint16_t>(record.data() + 12, kind);
  store_le<std::uint64_t>(record.data() + 16, hash64(payload));
  store_le<std::uint64_t>(record.data() + 24, hash64(record.data(), 24));
  record.append(payload);
  return record;
}

Scan scan_records(std::string_view bytes, std::uint64_t offset, bool complete,
                  const RecordVisitor& visit) {
  Scan scan;
  std::size_t at = 0;
  std::size_t damaged = 0;  // since the last whole record
  while (bytes.size() - at >= kFrameBytes) {
    Frame frame;
    std::size_t search_from = at + 1;
    if (decode_frame(bytes.data() + at, &frame)) {
      search_from = at + kFrameBytes;
      const std::string_view payload = bytes.substr(search_from, frame.length);
      if (payload.size() == frame.length && hash64(payload) == frame.payload_hash) {
        visit({offset + at, frame.kind, payload});
        at += kFrameBytes + frame.length;
        scan.end = at;
        scan.damaged += std::exchange(damaged, 0);
        continue;
      }
      if (payload.size() < frame.length) {
        if (!complete) return scan;
        // Cut short, unless something was written after it.
        if (find_frame(bytes, search_from) == std::string_view::npos) break;
      }
    }
    ++damaged;
    const std::size_t next = find_frame(bytes, search_from);
    if (next == std::string_view::npos) {
      at = bytes.size();
      break;
    }
    at = next;
  }
  scan.append_at = at;
  scan.tail_damaged = complete && damaged > 0;
  return scan;
}

void RecordLog::rewind() {
  position_ = 0;
  damaged_ = 0;
  append_at_ = last_record_ = 0;
  tail_damaged_ = false;
}

Status RecordLog::poll(const RecordVisitor& visit, const std::function<void()>& restart) {
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno != ENOENT && errno != ENOTDIR) return os_error("read", path_, errno);
    if (position_ != 0) restart();
    rewind();
    return Status::ok();
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return os_error("read", path_, errno);
  if (!S_ISREG(info.st_mode)) return error(Code::kIo, "'{}' is not a file", path_);
  bool replaced = device_ != info.st_dev || inode_ != info.st_ino ||
                  static_cast<std::uint64_t>(info.st_size) < position_;
  if (!replaced && last_record_ != 0) {
    // Other records can stand in the same file: a backup copied over it, an inode given out again.
    const Result<std::uint64_t> now = fingerprint_of(file.get(), path_, last_record_);
    replaced = !now.is_ok() || *now != fingerprint_;
  }
  if (position_ != 0 && replaced) restart();
  if (replaced) rewind();
  device_ = info.st_dev;
  inode_ = info.st_ino;

  const bool from_start = position_ == 0;
  if (from_start) {
    std::string header;
    PURLIN_TRY(read_range(file.get(), path_, 0, kHeaderBytes, &header));
    bool whole = false;
    PURLIN_TRY(check_header(header, path_, &whole));
    if (!whole) return Status::ok();
    position_ = append_at_ = kHeaderBytes;
  }
  const std::size_t damaged_before = damaged_;
  const std::uint64_t last_before = last_record_;
  std::string window;  // grows past a chunk only over damage longer than one
  while (true) {
    const std::size_t before = window.size();
    // One byte more than there was shows whether that is all. Most polls find a record or none, and
    // a whole chunk would be cleared for them.
    const std::uint64_t from = position_ + before;
    const std::uint64_t rest = std::max(static_cast<std::uint64_t>(info.st_size), from) - from;
    const std::size_t want = std::clamp<std::uint64_t>(rest + 1, kMinChunk, kChunk);
    PURLIN_TRY(read_range(file.get(), path_, from, want, &window));
    const bool complete = window.size() - before < want;
    const Scan scan = scan_records(window, position_, complete, [&](const Record& record) {
      last_record_ = record.offset;
      visit(record);
    });
    append_at_ = position_ + scan.append_at;
    position_ += scan.end;
    damaged_ += scan.damaged;
    tail_damaged_ = scan.tail_damaged;
    window.erase(0, scan.end);
    if (complete) break;
  }
  if (damaged_ > damaged_before && !from_start) {
    // A writer whose sync failed takes its record back, which can leave a reader's place inside
    // another's record. Only a reading from the start tells that from damage.
    restart();
    rewind();
    return poll(visit, restart);
  }
  // If a writer took its record back meanwhile, the next poll reads from the start again.
  if (last_record_ != last_before)
    fingerprint_ = fingerprint_of(file.get(), path_, last_record_).value_or(0);
  return Status::ok();
}

Status RecordLog::append(std::uint16_t kind, std::string_view payload, const RecordVisitor& visit,
                         const std::function<void()>& restart) {
  if (payload.size() > kMaxPayload)
    return error(Code::kInvalid, "a record of {} bytes is larger than the limit of {}",
                 payload.size(), kMaxPayload);
  return append([&] { return encode_record(kind, payload); }, visit, restart);
}

Status RecordLog::append(const std::function<std::string()>& encode, const RecordVisitor& visit,
                         const std::function<void()>& restart) {
  PURLIN_TRY(make_directories_durably(parent_path(path_)));
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path_ + ".lock"));
  PURLIN_TRY(poll(visit, restart));
  const std::string records = encode();
  // The caller relies on a record that is there, and its writer may have been killed before its
  // sync.
  if (records.empty()) return position_ == 0 ? Status::ok() : sync_file();
  PURLIN_ASSIGN(AppendedFile file, AppendedFile::open(path_));
  // Wrong bytes stay for a user to examine, and readers skip them. A record that a crash cut short
  // is removed.
  const std::uint64_t end = append_at_;
  PURLIN_TRY(file.append(end, (end == 0 ? encode_log_header() : std::string()) + records));
  return poll(visit, restart);
}

Status RecordLog::sync_file() const {
  PURLIN_ASSIGN(AppendedFile file, AppendedFile::open(path_));
  return file.sync();
}

Status RecordLog::rewrite(const std::function<bool(const Record&)>& keep,
                          const std::function<Status()>& before_replace) {
  if (!file_exists(path_)) return Status::ok();
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path_ + ".lock"));
  PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(path_));
  PURLIN_TRY(file.append(encode_log_header()));
  Status written;
  RecordLog reader(path_);
  PURLIN_TRY(reader.poll(
      [&](const Record& record) {
        if (written.is_ok() && keep(record))
          written = file.append(encode_record(record.kind, record.payload));
      },
      [] {}));
  PURLIN_TRY(written);
  PURLIN_TRY(before_replace());
  return file.commit();
}

Status RecordLog::check_writable() {
  PURLIN_TRY(make_directories_durably(parent_path(path_)));
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(path_ + ".lock"));
  return AppendedFile::open(path_).status();
}

Result<LogMark> RecordLog::mark() const {
  if (last_record_ == 0) return error(Code::kNotFound, "'{}' holds no record", path_);
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return os_error("read", path_, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return os_error("read", path_, errno);
  if (device_ != info.st_dev || inode_ != info.st_ino)
    return error(Code::kNotFound, "'{}' was replaced", path_);
  LogMark mark{position_, last_record_, 0, damaged_};
  PURLIN_ASSIGN(mark.fingerprint, fingerprint_of(file.get(), path_, last_record_));
  return mark;
}

bool RecordLog::resume(const LogMark& mark) {
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (mark.last_record < kHeaderBytes || mark.position <= mark.last_record ||
      mark.position > static_cast<std::uint64_t>(info.st_size))
    return false;
  const Result<std::uint64_t> fingerprint = fingerprint_of(file.get(), path_, mark.last_record);
  std::string header;
  bool whole = false;
  if (!fingerprint.is_ok() || *fingerprint != mark.fingerprint ||
      !read_range(file.get(), path_, 0, kHeaderBytes, &header).is_ok() ||
      !check_header(header, path_, &whole).is_ok() || !whole)
    return false;
  rewind();
  device_ = info.st_dev;
  inode_ = info.st_ino;
  position_ = append_at_ = mark.position;
  last_record_ = mark.last_record;
  damaged_ = mark.damaged;
  fingerprint_ = mark.fingerprint;
  return true;
}

Result<std::string> RecordLog::read_at(std::uint64_t offset) const {
  RecordReader reader(path_);
  PURLIN_ASSIGN(const std::string_view payload, reader.read(offset));
  return std::string(payload);
}

RecordReader::RecordReader(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_.get() < 0) error_ = errno;
}

Result<std::string_view> RecordReader::bytes_at(std::uint64_t offset, std::size_t count) {
  // Offsets come from a file, so that no sum of them is taken.
  if (offset < begin_ || offset - begin_ > bytes_.size() ||
      count > bytes_.size() - (offset - begin_)) {
    // Who goes through the file is given more and more of it at once.
    const bool goes_on = window_ > 0 && offset >= begin_ && offset - begin_ <= 2 * window_;
    window_ = std::max(count, goes_on ? std::min(2 * window_, kMaxAtOnce) : kMinAtOnce);
    // What is read ahead may lie where the disk fails; this record need not.
    Status status = fill(offset, window_);
    if (!status.is_ok() && window_ > count) status = fill(offset, window_ = count);
    PURLIN_TRY(std::move(status));
  }
  return std::string_view(bytes_).substr(offset - begin_, count);
}

Status RecordReader::fill(std::uint64_t offset, std::size_t count) {
  begin_ = offset;
  bytes_.clear();
  Status status = read_range(file_.get(), path_, offset, count, &bytes_);
  if (!status.is_ok()) bytes_.clear();  // nothing of it may be taken for the file's
  return status;
}

Result<std::string_view> RecordReader::read(std::uint64_t offset) {
  if (file_.get() < 0) return os_error("read", path_, error_);
  PURLIN_ASSIGN(std::string_view bytes, bytes_at(offset, kFrameBytes));
  Frame frame;
  if (bytes.size() < kFrameBytes || !decode_frame(bytes.data(), &frame))
    return error(Code::kCorrupt, "'{}' has no record at offset {}", path_, offset);
  PURLIN_ASSIGN(bytes, bytes_at(offset, kFrameBytes + frame.length));
  // The file may have become shorter since the frame was read.
  const bool whole = bytes.size() == kFrameBytes + frame.length;
  const std::string_view payload = whole ? bytes.substr(kFrameBytes) : std::string_view();
  if (!whole || hash64(payload) != frame.payload_hash)
    return error(Code::kCorrupt, "the record of '{}' at offset {} is damaged", path_, offset);
  return payload;
}

}  // namespace purlin::cache
