// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/settings.h"

#include "base/files.h"
#include "cli/frame/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace purlin::cli {
namespace {

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_directory("settings");
    user_ = folder_ + "/user";
    project_ = folder_ + "/project";
    ASSERT_TRUE(make_directories(user_).is_ok());
    ASSERT_TRUE(make_directories(project_ + "/deep/er").is_ok());
    for (const char* name : {"PURLIN_DEVICE", "PURLIN_CACHE", "PURLIN_JOBS"}) ::unsetenv(name);
  }
  void TearDown() override {
    ::unsetenv("PURLIN_DEVICE");
    ASSERT_TRUE(remove_tree(folder_).is_ok());
  }
  Result<Settings> load() { return Settings::load(project_ + "/deep/er", user_); }
  std::string folder_, user_, project_;
};

TEST_F(SettingsTest, NearerSourcesWinAndNameThemselves) {
  ASSERT_TRUE(write_atomic(user_ + "/purlin.toml", "device = \"opencl:0\"\njobs = 3\n").is_ok());
  ASSERT_TRUE(
      write_atomic(project_ + "/purlin.toml", "device = \"cuda:1\"\ncache = \"kept\"\n").is_ok());
  Result<Settings> settings = load();
  ASSERT_TRUE(settings.is_ok()) << settings.status().message();
  EXPECT_EQ(settings->find("device"), "cuda:1");
  EXPECT_EQ(settings->find("jobs"), "3");
  EXPECT_EQ(settings->find("cache"), project_ + "/kept");
  EXPECT_EQ(settings->find("color"), std::nullopt);
  EXPECT_EQ(settings->all()[0].origin, project_ + "/purlin.toml:1:10");
  ::setenv("PURLIN_DEVICE", "opencl:7", 1);
  settings = load();
  EXPECT_EQ(settings->find("device"), "opencl:7");
  EXPECT_EQ(settings->all()[0].origin, "environment PURLIN_DEVICE");
}

// "--device" of report chooses rows, and "--build" of guard is a command of the shell.
TEST_F(SettingsTest, ASettingDoesNotSetAnOptionThatOnlyHasItsName) {
  ::setenv("PURLIN_DEVICE", "opencl:7", 1);
  const Settings settings = load().value();
  Flags flags("verb", "summary", &settings);
  std::string setting, own;
  flags.option("--device", setting, "a device", "DEVICE");
  flags.own_option("-d,--device-of-rows", own, "rows", "DEVICE");
  Flags other("verb", "summary", &settings);
  other.own_option("--device", own, "rows", "DEVICE");
  EXPECT_EQ(setting, "opencl:7");
  EXPECT_EQ(own, "");
}

TEST_F(SettingsTest, UnknownKeyIsRefusedWithAHint) {
  ASSERT_TRUE(write_atomic(project_ + "/purlin.toml", "devise = \"cuda:1\"\n").is_ok());
  const Result<Settings> settings = load();
  ASSERT_FALSE(settings.is_ok());
  EXPECT_NE(settings.status().message().find("did you mean 'device'?"), std::string::npos);
  EXPECT_NE(settings.status().message().find("purlin.toml:1:"), std::string::npos);
}

TEST_F(SettingsTest, FileWritableByEveryoneIsRefused) {
  const std::string path = project_ + "/purlin.toml";
  ASSERT_TRUE(write_atomic(path, "jobs = 1\n").is_ok());
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const Result<Settings> settings = load();
  ASSERT_FALSE(settings.is_ok());
  EXPECT_NE(settings.status().message().find("writable by everyone"), std::string::npos);
}

}  // namespace
}  // namespace purlin::cli
