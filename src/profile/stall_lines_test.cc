// SPDX-License-Identifier: Apache-2.0
#include "profile/stall_lines.h"

#include "base/files.h"
#include "profile/sass_for_test.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

Profile sampled() {
  Profile profile;
  profile.stalls.reasons = {"barrier"};
  for (const std::uint64_t code : {std::uint64_t{0xabc}, std::uint64_t{0xdef}}) {
    StallFunction function;
    function.name = "gemm";
    function.code = code;
    for (const std::uint64_t offset : {std::uint64_t{16}, std::uint64_t{32}, StallSite::kNowhere}) {
      StallSite site;
      site.offset = offset;
      site.add(0, 5);
      function.sites.push_back(site);
    }
    profile.stalls.functions.push_back(function);
  }
  return profile;
}

class StallLines : public testing::Test {
 protected:
  void SetUp() override {
    spool_ = make_temporary_directory("purlin-test").value_or("");
    ASSERT_TRUE(write_atomic(join_path(spool_, "0000000000000abc.cubin"), "code").is_ok());
  }
  void TearDown() override { (void)remove_tree(spool_); }
  std::string spool_;
};

TEST_F(StallLines, SitesOfModulesThatWereLeftGetTheirLines) {
  Profile profile = sampled();
  find_lines(profile, spool_, [](std::string_view module, const std::string& name, auto offset) {
    EXPECT_EQ(module, "code");
    EXPECT_EQ(name, "gemm");
    return offset == 16 ? FoundLine{"/src/gemm.cu", 7} : FoundLine{};
  });
  const auto& sites = profile.stalls.functions[0].sites;
  EXPECT_EQ(profile.stalls.files[sites[0].file], "/src/gemm.cu");
  EXPECT_EQ(sites[0].line, 7u);
  EXPECT_EQ(sites[1].line, 0u);
  EXPECT_EQ(sites[2].line, 0u);
  EXPECT_EQ(profile.stalls.functions[1].sites[0].line, 0u);  // its module was not left
  EXPECT_TRUE(profile.coverage.notes.empty());
}

// The sample is of an instruction after the barrier, where the source may be elsewhere.
TEST_F(StallLines, SamplesThatWaitAtABarrierAreOfItsLine) {
  ASSERT_TRUE(write_atomic(join_path(spool_, "0000000000000abc.cubin"),
                           module_of({0x890, 0xb1d, 0xc0c, 0x947}))
                  .is_ok());
  for (const char* reason : {"barrier", "wait"}) {
    Profile profile = sampled();
    profile.stalls.reasons = {reason};
    for (StallFunction& function : profile.stalls.functions) function.name = "f";
    find_lines(profile, spool_, [](auto, const auto&, auto offset) {
      return FoundLine{"/src/f.cu", static_cast<std::uint32_t>(offset)};
    });
    const StallSite& after = profile.stalls.functions[0].sites[1];
    EXPECT_EQ(after.offset, 32u);
    EXPECT_EQ(after.line, profile.stalls.reasons[0] == "barrier" ? 16u : 32u);
  }
}

TEST_F(StallLines, TimeThatRanOutIsNoted) {
  Profile profile = sampled();
  find_lines(
      profile, spool_,
      [](auto, const auto&, auto) {
        return FoundLine{"a", 1};
      },
      -1);
  EXPECT_EQ(profile.stalls.functions[0].sites[0].line, 0u);
  ASSERT_EQ(profile.coverage.notes.size(), 1u);
  EXPECT_EQ(profile.coverage.notes[0].cause, "stall_lines");
}

TEST_F(StallLines, WithoutModulesNothingIsOpenedOrNoted) {
  Profile profile = sampled();
  profile.stalls.functions.erase(profile.stalls.functions.begin());
  find_lines(profile, spool_);
  EXPECT_TRUE(profile.coverage.notes.empty());
}

}  // namespace
}  // namespace purlin::profile
