// SPDX-License-Identifier: Apache-2.0
#include "profile/spool.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace purlin::profile {
namespace {

bool says(const Status& status, const std::string& part) {
  return status.message().find(part) != std::string::npos;
}

class SpoolFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = environment_variable("TMPDIR", "/tmp");
    folder_ = make_temporary_directory("purlin-spool-test").value();
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("TMPDIR", before_.c_str(), 1);
    (void)remove_tree(folder_);
  }
  static void leave_file(const Spool& spool, const std::string& kernel) {
    Profile profile;
    ProcessInfo process;
    process.pid = 77;
    process.layer = "opencl";
    process.complete = true;
    profile.processes = {process};
    KernelRow row;
    row.name = kernel;
    row.duration.add(1000);
    profile.kernels = {row};
    ASSERT_TRUE(write_profile(join_path(spool.path(), "opencl-77-1.plprof"), profile).is_ok());
  }
  static void fail_to_write(const Spool& spool, std::int64_t pid) {
    send_spool_fault(spool.path(), {"opencl", pid, ENOSPC});
  }

  std::string before_, folder_;
};

TEST_F(SpoolFolder, AMissingOrUnfitTmpdirIsAnError) {
  for (const char* unfit : {"/nonexistent/purlin", "/dev/null"}) {
    ::setenv("TMPDIR", unfit, 1);
    const Status made = Spool::make().status();
    EXPECT_EQ(made.code(), Code::kIo) << unfit;
    EXPECT_TRUE(says(made, unfit) && says(made, "set TMPDIR")) << made.message();
    EXPECT_EQ(examine_spool().state, CapabilityState::kMissing) << unfit;
  }
  ::setenv("TMPDIR", folder_.c_str(), 1);
  EXPECT_NE(examine_spool().state, CapabilityState::kMissing);
}

TEST_F(SpoolFolder, AProcessThatCouldNotWriteIsAnError) {
  Result<Spool> spool = Spool::make();
  ASSERT_TRUE(spool.is_ok());
  fail_to_write(*spool, 77);
  const Status gathered = spool->gather().status();
  EXPECT_EQ(gathered.code(), Code::kIo);
  EXPECT_TRUE(says(gathered, "nothing was recorded") && says(gathered, "No space left"))
      << gathered.message();
}

TEST_F(SpoolFolder, OneOfSeveralIsANote) {
  Result<Spool> spool = Spool::make();
  leave_file(*spool, "scale");
  fail_to_write(*spool, 78);
  const Result<Profile> gathered = spool->gather();
  ASSERT_TRUE(gathered.is_ok());
  ASSERT_EQ(gathered->coverage.notes.size(), 1u);
  EXPECT_EQ(gathered->coverage.notes[0].cause, "spool_failed");
}

TEST_F(SpoolFolder, LaterWritesMakeUpForAFault) {
  Result<Spool> spool = Spool::make();
  leave_file(*spool, "scale");
  fail_to_write(*spool, 77);
  const Result<Profile> gathered = spool->gather();
  ASSERT_TRUE(gathered.is_ok());
  EXPECT_TRUE(gathered->coverage.notes.empty());
}

TEST_F(SpoolFolder, ARemovedSpoolIsAnError) {
  Result<Spool> spool = Spool::make();
  ASSERT_TRUE(remove_tree(spool->path()).is_ok());
  EXPECT_TRUE(says(spool->gather().status(), "was removed while the command ran"));
}

TEST_F(SpoolFolder, AnEmptyOneIsAnEmptyProfile) {
  Result<Spool> spool = Spool::make();
  EXPECT_FALSE(looks_like_spool(spool->path()));
  EXPECT_TRUE(spool->gather().is_ok());
}

TEST(SpoolFaultText, IsReadBackAndHostileTextIsNot) {
  SpoolFault fault;
  ASSERT_TRUE(parse_spool_fault(to_text(SpoolFault{"cuda", 12, 28}), fault));
  EXPECT_EQ(fault.layer, "cuda");
  EXPECT_EQ(fault.pid, 12);
  EXPECT_EQ(fault.error, 28);
  for (const char* text :
       {"", "purlin-spool/1 ", "purlin-spool/1 cuda", "purlin-spool/1 cuda 12",
        "purlin-spool/1 cuda 12 28 1", "purlin-spool/1 other 12 28", "purlin-spool/1 cuda -1 28",
        "purlin-spool/1 cuda 12 99999", "purlin-spool/1 cuda 12 -2", "purlin-spool/2 cuda 12 28"})
    EXPECT_FALSE(parse_spool_fault(text, fault)) << text;
  EXPECT_FALSE(parse_spool_fault("purlin-spool/1 cuda " + std::string(200, '1') + " 28", fault));
}

}  // namespace
}  // namespace purlin::profile
