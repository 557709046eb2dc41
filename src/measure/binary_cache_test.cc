// SPDX-License-Identifier: Apache-2.0
#include "measure/binary_cache.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <vector>

namespace purlin::measure {
namespace {

class BinaryCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { directory_ = make_temporary_directory("purlin-binaries").value(); }
  void TearDown() override { static_cast<void>(remove_tree(directory_)); }

  std::string only_file() const {
    const std::string folder = join_path(directory_, list_directory(directory_)->front());
    return join_path(folder, list_directory(folder)->front());
  }
  std::string directory_;
};

gpu::Binary sample() {
  return {"gemm_lowered",
          std::string("\0\x7f"
                      "ELF\n\n{}\xff",
                      10),
          "warning: x", 1.5};
}

TEST_F(BinaryCacheTest, KeepsABinary) {
  const BinaryCache cache(directory_);
  const std::string key = BinaryCache::key({}, {});
  EXPECT_FALSE(cache.get(key));
  ASSERT_TRUE(cache.put(key, sample()).is_ok());
  const auto back = BinaryCache(directory_).get(key);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->entry, "gemm_lowered");
  EXPECT_EQ(back->image, sample().image);
  EXPECT_EQ(back->log, "warning: x");
  EXPECT_EQ(back->compile_s, 1.5);
}

TEST_F(BinaryCacheTest, EveryDamageIsAMiss) {
  const BinaryCache cache(directory_);
  const std::string key = BinaryCache::key({}, {});
  ASSERT_TRUE(cache.put(key, sample()).is_ok());
  const std::string path = only_file();
  const std::string whole = *read_file(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    ASSERT_TRUE(write_atomic(path, damaged).is_ok());
    EXPECT_FALSE(cache.get(key)) << "flipped byte " << i;
    ASSERT_TRUE(write_atomic(path, whole.substr(0, i)).is_ok());
    EXPECT_FALSE(cache.get(key)) << "cut at " << i;
  }
}

TEST_F(BinaryCacheTest, AFileUnderAnotherKeysNameIsAMiss) {
  const BinaryCache cache(directory_);
  const std::string key = BinaryCache::key({}, {});
  ASSERT_TRUE(cache.put(key, sample()).is_ok());
  std::string other = key;
  other.back() = other.back() == '0' ? '1' : '0';
  ASSERT_TRUE(
      write_atomic(join_path(parent_path(only_file()), other + ".bin"), *read_file(only_file()))
          .is_ok());
  EXPECT_FALSE(cache.get(other));
}

// Under a CPU driver, images are native code.
TEST_F(BinaryCacheTest, WhatOthersCouldHavePutThereIsAMiss) {
  const std::string folder = join_path(directory_, "shared"), link = join_path(directory_, "link");
  const std::string key = BinaryCache::key({}, {});
  ASSERT_TRUE(BinaryCache(folder).put(key, sample()).is_ok());
  EXPECT_TRUE(BinaryCache(folder).get(key));
  EXPECT_TRUE(is_private_directory(folder));
  std::filesystem::permissions(folder, std::filesystem::perms(0775));
  EXPECT_FALSE(BinaryCache(folder).get(key));
  ASSERT_TRUE(BinaryCache(folder).put(key, sample()).is_ok()) << "it is closed to others again";
  EXPECT_TRUE(BinaryCache(folder).get(key));
  std::filesystem::create_directory_symlink(folder, link);
  EXPECT_FALSE(BinaryCache(link).get(key));
  EXPECT_FALSE(BinaryCache(link).put(key, sample()).is_ok());
}

TEST_F(BinaryCacheTest, AFolderThatCannotBeWrittenIsAnError) {
  const std::string file = join_path(directory_, "file");
  ASSERT_TRUE(write_atomic(file, "").is_ok());
  EXPECT_FALSE(BinaryCache(file).put(BinaryCache::key({}, {}), sample()).is_ok());
}

TEST_F(BinaryCacheTest, WhatDecidesTheBinaryDecidesTheKey) {
  const std::string header = join_path(directory_, "tile.h");
  ASSERT_TRUE(write_atomic(header, "#include \"deep.h\"\n").is_ok());
  ASSERT_TRUE(write_atomic(join_path(directory_, "deep.h"), "#define T 1\n").is_ok());
  DeviceInfo device;
  gpu::CompileRequest request;
  request.source = "  # include \"tile.h\"\nkernel";
  request.include_directories = {directory_};
  std::set<std::string> keys = {BinaryCache::key(device, request)};
  std::size_t expected = 1;
  const auto changed = [&](const char* what) {
    keys.insert(BinaryCache::key(device, request));
    EXPECT_EQ(keys.size(), ++expected) << what;
  };
  request.source += " ";
  changed("source");
  request.entry = "gemm";
  changed("entry");
  request.options = {"-a", "b"};
  changed("options");
  request.options = {"-ab"};
  changed("how options are cut");
  request.config.set("BM", std::int64_t{64});
  changed("config");
  device.driver = "2";
  changed("driver");
  device.toolkit = "NVRTC 13.0";
  changed("toolkit");
  device.arch = "sm_90";
  changed("arch");
  ASSERT_TRUE(write_atomic(header, "#include \"deep.h\"\n// edited\n").is_ok());
  changed("an included header");
  ASSERT_TRUE(write_atomic(join_path(directory_, "deep.h"), "#define T 2\n").is_ok());
  changed("a header's header");
  const std::string sub = join_path(directory_, "sub");
  ASSERT_TRUE(make_directories(sub).is_ok());
  ASSERT_TRUE(write_atomic(join_path(sub, "option.h"), "#define T 3\n").is_ok());
  request.source += "\n#include <option.h>\n";
  request.options = {"-I" + sub};
  changed("an option and a line");
  ASSERT_TRUE(write_atomic(join_path(sub, "option.h"), "#define T 4\n").is_ok());
  changed("a header in a folder of the options");
  EXPECT_EQ(keys.count(BinaryCache::key(device, request)), 1u);
}

TEST_F(BinaryCacheTest, WhatWasLongestUnusedIsPruned) {
  const BinaryCache cache(join_path(directory_, "pruned"));
  EXPECT_TRUE(cache.prune().is_ok()) << "a cache that does not exist yet";
  gpu::Binary binary;
  binary.image = std::string(1000, 'x');
  const std::vector<std::string> keys = {"aa0", "bb0", "cc0"};
  const auto now = std::filesystem::file_time_type::clock::now();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(cache.put(keys[i], binary).is_ok());
    const std::string path =
        join_path(cache.directory(), keys[i].substr(0, 2) + "/" + keys[i] + ".bin");
    std::filesystem::last_write_time(path, now - std::chrono::hours(9 - static_cast<int>(i)));
  }
  EXPECT_TRUE(cache.get("aa0"));  // the oldest, but used now
  ASSERT_TRUE(cache.prune(2500).is_ok());
  EXPECT_TRUE(cache.get("aa0"));
  EXPECT_FALSE(cache.get("bb0"));
  EXPECT_TRUE(cache.get("cc0"));
  ASSERT_TRUE(cache.prune(0).is_ok());
  EXPECT_FALSE(cache.get("aa0"));
}

}  // namespace
}  // namespace purlin::measure
