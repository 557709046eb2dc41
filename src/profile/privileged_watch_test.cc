// SPDX-License-Identifier: Apache-2.0
#include "profile/privileged_watch.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace purlin::profile {
namespace {

ProcessRights rights_of(const std::string& text) {
  ProcessRights rights;
  EXPECT_TRUE(read_rights(text, rights)) << text;
  return rights;
}

TEST(ProcessRights, OfOneThatHasMoreThanItsCaller) {
  const ProcessRights own =
      rights_of("Name:\tpurlin\nUid:\t1000\t1000\t1000\t1000\nGid:\t7\t7\t7\t7\nCapEff:\t0\n");
  EXPECT_FALSE(has_more_rights(own, own));
  const auto more = [&](const std::string& text) { return has_more_rights(rights_of(text), own); };
  EXPECT_TRUE(more("Name:\tsu\nUid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\n"));
  EXPECT_TRUE(more("Name:\tsudo\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"));
  EXPECT_TRUE(more("Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t7\t44\t44\t44\n"));
  EXPECT_TRUE(more("Uid:\t1000\t1000\t1000\t1000\nGid:\t7\t7\t7\t7\nCapEff:\t0000000000002000\n"));
  // Root that starts a program of another user gives rights up.
  const ProcessRights root = rights_of("Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\tffff\n");
  EXPECT_FALSE(has_more_rights(own, root));
  ProcessRights none;
  EXPECT_FALSE(read_rights("", none));
  EXPECT_FALSE(read_rights("Uid\nGid:", none));
}

TEST(PrivilegedWatch, FindsNothingInAnOrdinaryProcess) {
  PrivilegedWatch watch(::getpid());
  EXPECT_TRUE(watch.stop().empty());
  EXPECT_TRUE(watch.stop().empty());
}

}  // namespace
}  // namespace purlin::profile
