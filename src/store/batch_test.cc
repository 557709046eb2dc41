// SPDX-License-Identifier: Apache-2.0
#include "store/batch.h"

#include "store/testing.h"
#include "store/zstd_frame.h"

#include <gtest/gtest.h>

namespace purlin::store {
namespace {

Batch full_batch() {
  MadeUpFleet fleet;
  Batch batch = fleet.batch("node7", 42, kMadeUpDayNs + 5 * kHourNs);
  batch.rows[0].duration.add(12.5, 3.25);
  batch.rows[1].duration = Sketch();
  batch.rows[2].duration.reduce_to(5);
  batch.rows[2].recorded = 2.5;
  batch.shed = {{"spool_full", 3, 700, 1 << 20}, {"too_old", 1, 0, 0}};
  batch.spool = {5 << 20, 256 << 20};
  batch.raws = {{std::string(64, 'a'), 1234, batch.begin_ns, batch.end_ns, "exemplar", 0, "gemm"}};
  batch.runs[0].rank = 3, batch.runs[0].world = 8;
  batch.runs[0].labels.pod = "team/trainer-0";
  return batch;
}

TEST(Batch, IsReadAsItWasWritten) {
  const Batch batch = full_batch();
  const std::string bytes = encode(batch).value();
  const Result<Batch> read = decode(bytes);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_TRUE(*read == batch);
  EXPECT_EQ(encode(*read).value(), bytes);
}

TEST(Batch, TakesFewBytesForEachRow) {
  MadeUpFleet fleet;
  fleet.kernels = 25, fleet.shapes = 8, fleet.gpus = 1;
  const Batch batch = fleet.batch("node7", 1, kMadeUpDayNs);
  EXPECT_LT(encode(batch)->size(), batch.rows.size() * 32);
}

TEST(Batch, RefusesEveryCutAndEveryChangedByte) {
  const std::string bytes = encode(full_batch()).value();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decode(std::string_view(bytes).substr(0, i)).is_ok()) << i;
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x21);
    const Result<Batch> read = decode(changed);  // a bit of the frame's head may mean nothing
    EXPECT_TRUE(!read.is_ok() || *read == full_batch()) << i;
  }
  EXPECT_FALSE(decode(bytes + "x").is_ok());
}

// Past the checksum of zstd.
TEST(Batch, ReadsNoChangedContentsOutOfBounds) {
  const std::string body = zstd_contents(encode(full_batch()).value(), 1 << 20).value();
  for (std::size_t i = 0; i < body.size(); ++i) {
    (void)decode(zstd_frame(std::string_view(body).substr(0, i)).value()).is_ok();
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = body;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const Result<Batch> read = decode(zstd_frame(changed).value());
      EXPECT_TRUE(!read.is_ok() || encode(*read).is_ok()) << i;
    }
  }
}

TEST(Batch, SkipsSectionsOfANewerWriterAndRefusesANewerVersion) {
  std::string body = zstd_contents(encode(full_batch()).value(), 1 << 20).value();
  const std::string newer = body + std::string("\x0e\x03new", 5);
  EXPECT_TRUE(decode(zstd_frame(newer).value()).value() == full_batch());
  body[8] = 2;
  EXPECT_EQ(decode(zstd_frame(body).value()).status().code(), Code::kCorrupt);
}

TEST(Batch, BoundsWhatBytesMayCost) {
  const std::string bomb = zstd_frame(std::string(std::size_t{200} << 20, '\0')).value();
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(decode(bomb).status().code(), Code::kInvalid);
  EXPECT_EQ(decode(std::string(9 << 20, 'x')).status().code(), Code::kInvalid);
  Limits few;
  few.max_rows = 10;
  EXPECT_FALSE(decode(encode(full_batch()).value(), few).is_ok());
  few = Limits();
  few.max_buckets = 3;
  EXPECT_FALSE(decode(encode(full_batch()).value(), few).is_ok());

  Batch names = full_batch();
  for (BatchRow& row : names.rows) row.kernel = row.raw_kernel = row.op = std::string(60'000, 'k');
  few = Limits();
  few.max_named_bytes = 1 << 20;
  EXPECT_FALSE(decode(encode(names).value(), few).is_ok()) << "few bytes that name a long text";
}

TEST(Batch, RefusesWhatCannotBe) {
  Batch batch = full_batch();
  batch.rows[0].hour_ns += kHourNs;
  EXPECT_FALSE(encode(batch).is_ok()) << "an hour after its end";
  batch = full_batch();
  batch.rows[0].device = 2;
  EXPECT_FALSE(encode(batch).is_ok());
  batch = full_batch();
  batch.node = "";
  EXPECT_FALSE(encode(batch).is_ok());
  batch = full_batch();
  batch.begin_ns = 5;
  EXPECT_FALSE(encode(batch).is_ok()) << "a clock that was never set";
}

}  // namespace
}  // namespace purlin::store
