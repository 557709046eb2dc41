// SPDX-License-Identifier: Apache-2.0
// What a session is told by the environment.
#include "profile/capture/session.h"

#include <clocale>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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

// A program may have any: it is the program's environment and locale that are asked.
TEST_F(FromEnvironment, NumbersHaveAPointWhateverTheLocale) {
  const char* found = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"})
    if (found == nullptr) found = std::setlocale(LC_NUMERIC, name);
  if (found == nullptr) GTEST_SKIP() << "no locale with a comma here";
  EXPECT_EQ(budget("0.005"), 0.005);
}

}  // namespace
}  // namespace purlin::profile::capture
