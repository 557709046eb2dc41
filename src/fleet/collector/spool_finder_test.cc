// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/spool_finder.h"

#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace purlin::fleet {
namespace {

class SpoolFinderTest : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-find").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  std::string file(const std::string& name) {
    const std::string path = join_path(root_, name);
    EXPECT_TRUE(make_directories(parent_path(path)).is_ok());
    EXPECT_TRUE(write_atomic(path, "x").is_ok());
    return path;
  }
  std::vector<std::string> names(SpoolFinder& finder) {
    std::vector<std::string> all;
    for (const FoundCapture& capture : finder.look())
      all.push_back(join_path(capture.folder, capture.name).substr(root_.size() + 1));
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string root_;
};

TEST_F(SpoolFinderTest, FindsCapturesOfUsersAndOfRuns) {
  file("watched/a.plprof");
  file("watched/uid-7/b.plprof");
  file("watched/uid-7/deeper/no.plprof");
  file("watched/uid-7/9f.cubin");
  file("tmp/purlin-spool.AbC/c.plprof");
  file("tmp/other/no.plprof");
  file("tmp/no.plprof");
  SpoolFinder finder({{join_path(root_, "watched")}, {join_path(root_, "tmp")}});
  EXPECT_EQ(names(finder),
            (std::vector<std::string>{"tmp/purlin-spool.AbC/c.plprof", "watched/a.plprof",
                                      "watched/uid-7/b.plprof"}));
  EXPECT_TRUE(finder.refused().empty());
}

TEST_F(SpoolFinderTest, TakesNoLinksPipesFoldersOrSecondNames) {
  const std::string secret = file("elsewhere/secret.plprof");
  file("watched/good.plprof");
  const std::string in = join_path(root_, "watched");
  ASSERT_EQ(::symlink(secret.c_str(), join_path(in, "link.plprof").c_str()), 0);
  ASSERT_EQ(::symlink(parent_path(secret).c_str(), join_path(in, "linked").c_str()), 0);
  ASSERT_EQ(::link(secret.c_str(), join_path(in, "hard.plprof").c_str()), 0);
  ASSERT_EQ(::mkfifo(join_path(in, "pipe.plprof").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(join_path(in, "folder.plprof").c_str(), 0700), 0);
  SpoolFinder finder({{in}, {}});
  EXPECT_EQ(names(finder), std::vector<std::string>{"watched/good.plprof"});
  EXPECT_EQ(finder.refused().at("link"), 3U);
  EXPECT_EQ(finder.refused().at("several_names"), 1U);
  // The folder itself must not be a link, either.
  ASSERT_EQ(::symlink(in.c_str(), join_path(root_, "to").c_str()), 0);
  SpoolFinder through({{join_path(root_, "to")}, {}});
  EXPECT_TRUE(names(through).empty());
}

TEST_F(SpoolFinderTest, KeepsItsDescriptorAndKnowsAReplacedFile) {
  const std::string path = file("watched/a.plprof");
  SpoolFinder finder({{join_path(root_, "watched")}, {}});
  const FoundCapture first = finder.look().at(0);
  EXPECT_EQ(finder.look().at(0).file, first.file);
  ASSERT_TRUE(write_atomic(path, "other").is_ok());
  const FoundCapture second = finder.look().at(0);
  EXPECT_NE(second.file, first.file);
  EXPECT_NE(second.key, first.key);
}

TEST_F(SpoolFinderTest, IsBounded) {
  for (int i = 0; i < 10; ++i) file(fmt::format("watched/{}.plprof", i));
  SpoolFinder finder({{join_path(root_, "watched")}, {}, 4});
  EXPECT_EQ(finder.look().size(), 4U);
  EXPECT_EQ(finder.refused().at("too_many"), 6U);
  SpoolFinder nothing({{join_path(root_, "absent")}, {}});
  EXPECT_TRUE(nothing.look().empty());
  EXPECT_TRUE(nothing.refused().empty());
}

}  // namespace
}  // namespace purlin::fleet
