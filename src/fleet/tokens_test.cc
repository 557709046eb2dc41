// SPDX-License-Identifier: Apache-2.0
#include "fleet/tokens.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace purlin::fleet {
namespace {

TEST(Tokens, SayWhoMayDoWhat) {
  const Tokens tokens = Tokens::parse(
                            "# of the build farm\n"
                            "write  0123456789abcdef  ci \r\n"
                            "\n"
                            "read fedcba9876543210\n",
                            "tokens")
                            .value();
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").access("any"), Access::kWrite);
  EXPECT_EQ(tokens.find("bearer  0123456789abcdef ").name, "ci");
  EXPECT_EQ(tokens.find("Bearer fedcba9876543210").access("any"), Access::kRead);
  EXPECT_EQ(tokens.find("Bearer fedcba9876543210").name, "line-4");
  for (const char* other :
       {"", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef",
        "Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "Bearer 0123456789ABCDEF"})
    EXPECT_FALSE(tokens.find(other).known()) << other;
}

TEST(Tokens, TheStrongerOfTwoLinesCounts) {
  const Tokens tokens =
      Tokens::parse("read 0123456789abcdef a\nwrite 0123456789abcdef b\n", "t").value();
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").access("any"), Access::kWrite);
}

TEST(Tokens, AreForAllCachesOrForThoseNamed) {
  const Tokens tokens = Tokens::parse(
                            "write 0123456789abcdef ci team other\n"
                            "read 0123456789abcdef ci third\n",
                            "t")
                            .value();
  const Tokens::Holder holder = tokens.find("Bearer 0123456789abcdef");
  EXPECT_EQ(holder.access("team"), Access::kWrite);
  EXPECT_EQ(holder.access("other"), Access::kWrite);
  EXPECT_EQ(holder.access("third"), Access::kRead);
  EXPECT_EQ(holder.access("teams"), Access::kNone);
  EXPECT_EQ(holder.access(""), Access::kNone);
}

TEST(Tokens, WithoutAnyEveryoneMayWrite) {
  EXPECT_EQ(Tokens().find("").access("any"), Access::kWrite);
  EXPECT_EQ(Tokens().find("").access(""), Access::kWrite);
  EXPECT_TRUE(Tokens().empty());
}

TEST(Tokens, RefuseALineThatIsNone) {
  for (const char* text : {"", "# nothing\n", "admin 0123456789abcdef x\n", "write\n",
                           "write short name\n", "write 0123456789abcde\xc3\xbc x\n",
                           "write 0123456789abcdef a B!\n", "write 0123456789abcdef a b ../c\n"}) {
    const Status status = Tokens::parse(text, "the-file").status();
    EXPECT_EQ(status.code(), Code::kInvalid) << text;
    EXPECT_NE(status.message().find("the-file"), std::string::npos) << text;
  }
  EXPECT_NE(Tokens::parse("\nwrite short x\n", "f").status().message().find("f:2:"),
            std::string::npos);
}

TEST(Tokens, AFileThatEveryoneReadsIsNoSecret) {
  const std::string root = make_temporary_directory("purlin-tokens").value();
  const std::string file = join_path(root, "tokens");
  ASSERT_TRUE(write_atomic(file, "write 0123456789abcdef ci\n").is_ok());
  ::chmod(file.c_str(), 0644);
  EXPECT_NE(Tokens::load(file).status().message().find("chmod"), std::string::npos);
  ::chmod(file.c_str(), 0640);
  EXPECT_TRUE(Tokens::load(file).is_ok());
  EXPECT_FALSE(Tokens::load(file + "x").is_ok());
  ASSERT_TRUE(remove_tree(root).is_ok());
}

}  // namespace
}  // namespace purlin::fleet
