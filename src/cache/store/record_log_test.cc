// SPDX-License-Identifier: Apache-2.0
#include "cache/store/record_log.h"

#include "base/files.h"
#include "base/hash.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

void write_raw(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A RecordLog with what it has handed over.
class Reader {
 public:
  explicit Reader(const std::string& path) : log(path) {}
  Status poll() {
    return log.poll([this](const Record& record) { take(record); }, [this] { seen.clear(); });
  }
  Status append(std::string_view payload) {
    return log.append(
        1, payload, [this](const Record& record) { take(record); }, [this] { seen.clear(); });
  }
  RecordLog log;
  std::vector<std::string> seen;

 private:
  void take(const Record& record) { seen.emplace_back(record.payload); }
};

using Strings = std::vector<std::string>;

TEST(RecordLog, OthersSeeWhatIsAppended) {
  TemporaryDirectory folder;
  Reader writer(folder.file("log")), reader(folder.file("log"));
  ASSERT_TRUE(reader.poll().is_ok());  // no file yet: empty
  ASSERT_TRUE(writer.append("one").is_ok());
  ASSERT_TRUE(reader.poll().is_ok());
  ASSERT_TRUE(writer.append("two").is_ok());
  ASSERT_TRUE(writer.append("").is_ok());
  EXPECT_EQ(writer.seen, (Strings{"one", "two", ""}));
  EXPECT_EQ(reader.seen, (Strings{"one"}));
  ASSERT_TRUE(reader.poll().is_ok());
  EXPECT_EQ(reader.seen, writer.seen);
}

TEST(RecordLog, TwoWritersSeeEachOther) {
  TemporaryDirectory folder;
  Reader a(folder.file("log")), b(folder.file("log"));
  ASSERT_TRUE(a.append("a1").is_ok());
  ASSERT_TRUE(b.append("b1").is_ok());
  ASSERT_TRUE(a.append("a2").is_ok());
  EXPECT_EQ(a.seen, (Strings{"a1", "b1", "a2"}));
  ASSERT_TRUE(b.poll().is_ok());
  EXPECT_EQ(b.seen, a.seen);
}

// A crash may leave any prefix of the last record. Readers must see all before it, and the next
// writer must be able to go on.
TEST(RecordLog, TornTailAtEachByte) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const std::string whole =
      encode_log_header() + encode_record(1, "first") + encode_record(1, "second");
  const std::string last = encode_record(1, "the third");
  for (std::size_t cut = 0; cut < last.size(); ++cut) {
    write_raw(path, whole + last.substr(0, cut));
    Reader reader(path);
    ASSERT_TRUE(reader.poll().is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first", "second"})) << cut;
    ASSERT_EQ(reader.log.damaged(), 0u) << cut;
    ASSERT_TRUE(Reader(path).append("next").is_ok());
    ASSERT_TRUE(reader.poll().is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first", "second", "next"})) << cut;
    ASSERT_EQ(reader.log.damaged(), 0u) << cut;
    ASSERT_EQ(*file_size(path), whole.size() + encode_record(1, "next").size()) << cut;
  }
}

TEST(RecordLog, TornHeaderAtEachByte) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const std::string header = encode_log_header();
  for (std::size_t cut = 0; cut < header.size(); ++cut) {
    write_raw(path, header.substr(0, cut));
    Reader reader(path);
    ASSERT_TRUE(reader.poll().is_ok()) << cut;
    ASSERT_TRUE(reader.append("x").is_ok()) << cut;
    Reader fresh(path);
    ASSERT_TRUE(fresh.poll().is_ok());
    ASSERT_EQ(fresh.seen, (Strings{"x"})) << cut;
  }
}

// One wrong byte, at any place, loses the record that contains it and no other.
TEST(RecordLog, DamageAtEachByteOfTheMiddleRecord) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const std::string before = encode_log_header() + encode_record(1, "first");
  const std::string middle = encode_record(1, "the middle");
  const std::string after = encode_record(1, "third") + encode_record(1, "fourth");
  for (std::size_t at = 0; at < middle.size(); ++at) {
    std::string wrong = middle;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x41);
    write_raw(path, before + wrong + after);
    Reader reader(path);
    ASSERT_TRUE(reader.poll().is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first", "third", "fourth"})) << at;
    ASSERT_EQ(reader.log.damaged(), 1u) << at;
    ASSERT_TRUE(reader.append("fifth").is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first", "third", "fourth", "fifth"})) << at;
    ASSERT_EQ(reader.log.damaged(), 1u) << at;
  }
}

// Damage of the last record is counted, kept as evidence, and does not swallow what comes next.
TEST(RecordLog, DamageAtEachByteOfTheLastRecord) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const std::string before = encode_log_header() + encode_record(1, "first");
  const std::string last = encode_record(1, "the last one");
  for (std::size_t at = 0; at < last.size(); ++at) {
    std::string wrong = last;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x80);
    write_raw(path, before + wrong);
    Reader reader(path);
    ASSERT_TRUE(reader.poll().is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first"})) << at;
    ASSERT_EQ(reader.log.damaged(), 1u) << at;
    ASSERT_TRUE(Reader(path).append("next").is_ok());
    ASSERT_TRUE(reader.poll().is_ok());
    ASSERT_EQ(reader.seen, (Strings{"first", "next"})) << at;
    ASSERT_EQ(reader.log.damaged(), 1u) << at;
  }
}

