// SPDX-License-Identifier: Apache-2.0
#include "profile/spool_reaper.h"

#include "base/files.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

namespace purlin::profile {
namespace {

TEST(SpoolReaper, TakesOnlyFoldersThatNobodyUsesAnyMore) {
  const std::string parent = make_temporary_directory("purlin-reaper").value();
  const auto folder = [&](const char* name, mode_t mode, int age_h) {
    const std::string path = join_path(parent, name);
    EXPECT_EQ(::mkdir(path.c_str(), mode), 0);
    EXPECT_TRUE(write_atomic(join_path(path, "opencl-1-1.plprof"), "x").is_ok());
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec =
        static_cast<time_t>(system_clock().wall_ns() / 1'000'000'000 - age_h * 3600);
    for (const std::string& aged : {join_path(path, "opencl-1-1.plprof"), path})
      EXPECT_EQ(::utimensat(AT_FDCWD, aged.c_str(), times, 0), 0);
    return path;
  };
  const std::string old = folder("purlin-spool.old", 0700, 30);
  const std::string young = folder("purlin-spool.young", 0700, 1);
  const std::string used = folder("purlin-spool.used", 0700, 30);
  const std::string open = folder("purlin-spool.open", 0755, 30);
  const std::string other = folder("another.old", 0700, 30);
  const std::string own = folder("purlin-spool.own", 0700, 30);
  const SpoolLock lock(used);
  ASSERT_TRUE(lock.held());
  EXPECT_EQ(reap_spools(own, system_clock().wall_ns()), 1);
  EXPECT_FALSE(file_exists(old));
  for (const std::string& path : {young, used, open, other, own}) EXPECT_TRUE(file_exists(path));
  ASSERT_TRUE(remove_tree(parent).is_ok());
}

}  // namespace
}  // namespace purlin::profile
