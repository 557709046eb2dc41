// SPDX-License-Identifier: Apache-2.0
#include "cache/share/binary_share.h"

#include "base/files.h"
#include "base/hash.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;
const std::string kKernelKey = "00112233445566778899aabbccddeeff";

class BinaryShareTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-binaries").value();
    put(kKernelKey, "{}\ncode");
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void put(const std::string& key, const std::string& body) const {
    const std::string path = at("here", key);
    ASSERT_TRUE(make_directories(parent_path(path)).is_ok());
    ASSERT_TRUE(write_atomic(path, "purlin.binary/1 " + hash128_hex(body) + "\n" + body).is_ok());
  }
  std::string folder(const std::string& name) const { return join_path(root_, name); }
  std::string at(const std::string& name, const std::string& key) const {
    return join_path(join_path(folder(name), key.substr(0, 2)), key + ".bin");
  }
  std::string object() const { return "binaries/" + key_.id() + "-" + kKernelKey + ".bin"; }

  std::string root_;
  blobs::Memory memory_;
  blobs::MemoryBlobs blobs_{memory_};
  SigningKey key_ = SigningKey::from_secret("a secret of the team").value();
  BinaryShare share_{blobs_, key_};
};

TEST_F(BinaryShareTest, AnotherMachineGetsTheSameFile) {
  EXPECT_EQ(share_.push(folder("here"), kPlenty)->moved, 1u);
  ASSERT_TRUE(memory_.objects.contains(object()));
  EXPECT_TRUE(is_binary_object(object()));
  EXPECT_TRUE(check_binary_object(memory_.objects[object()].bytes).is_ok());
  EXPECT_EQ(share_.push(folder("here"), kPlenty)->known, 1u);
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->moved, 1u);
  EXPECT_EQ(*read_file(at("there", kKernelKey), 1000), *read_file(at("here", kKernelKey), 1000));
  EXPECT_TRUE(is_own_directory(folder("there")));
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->known, 1u);
}

// A client that can write objects, but does not know the secret, cannot have code run elsewhere.
TEST_F(BinaryShareTest, WhatTheSecretDidNotSignIsNotTaken) {
  ASSERT_EQ(share_.push(folder("here"), kPlenty)->moved, 1u);
  const std::string good = memory_.objects[object()].bytes;
  std::string planted = good;
  planted.replace(planted.find("code"), 4, "evil");
  const std::string body = planted.substr(planted.find("{}"));
  const std::size_t checksum = planted.find("purlin.binary/1 ") + 16;
  planted.replace(checksum, 32, hash128_hex(body));
  ASSERT_TRUE(check_binary_object(planted).is_ok()) << "whole, but not signed";
  memory_.objects[object()].bytes = planted;
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->refused, 1u);
  EXPECT_FALSE(file_exists(at("there", kKernelKey)));

  // A signed one under the name of another key.
  memory_.objects.clear();
  memory_.objects["binaries/" + key_.id() + "-" + std::string(32, 'a') + ".bin"].bytes = good;
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->refused, 1u);

  // One of another secret is no binary of this one.
  const SigningKey other = SigningKey::from_secret("a secret of another team").value();
  ASSERT_EQ(BinaryShare(blobs_, other).push(folder("here"), kPlenty)->moved, 1u);
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->moved, 0u);
}

TEST_F(BinaryShareTest, DamageAndLimitsLeaveOut) {
  put(std::string(32, 'b'), "{}\nmore code");
  EXPECT_EQ(share_.push(folder("here"), 60)->large, 1u) << "the second is beyond the limit";
  ASSERT_TRUE(write_atomic(at("here", std::string(32, 'b')), "purlin.binary/1 0\nx").is_ok());
  EXPECT_EQ(share_.push(folder("here"), kPlenty)->refused, 1u);
  std::string& bytes = memory_.objects[object()].bytes;
  bytes.resize(bytes.size() - 1);
  EXPECT_FALSE(check_binary_object(bytes).is_ok());
  EXPECT_EQ(share_.pull(folder("there"), kPlenty)->refused, 1u);
}

TEST_F(BinaryShareTest, OldOnesAreRemovedAndNothingElse) {
  ASSERT_EQ(share_.push(folder("here"), kPlenty)->moved, 1u);
  memory_.objects["binaries/notes"].bytes = "kept";
  memory_.modified_ns["binaries/notes"] = 1;
  FakeClock clock;
  clock.now_ns = memory_.now_ns + 10'000'000'000;
  EXPECT_EQ(*remove_old_binaries(blobs_, 11, clock), 0u);
  EXPECT_EQ(*remove_old_binaries(blobs_, 9, clock), 1u);
  EXPECT_EQ(memory_.objects.size(), 1u);
}

TEST(BinaryObject, NamesAreStrict) {
  const std::string id(16, '0'), key(32, 'f');
  EXPECT_TRUE(is_binary_object("binaries/" + id + "-" + key + ".bin"));
  for (const std::string& name :
       {"binaries/" + key + ".bin", "binaries/" + id + "-" + key, std::string("binaries/.bin"),
        "segments/" + id + "-" + key + ".bin", "binaries/" + id + "-../" + key.substr(3) + ".bin"})
    EXPECT_FALSE(is_binary_object(name)) << name;
}

}  // namespace
}  // namespace purlin::cache