// Damage, then a torn record: the length of the torn record must not include the next write.
TEST(RecordLog, DamageFollowedByATornRecord) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  std::string wrong = encode_record(1, "damaged");
  wrong.back() = '?';
  const std::string torn = encode_record(1, std::string(100, 'x')).substr(0, 40);
  write_raw(path, encode_log_header() + wrong + torn);
  Reader reader(path);
  ASSERT_TRUE(reader.append("next").is_ok());
  EXPECT_EQ(reader.seen, (Strings{"next"}));
  EXPECT_EQ(reader.log.damaged(), 1u);
  Reader fresh(path);
  ASSERT_TRUE(fresh.poll().is_ok());
  EXPECT_EQ(fresh.seen, (Strings{"next"}));
}

TEST(RecordLog, ReadsAcrossChunks) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  std::string bytes = encode_log_header();
  const std::string big(kMaxPayload, 'b');
  for (int i = 0; i < 9; ++i) bytes += encode_record(1, big);
  std::string wrong = encode_record(1, big);
  wrong[40] = '?';
  bytes += wrong + std::string(5 << 20, 'g') + encode_record(1, "after");
  write_raw(path, bytes);
  Reader reader(path);
  ASSERT_TRUE(reader.poll().is_ok());
  ASSERT_EQ(reader.seen.size(), 10u);
  EXPECT_EQ(reader.seen.back(), "after");
  EXPECT_GE(reader.log.damaged(), 1u);
}

TEST(RecordLog, ReadsARecordByOffset) {
  TemporaryDirectory folder;
  RecordLog log(folder.file("log"));
  std::vector<std::uint64_t> offsets;
  const auto visit = [&](const Record& record) { offsets.push_back(record.offset); };
  ASSERT_TRUE(log.append(1, "one", visit, [] {}).is_ok());
  ASSERT_TRUE(log.append(1, "two", visit, [] {}).is_ok());
  ASSERT_EQ(offsets.size(), 2u);
  EXPECT_EQ(*log.read_at(offsets[0]), "one");
  EXPECT_EQ(*log.read_at(offsets[1]), "two");
  EXPECT_EQ(log.read_at(offsets[1] + 1).status().code(), Code::kCorrupt);
}

TEST(RecordLog, RefusesANewerVersion) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  ASSERT_TRUE(Reader(path).append("x").is_ok());
  // Version 2 with its own right check, as docs/formats/cache.md has it.
  std::string header = encode_log_header();
  header[8] = 2;
  const std::uint64_t check = hash64(header.data(), 12);
  for (int i = 0; i < 4; ++i)
    header[12 + static_cast<std::size_t>(i)] = static_cast<char>(check >> (8 * i));
  write_raw(path, header + encode_record(1, "y"));
  Reader reader(path);
  const Status status = reader.poll();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("newer Purlin"), std::string::npos) << status.message();
  EXPECT_EQ(reader.append("z").code(), Code::kCorrupt);
  EXPECT_EQ(*read_file(path), header + encode_record(1, "y"));
}

TEST(RecordLog, RefusesForeignFiles) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  for (const char* text : {"x", "{\"not\": \"a cache, but long enough\"}"}) {
    write_raw(path, text);
    EXPECT_EQ(Reader(path).poll().code(), Code::kCorrupt);
    EXPECT_EQ(Reader(path).append("y").code(), Code::kCorrupt);
    EXPECT_EQ(*read_file(path), text);
  }
}

TEST(RecordLog, StartsOverWhenTheFileIsReplaced) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  Reader reader(path);
  ASSERT_TRUE(reader.append("old").is_ok());
  ASSERT_TRUE(
      write_atomic(path, encode_log_header() + encode_record(1, "new, and longer")).is_ok());
  ASSERT_TRUE(reader.poll().is_ok());
  EXPECT_EQ(reader.seen, (Strings{"new, and longer"}));
  ASSERT_TRUE(remove_file(path).is_ok());
  ASSERT_TRUE(reader.poll().is_ok());
  EXPECT_TRUE(reader.seen.empty());
}

// As a restored backup does it (cp keeps the inode), or a file system that gives an inode out
// again.
TEST(RecordLog, StartsOverWhenOtherRecordsStandInTheSameFile) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const std::string first = encode_log_header() + encode_record(1, "first");
  write_raw(path, first + encode_record(1, "second"));
  Reader reader(path);
  ASSERT_TRUE(reader.poll().is_ok());
  write_raw(path, first + encode_record(1, "2econd") + encode_record(1, "third"));
  ASSERT_TRUE(reader.poll().is_ok());
  EXPECT_EQ(reader.seen, (Strings{"first", "2econd", "third"}));
}

TEST(RecordLog, AFullDiskLosesNothing) {
  TemporaryDirectory folder;
  const std::string path = folder.file("log");
  Reader writer(path);
  ASSERT_TRUE(writer.append("kept").is_ok());
  const std::uint64_t size = *file_size(path);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{size + 50, before.rlim_max};  // room for a frame, not for its payload
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = writer.append(std::string(100, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(*file_size(path), size);
  ASSERT_TRUE(writer.append("after").is_ok());
  EXPECT_EQ(writer.seen, (Strings{"kept", "after"}));
}

TEST(RecordLog, RefusesARecordPastTheLimit) {
  TemporaryDirectory folder;
  Reader writer(folder.file("log"));
  EXPECT_EQ(writer.append(std::string(kMaxPayload + 1, 'x')).code(), Code::kInvalid);
  EXPECT_FALSE(file_exists(folder.file("log")));
}

}  // namespace
}  // namespace purlin::cache
