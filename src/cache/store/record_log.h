// SPDX-License-Identifier: Apache-2.0
// RecordLog: an append-only file of checksummed records, shared by any number of processes.
//
// A record is a 32-byte frame and a payload of UTF-8 text. The frame opens with a byte that UTF-8
// never contains, so a reader that lost its place to damage finds the next frame by search and
// cannot mistake a payload for one. Writers take turns under a lock file, repair the tail that a
// crash left, and sync before they return; readers take no lock and are handed whole records only.
// Layout: docs/formats/cache.md. Thread-safety: a RecordLog belongs to one thread; several may be
// open on one file, in any process. Failure: kIo from the system, kCorrupt for a file that is not
// ours or newer.
#pragma once

#include "base/os/descriptor.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace purlin::cache {

constexpr std::uint32_t kLogVersion = 1;
constexpr std::size_t kMaxPayload = std::size_t{1} << 20;

struct Record {
  std::uint64_t offset = 0;  // of its frame in the file
  std::uint16_t kind = 0;
  std::string_view payload;  // valid during the visit
};
using RecordVisitor = std::function<void(const Record&)>;

// A record as it stands in the file; the file's header.
std::string encode_record(std::uint16_t kind, std::string_view payload);
std::string encode_log_header();

// What was found in a stretch of the file that starts where a frame may start.
struct Scan {
  std::size_t end = 0;        // Past the last whole record; the tail follows.
  std::size_t append_at = 0;  // Where a writer continues: past damage, at a record cut short.
  std::size_t damaged = 0;    // Stretches before `end` that failed their checksum.
  bool tail_damaged = false;  // The tail holds wrong bytes, not merely a record cut short.
};
// `complete`: nothing follows `bytes` in the file; only then are append_at and tail_damaged set.
Scan scan_records(std::string_view bytes, std::uint64_t offset, bool complete,
                  const RecordVisitor& visit);

// How far a log was read, and what tells it from another log or another past of the same one.
struct LogMark {
  std::uint64_t position = 0;     // past the last whole record
  std::uint64_t last_record = 0;  // where that one begins
  std::uint64_t fingerprint = 0;  // of the header and the first and last frame
  std::uint64_t damaged = 0;      // stretches before `position` that failed their checksum
  bool operator==(const LogMark&) const = default;
};

// Reads single records of one file: the file that had the name when the reader was created, also
// after another file has replaced it. Thread-safety: one thread.
class RecordReader {
 public:
  explicit RecordReader(const std::string& path);
  // The payload of the record at `offset`, which a visit reported; lives until the next read.
  // kCorrupt where there is no whole record. Cheapest in the order of the file.
  Result<std::string_view> read(std::uint64_t offset);

 private:
  // bytes_ from `offset` on, as many as asked for unless the file ends before.
  Result<std::string_view> bytes_at(std::uint64_t offset, std::size_t count);
  Status fill(std::uint64_t offset, std::size_t count);
  std::string path_, bytes_;
  std::uint64_t begin_ = 0;  // where in the file bytes_ begin
  std::size_t window_ = 0;   // how many were asked for
  Descriptor file_;
  int error_ = 0;  // of opening it
};

class RecordLog {
 public:
  explicit RecordLog(std::string path) : path_(std::move(path)) {}

  // Hands over each record that any process appended since the last poll. After a replacement of
  // the file, or at damage, it calls `restart` and reads again from the first record. A file that
  // does not exist is empty.
  Status poll(const RecordVisitor& visit, const std::function<void()>& restart);
  // Appends the records that `encode` returns, encoded; none when it returns nothing. It is called
  // under the lock, after a poll, so it knows all that is in the file. Creates the file if need be.
  // Durable once ok; after a failure the file is unchanged.
  Status append(const std::function<std::string()>& encode, const RecordVisitor& visit,
                const std::function<void()>& restart);
  Status append(std::uint16_t kind, std::string_view payload, const RecordVisitor& visit,
                const std::function<void()>& restart);
  // Replaces the file by one with the records that `keep` accepts, in their order. The new file is
  // whole and durable before it replaces the old file. Readers notice it at their next poll.
  // `before_replace` is called under the lock, and nothing is replaced where it fails.
  Status rewrite(const std::function<bool(const Record&)>& keep,
                 const std::function<Status()>& before_replace);
  // Whether append could work: takes the lock and opens the file for writing.
  Status check_writable();
  // What was written is on the disk afterwards, also what a killed writer wrote. Under the lock.
  Status sync_file() const;
  // Where reading stands. kNotFound before the first record.
  Result<LogMark> mark() const;
  // Goes on from a mark without reading what is before it. False, and nothing changed, where the
  // file is not the one that was marked.
  bool resume(const LogMark& mark);
  // The payload of the record at `offset`, which a visit reported.
  Result<std::string> read_at(std::uint64_t offset) const;

  const std::string& path() const { return path_; }
  // Stretches that failed their checksum in what has been read.
  std::size_t damaged() const { return damaged_ + (tail_damaged_ ? 1 : 0); }

 private:
  void rewind();
  std::string path_;
  std::uint64_t position_ = 0;  // past the last whole record; 0 = the header is not read yet
  std::uint64_t append_at_ = 0;
  std::uint64_t last_record_ = 0;  // where the last whole record begins; 0 = none
  std::uint64_t fingerprint_ = 0;  // as a LogMark has it, while there is a last record
  std::uint64_t device_ = 0, inode_ = 0;
  std::size_t damaged_ = 0;
  bool tail_damaged_ = false;
};

}  // namespace purlin::cache
