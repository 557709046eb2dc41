// SPDX-License-Identifier: Apache-2.0
#include "store/raws.h"

#include "base/files.h"
#include "store/testing.h"

#include <gtest/gtest.h>

namespace purlin::store {
namespace {

class RawsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-raws").value();
    ASSERT_TRUE(init_store(root_ + "/store").is_ok());
    store_ = open_store(root_ + "/store").value();
    blobs_ = blobs::open_blobs(root_ + "/blobs").value();
    pointers_ = pointers_of(*store_);
  }
  void TearDown() override {
    store_.reset();
    ASSERT_TRUE(remove_tree(root_).is_ok());
  }
  // A raw of so many bytes that began then, with its pointer.
  std::string add(std::int64_t begin_ns, std::size_t bytes, const std::string& kind = "profile") {
    const std::string contents(bytes, static_cast<char>('a' + ++number_));
    const std::string address = sha256_hex(contents);
    EXPECT_TRUE(put_raw(*blobs_, address, contents).value());
    MadeUpFleet fleet;
    Batch batch = fleet.batch(node_, static_cast<std::uint64_t>(number_), kMadeUpDayNs);
    batch.raws = {{address, bytes, begin_ns, begin_ns + 1, kind, 0, ""}};
    const HashedBatch one = hashed(batch);
    EXPECT_TRUE(store_->ingest(one.hash, one.batch).is_ok());
    return address;
  }
  bool has(const std::string& address) { return get_raw(*blobs_, address, 1000).is_ok(); }

  std::string root_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<blobs::BlobStore> blobs_;
  RawPointers pointers_;
  std::string node_ = "n1";
  int number_ = 0;
};

TEST_F(RawsTest, AreWrittenOnceUnderTheirAddress) {
  const std::string address = sha256_hex("abc");
  EXPECT_TRUE(put_raw(*blobs_, address, "abc").value());
  EXPECT_FALSE(put_raw(*blobs_, address, "abc").value());
  EXPECT_EQ(put_raw(*blobs_, address, "abd").status().code(), Code::kInvalid);
  EXPECT_EQ(put_raw(*blobs_, "../../etc", "abd").status().code(), Code::kInvalid);
  EXPECT_EQ(get_raw(*blobs_, address, 10).value(), "abc");
  EXPECT_EQ(get_raw(*blobs_, std::string(64, '0'), 10).status().code(), Code::kNotFound);
  ASSERT_TRUE(write_atomic(root_ + "/blobs/" + raw_key(address), "abd").is_ok());
  EXPECT_EQ(get_raw(*blobs_, address, 10).status().code(), Code::kCorrupt);
}

TEST_F(RawsTest, GoByAgeAndSizeAndExemplarsStay) {
  const std::int64_t now = kMadeUpDayNs + 20 * kDayNs;
  const std::string old = add(kMadeUpDayNs, 10);
  const std::string exemplar = add(kMadeUpDayNs + kHourNs, 10, "exemplar");
  const std::string first = add(now - 3 * kHourNs, 30), second = add(now - 2 * kHourNs, 30),
                    third = add(now - kHourNs, 30);
  ASSERT_TRUE(store_->keep_raw(exemplar, now + kDayNs, "change point").is_ok());
  RawRetention retention;
  retention.bytes = 70;
  const RawSweep swept = sweep_raws(*blobs_, pointers_, now, retention).value();
  EXPECT_EQ(swept.removed, 2U);
  EXPECT_EQ(swept.removed_bytes, 40U);
  EXPECT_FALSE(has(old));
  EXPECT_FALSE(has(first)) << "the oldest of what is too much";
  EXPECT_TRUE(has(second) && has(third) && has(exemplar));
  EXPECT_EQ(store_->raws({})->size(), 3U);
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, now + 2 * kDayNs, retention)->removed, 1U)
      << "kept until then";
  EXPECT_FALSE(has(exemplar));
}

TEST_F(RawsTest, OneOfEachHourIsKeptLonger) {
  RawRetention retention;
  const std::string plain = add(kMadeUpDayNs + 5, 10), best = add(kMadeUpDayNs + 7, 10, "exemplar"),
                    other = add(kMadeUpDayNs + kHourNs, 10);
  ASSERT_TRUE(choose_exemplars(pointers_, {}, kMadeUpDayNs + kDayNs, retention).is_ok());
  ASSERT_TRUE(choose_exemplars(pointers_, {}, kMadeUpDayNs + 2 * kDayNs, retention).is_ok());
  const std::int64_t later = kMadeUpDayNs + 30 * kDayNs;
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, later, retention)->removed, 1U);
  EXPECT_FALSE(has(plain));
  EXPECT_TRUE(has(best) && has(other));
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, kMadeUpDayNs + 190 * kDayNs, retention)->removed, 2U);
}

TEST_F(RawsTest, TheNearestOfAChangesNodesAreKeptLonger) {
  const std::int64_t change = kMadeUpDayNs + 5 * kHourNs;
  node_ = "other";
  const std::string foreign = add(change + 1, 10);
  node_ = "n1";
  const std::string early = add(change - 3 * kHourNs, 10), before = add(change - kHourNs, 10),
                    after = add(change + 1, 10), late = add(change + kHourNs, 10);
  ASSERT_TRUE(keep_around_change(pointers_, {"n1"}, change, kMadeUpDayNs + kDayNs, {}).is_ok());
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, kMadeUpDayNs + 30 * kDayNs, {})->removed, 3U);
  EXPECT_TRUE(has(before) && has(after));
  EXPECT_FALSE(has(early) || has(late) || has(foreign));
  const std::vector<RawInfo> kept = store_->raws({}).value();
  for (const RawInfo& info : kept) EXPECT_EQ(info.kept_for, "change point");
}

TEST_F(RawsTest, ObjectsWithoutAPointerGoAfterADay) {
  const std::string address = sha256_hex("abc");
  EXPECT_TRUE(put_raw(*blobs_, address, "abc").value());
  const std::int64_t now = system_clock().wall_ns();
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, now, {})->orphans, 0U);
  EXPECT_EQ(sweep_raws(*blobs_, pointers_, now + 2 * kDayNs, {})->orphans, 1U);
  EXPECT_FALSE(has(address));
}

}  // namespace
}  // namespace purlin::store
