// SPDX-License-Identifier: Apache-2.0
// The options that a session reads from the environment.
#include "profile/capture/session/session.h"

#include <clocale>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace purlin::profile::capture {
namespace {

class FromEnvironment : public ::testing::Test {
 protected:
  void TearDown() override {
    std::setlocale(LC_NUMERIC, "C");
    for (const char* name : {"PURLIN_SPOOL", "PURLIN_BUDGET", "PURLIN_LASTING_LAUNCH_NS"})
      ::unsetenv(name);
  }
  static SessionOptions with(const char* name, const char* value) {
    ::setenv("PURLIN_SPOOL", "/nowhere", 1);
    ::setenv(name, value, 1);
    SessionOptions options;
    EXPECT_TRUE(SessionOptions::from_environment("opencl", options));
    return options;
  }
  static double budget(const char* text) { return with("PURLIN_BUDGET", text).budget; }
};

TEST_F(FromEnvironment, BudgetIsAShareOrTheDefault) {
  EXPECT_EQ(budget("0.005"), 0.005);
  EXPECT_EQ(budget("1e-04"), 1e-4);  // as `purlin profile` writes it
  EXPECT_EQ(budget("1"), 1);
  for (const char* text : {"", "0", "-0.5", "1.01", "nan", "inf", "1%", "0.02x", "much"})
    EXPECT_EQ(budget(text), 0.01) << text;
}

TEST_F(FromEnvironment, LastingCostIsClamped) {
  EXPECT_EQ(with("PURLIN_LASTING_LAUNCH_NS", "0").lasting_launch_ns, 0);
  EXPECT_EQ(with("PURLIN_LASTING_LAUNCH_NS", "1e9").lasting_launch_ns, 1e6);
  EXPECT_LT(with("PURLIN_LASTING_LAUNCH_NS", "").lasting_launch_ns, 0);
}

// A program may have any: it is the program's environment and locale that are asked. A machine need
// not have one with a comma, so this is what localedef makes of one (glibc's LC_NUMERIC: a magic
// number, how many fields there are and where, and the fields).
TEST_F(FromEnvironment, NumbersHaveAPointInAnyLocale) {
  constexpr std::string_view kComma(
      "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x23\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0,"
      "\0\0\0,\0\0\0"
      "\0\0\0\0"
      "ANSI_X3.4-1968",
      59);
  const std::string folder = ::testing::TempDir() + "purlin-locale";
  std::filesystem::create_directories(folder + "/xx_XX");
  std::ofstream(folder + "/xx_XX/LC_NUMERIC") << kComma;
  ::setenv("LOCPATH", folder.c_str(), 1);
  ASSERT_NE(std::setlocale(LC_NUMERIC, "xx_XX"), nullptr);
  EXPECT_EQ(std::strtod("0.5", nullptr), 0) << "the locale has no comma";
  EXPECT_EQ(budget("0.005"), 0.005);
  std::setlocale(LC_NUMERIC, "C");
  ::unsetenv("LOCPATH");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace purlin::profile::capture
