// SPDX-License-Identifier: Apache-2.0
#include "profile/format/tail.h"

#include "base/files.h"
#include "profile/format/capture_file_testing.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000'000, kSecond = 1'000'000'000;

class TailTest : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-tail").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  static std::vector<TailPart> read(ProfileTail& tail, const CaptureFile& file) {
    Result<std::vector<TailPart>> parts = tail.read(Bytes::open(file.path()).value());
    EXPECT_TRUE(parts.is_ok()) << parts.status().message();
    return std::move(parts).value();
  }
  // "kernel: count", in order.
  static std::vector<std::string> counts(const std::vector<TailPart>& parts) {
    std::vector<std::string> lines;
    for (const TailPart& part : parts)
      for (const KernelRow& row : part.profile.kernels)
        lines.push_back(fmt::format("{}: {}", row.name, row.duration.count()));
    return lines;
  }
  using Lines = std::vector<std::string>;
  std::string root_;
};

TEST_F(TailTest, EachReadGivesWhatWasSealedSince) {
  CaptureFile file(root_);
  ProfileTail tail;
  EXPECT_TRUE(read(tail, file).empty()) << "no header yet";
  file.launch("a", 1000);
  file.launch("a", 2000);
  file.seal(kStart + kSecond);
  std::vector<TailPart> parts = read(tail, file);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(counts(parts), Lines{"a: 2"});
  EXPECT_EQ(parts[0].profile.environment.build, "v1");
  EXPECT_EQ(parts[0].profile.coverage.launches_seen, 2);
  EXPECT_EQ(parts[0].begin_ns, kStart);
  EXPECT_EQ(parts[0].end_ns, kStart + kSecond);
  EXPECT_TRUE(read(tail, file).empty());
  file.launch("b", 1000);
  file.launch("a", 1000);
  file.seal(kStart + 2 * kSecond);
  file.launch("b", 1000);
  file.seal(kStart + 3 * kSecond, true);
  parts = read(tail, file);
  EXPECT_EQ(counts(parts), (Lines{"a: 1", "b: 2"}));
  EXPECT_EQ(parts[0].profile.coverage.launches_seen, 3) << "what it grew by";
  EXPECT_TRUE(tail.is_final());
}

TEST_F(TailTest, WhatIsNotSealedWaits) {
  CaptureFile file(root_);
  ProfileTail tail;
  file.launch("a", 1000);
  const std::string period = file.period(kStart + kSecond);
  for (std::size_t cut : {std::size_t{10}, period.size() / 2, period.size() - 1}) {
    ASSERT_TRUE(write_atomic(file.path(), period.substr(0, cut)).is_ok());
    EXPECT_TRUE(read(tail, file).empty()) << cut;
  }
  ASSERT_TRUE(write_atomic(file.path(), period).is_ok());
  EXPECT_EQ(counts(read(tail, file)), Lines{"a: 1"});
}

TEST_F(TailTest, GoesOnAfterARestartWithoutGapOrOverlap) {
  CaptureFile file(root_);
  std::uint64_t offset = 0;
  double total = 0, seen = 0;
  for (int i = 1; i <= 20; ++i) {
    for (int k = 0; k <= i % 5; ++k) file.launch(fmt::format("kernel {}", (i + k) % 7), 1000);
    file.seal(kStart + i * kSecond);
    if (i % 3 == 0) continue;
    ProfileTail tail(offset);  // a new reader each time
    for (const TailPart& part : read(tail, file)) {
      seen += part.profile.coverage.launches_seen;
      for (const KernelRow& row : part.profile.kernels) total += row.duration.count();
    }
    offset = tail.offset();
  }
  EXPECT_EQ(total, 60);  // of i % 5 + 1, from 1 to 20
  EXPECT_EQ(seen, total);
}

TEST_F(TailTest, APeriodIsOfTheHourOfItsSeal) {
  constexpr std::int64_t kHour = 3600 * kSecond, kBorder = kStart / kHour * kHour + kHour;
  CaptureFile file(root_);
  ProfileTail tail;
  file.launch("a", 1000);
  file.seal(kBorder - kSecond);
  file.launch("a", 1000);
  file.launch("a", 1000);
  file.seal(kBorder + kSecond);
  file.launch("a", 1000);
  file.seal(kBorder + 2 * kSecond);
  const std::vector<TailPart> parts = read(tail, file);
  EXPECT_EQ(counts(parts), (Lines{"a: 1", "a: 3"}));
  EXPECT_EQ(parts[0].end_ns, kBorder - kSecond);
  EXPECT_EQ(parts[1].begin_ns, kBorder - kSecond);
}

TEST_F(TailTest, RefusesWhatIsNoCaptureOrTooLarge) {
  const std::string path = join_path(root_, "x");
  ASSERT_TRUE(write_atomic(path, std::string(100, 'x')).is_ok());
  ProfileTail tail;
  EXPECT_EQ(tail.read(Bytes::open(path).value()).status().code(), Code::kInvalid);
  CaptureFile file(root_);
  for (int i = 0; i < 5; ++i) file.launch(fmt::format("k{}", i), 1);
  file.seal(kStart + kSecond);
  ProfileTail few(0, {.max_rows = 4});
  EXPECT_EQ(few.read(Bytes::open(file.path()).value()).status().code(), Code::kInvalid);
  ProfileTail elsewhere(17);
  EXPECT_EQ(elsewhere.read(Bytes::open(file.path()).value()).status().code(), Code::kCorrupt);
  ProfileTail shorter(1 << 20);
  EXPECT_EQ(shorter.read(Bytes::open(file.path()).value()).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace purlin::profile
