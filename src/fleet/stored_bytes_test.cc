// SPDX-License-Identifier: Apache-2.0
#include "fleet/stored_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace purlin::fleet {
namespace {

class StoredBytesTest : public testing::Test {
 protected:
  // Those under "t/", by key.
  std::vector<blobs::BlobInfo> list() const {
    std::vector<blobs::BlobInfo> objects;
    for (const auto& [key, size] : disk_) objects.push_back({key, size, 0});
    return objects;
  }
  void put(const std::string& key, std::uint64_t size) {
    ASSERT_TRUE(stored_.begin(key, size, 0));
    disk_[key] = size;
    stored_.end(key, size);
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(stored_.begin(key, 0, 0));
    disk_.erase(key);
    stored_.end(key, 0);
  }
  std::map<std::string, std::uint64_t> disk_;
  StoredBytes stored_{[this](const std::string& key) {
    const auto found = disk_.find(key);
    return found == disk_.end() ? 0 : found->second;
  }};
};

TEST_F(StoredBytesTest, AddWhatFits) {
  EXPECT_TRUE(stored_.begin("t/a", 60, 100));
  EXPECT_EQ(stored_.get(), 60u) << "it is about to be";
  EXPECT_FALSE(stored_.begin("t/b", 41, 100));
  EXPECT_TRUE(stored_.begin("t/b", 40, 100));
  EXPECT_FALSE(stored_.begin("t/c", UINT64_MAX, 100));
  EXPECT_TRUE(stored_.begin("t/c", 1, 0)) << "no limit";
  disk_["t/a"] = 60;
  stored_.end("t/a", 60);
  stored_.end("t/b", 40);  // it failed
  stored_.end("t/c", 1);
  EXPECT_EQ(stored_.get(), 60u);
  EXPECT_EQ(stored_.folders(), std::vector<std::string>{"t/"});
}

TEST_F(StoredBytesTest, WhatIsRemovedTwiceAtOnceCountsOnce) {
  put("t/a", 50);
  put("t/b", 7);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stored_.begin("t/a", 0, 0));
  disk_.erase("t/a");
  for (int i = 0; i < 2; ++i) stored_.end("t/a", 0);
  EXPECT_EQ(stored_.get(), 7u);
  disk_["t/others"] = 30;
  remove("t/others");
  EXPECT_EQ(stored_.get(), 0u) << "not counted, it takes no more off than there is";
  remove("t/b");
  EXPECT_TRUE(stored_.folders().empty()) << "nothing is kept of what has nothing";
}

// Two swaps at once: whichever was last on the disk counts.
TEST_F(StoredBytesTest, WhatIsReplacedCountsAsItIs) {
  put("t/i", 50);
  ASSERT_TRUE(stored_.begin("t/i", 70, 0));
  ASSERT_TRUE(stored_.begin("t/i", 20, 0));
  disk_["t/i"] = 20;
  stored_.end("t/i", 20);
  disk_["t/i"] = 70;
  stored_.end("t/i", 70);
  EXPECT_EQ(stored_.get(), 70u);
}

TEST_F(StoredBytesTest, WhatChangesBesideACountIsCountedRightly) {
  put("t/a", 100);
  put("t/b", 20);
  put("u/x", 3);
  disk_["t/others"] = 1000;
  disk_.erase("u/x");
  ASSERT_TRUE(stored_.begin("t/c", 5, 0));  // under way before, over in between
  ASSERT_TRUE(stored_.begin("t/d", 6, 0));  // under way all the time
  ASSERT_TRUE(stored_.begin("t/e", 7, 0));  // the same, and the listing does not see it
  ASSERT_TRUE(stored_
                  .count("t/",
                         [&] {
                           disk_["t/d"] = 6;
                           disk_["t/c.tmp.7.1"] = 3;
                           std::vector<blobs::BlobInfo> seen = list();
                           disk_.erase("t/c.tmp.7.1");
                           disk_["t/c"] = 5;
                           stored_.end("t/c", 5);
                           remove("t/a");
                           put("t/f", 40);
                           put("t/b", 21);
                           disk_["t/e"] = 7;
                           return seen;
                         })
                  .is_ok());
  stored_.end("t/d", 6);
  stored_.end("t/e", 7);
  EXPECT_EQ(stored_.get(), 3u + 1000 + 5 + 6 + 7 + 40 + 21);
  ASSERT_TRUE(stored_.count("u/", [] { return std::vector<blobs::BlobInfo>(); }).is_ok());
  EXPECT_EQ(stored_.get(), 1000u + 5 + 6 + 7 + 40 + 21);
  const Status failed = error(Code::kIo, "the disk is gone");
  const auto fail = [&]() -> Result<std::vector<blobs::BlobInfo>> {
    put("t/f", 41);
    return failed;
  };
  EXPECT_EQ(stored_.count("t/", fail).message(), failed.message());
  EXPECT_EQ(stored_.get(), 1000u + 5 + 6 + 7 + 41 + 21);
  disk_["t/f"] = 2;  // by other programs: changes during the last count do not affect this count
  ASSERT_TRUE(stored_.count("t/", [this] { return list(); }).is_ok());
  EXPECT_EQ(stored_.get(), 1000u + 5 + 6 + 7 + 2 + 21);
}

// An object and a file that a killed process left of it both change during a count.
TEST_F(StoredBytesTest, AnObjectAndItsLeftoverAreEachCountedOnce) {
  put("t/i", 1);
  disk_["t/i.tmp.1.2"] = 5;
  ASSERT_TRUE(stored_
                  .count("t/",
                         [&] {
                           std::vector<blobs::BlobInfo> seen = list();
                           put("t/i", 1);
                           remove("t/i.tmp.1.2");
                           return seen;
                         })
                  .is_ok());
  EXPECT_EQ(stored_.get(), 1u);
}

}  // namespace
}  // namespace purlin::fleet
