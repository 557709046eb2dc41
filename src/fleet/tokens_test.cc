// SPDX-License-Identifier: Apache-2.0
#include "fleet/tokens.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace purlin::fleet {
namespace {

constexpr unsigned kMayRead = 2, kMayWrite = 6, kMayAll = 15;

TEST(Tokens, HaveTheScopesThatAreNamedAndWhatTheyInclude) {
  const Tokens tokens = Tokens::parse(
                            "ingest 0123456789abcdef agent\n"
                            "ingest,write 1123456789abcdef ci\n"
                            "admin 2123456789abcdef root\n",
                            "t")
                            .value();
  const auto agent = tokens.find("Bearer 0123456789abcdef");
  EXPECT_TRUE(agent.may(Scope::kIngest, ""));
  EXPECT_FALSE(agent.may(Scope::kRead, ""));
  EXPECT_FALSE(agent.may(Scope::kAdmin, ""));
  EXPECT_EQ(tokens.find("Bearer 1123456789abcdef").scopes(""), 7U);
  EXPECT_EQ(tokens.find("Bearer 2123456789abcdef").scopes(""), kMayAll);
}

TEST(Tokens, MayBeHashedAtRest) {
  const std::string plain =
      "# mine\n\nwrite  0123456789abcdef ci team requests=5\nread fedcba9876543210\n";
  const std::string hashed = Tokens::hashed(plain, "t").value();
  EXPECT_EQ(hashed.find("0123456789abcdef ci"), std::string::npos) << hashed;
  EXPECT_EQ(hashed.find("fedcba9876543210\n"), std::string::npos) << hashed;
  EXPECT_EQ(hashed.rfind("# mine\n\nwrite sha256:", 0), 0U) << hashed;
  EXPECT_EQ(Tokens::hashed(hashed, "t").value(), hashed) << "what is hashed stays";
  const Tokens tokens = Tokens::parse(hashed, "t").value();
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").scopes("team"), kMayWrite);
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").limits.requests_per_s, 5);
  EXPECT_EQ(tokens.find("Bearer fedcba9876543210").scopes("x"), kMayRead);
  // The hash itself is no token.
  const std::string hash = hashed.substr(hashed.find("sha256:") + 7, 64);
  EXPECT_FALSE(tokens.find("Bearer " + hash).known());
  EXPECT_FALSE(tokens.find("Bearer sha256:" + hash).known());
}

TEST(Tokens, SayWhoMayDoWhat) {
  const Tokens tokens = Tokens::parse(
                            "# of the build farm\n"
                            "write  0123456789abcdef  ci \r\n"
                            "\n"
                            "read fedcba9876543210\n",
                            "tokens")
                            .value();
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").scopes("any"), kMayWrite);
  EXPECT_EQ(tokens.find("bearer  0123456789abcdef ").name, "ci");
  EXPECT_EQ(tokens.find("Bearer fedcba9876543210").scopes("any"), kMayRead);
  EXPECT_EQ(tokens.find("Bearer fedcba9876543210").name, "line-4");
  for (const char* other :
       {"", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef",
        "Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "Bearer 0123456789ABCDEF"})
    EXPECT_FALSE(tokens.find(other).known()) << other;
}

TEST(Tokens, TheStrongerOfTwoLinesCounts) {
  const Tokens tokens =
      Tokens::parse("read 0123456789abcdef a\nwrite 0123456789abcdef b\n", "t").value();
  EXPECT_EQ(tokens.find("Bearer 0123456789abcdef").scopes("any"), kMayWrite);
}

TEST(Tokens, AreForAllCachesOrForThoseNamed) {
  const Tokens tokens = Tokens::parse(
                            "write 0123456789abcdef ci team other\n"
                            "read 0123456789abcdef ci third\n",
                            "t")
                            .value();
  const Tokens::Holder holder = tokens.find("Bearer 0123456789abcdef");
  EXPECT_EQ(holder.scopes("team"), kMayWrite);
  EXPECT_EQ(holder.scopes("other"), kMayWrite);
  EXPECT_EQ(holder.scopes("third"), kMayRead);
  EXPECT_EQ(holder.scopes("teams"), 0U);
  EXPECT_EQ(holder.scopes(""), 0U);
}

TEST(Tokens, WithoutAnyEveryoneMayDoEverything) {
  EXPECT_EQ(Tokens().find("").scopes("any"), kMayAll);
  EXPECT_EQ(Tokens().find("").scopes(""), kMayAll);
  EXPECT_TRUE(Tokens().empty());
}

TEST(Tokens, RefuseALineThatIsNone) {
  for (const char* text :
       {"", "# nothing\n", "owner 0123456789abcdef x\n", "read,owner 0123456789abcdef x\n",
        "read sha256:12 x\n", "read 0123456789abcdef x requests=0\n",
        "read 0123456789abcdef x bytes=many\n", "write\n", "write short name\n",
        "write 0123456789abcde\xc3\xbc x\n", "write 0123456789abcdef a B!\n",
        "write 0123456789abcdef a b ../c\n"}) {
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
