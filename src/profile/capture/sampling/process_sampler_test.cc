// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/process_sampler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace purlin::profile::capture {
namespace {

std::string arguments(std::initializer_list<const char*> words) {
  std::string text;
  for (const char* word : words) text += std::string(word) + '\0';
  return text;
}

TEST(ProgramName, IsTheProgramAndNotItsArguments) {
  EXPECT_EQ(program_name("/opt/bin/solver", arguments({"./solver", "--size", "12"})),
            "/opt/bin/solver");
  const std::string python = "/usr/bin/python3.12";
  EXPECT_EQ(program_name(python, arguments({"python3", "-u", "src/train.py", "--lr", "0.1"})),
            python + " train.py");
  EXPECT_EQ(program_name(python, arguments({"python3", "-X", "dev", "train.py"})),
            python + " train.py");
  EXPECT_EQ(program_name(python, arguments({"python3", "-m", "pkg.serve", "x.py"})),
            python + " -m pkg.serve");
  EXPECT_EQ(program_name(python, arguments({"python3"})), python);
  EXPECT_EQ(program_name(python, arguments({"python3", "-m"})), python);
  EXPECT_EQ(program_name(python, ""), python);
  EXPECT_EQ(program_name("/usr/bin/java", arguments({"java", "-Xmx2g", "-jar", "lib/app.jar"})),
            "/usr/bin/java -jar app.jar");
  const std::string one = program_name(python, arguments({"python3", "-c", "import torch"}));
  EXPECT_NE(one, program_name(python, arguments({"python3", "-c", "import jax"})));
  EXPECT_EQ(one.find("import"), std::string::npos) << "code is not for file names";
  EXPECT_EQ(program_name("/opt/pythonic", arguments({"pythonic", "a.py"})), "/opt/pythonic");
}

TEST(IsDrawn, OneRankInN) {
  for (const int n : {1, 2, 3, 7, 64})
    for (std::uint64_t run = 0; run < 20; ++run) {
      int drawn = 0;
      for (long rank = 0; rank < 10l * n; ++rank) drawn += is_drawn(number_of("x") + run, rank, n);
      EXPECT_EQ(drawn, 10);
    }
}

TEST(IsDrawn, OneRunInN) {
  int drawn = 0;
  for (int run = 0; run < 7000; ++run)
    drawn += is_drawn(number_of("job-" + std::to_string(run)), -1, 7);
  EXPECT_NEAR(drawn, 1000, 100);
}

// What the environment and the state folder make of it. Each test sets the variables it needs.
class Draw : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text = ::testing::TempDir() + "purlin-sampler-XXXXXX";
    folder_ = ::mkdtemp(text.data());
    for (const char* name :
         {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_JOB_ID",
          "PURLIN_FULL", "PURLIN_WAITS", "PURLIN_WINDOW", "PURLIN_COUNTERS", "PURLIN_STALLS",
          "PURLIN_IDLE", "PURLIN_SAMPLE", "PURLIN_RUN_ID", "PURLIN_COPIES", "PURLIN_WINDOWS"})
      ::unsetenv(name);
    set("PURLIN_STATE", folder_);
    set("PURLIN_PROGRAM", "test");
    set("PURLIN_COPIES", "auto");
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("PURLIN_STATE");
    ::unsetenv("PURLIN_PROGRAM");
    ::unsetenv("PURLIN_COPIES");
    ::unsetenv("PURLIN_FULL");
    ::unsetenv("PURLIN_SAMPLE");
    ::unsetenv("PURLIN_RUN_ID");
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static ProcessSampler sampler(double budget = 0.01) {
    return ProcessSampler::from_environment(budget, true);
  }
  void leave(double presence, bool ended = false, bool launch_bound = false) {
    CostRecord record;
    const ProcessSampler now = sampler();
    record.identity = now.identity;
    record.budget = 0.01;
    record.presence = presence;
    record.ended = ended;
    record.launch_bound = launch_bound;
    record.runs = 1;
    ASSERT_EQ(write_cost_record(now.path, record), "");
  }
  int captured(int runs, double budget = 0.01) {
    int count = 0;
    for (int run = 0; run < runs; ++run) {
      set("PURLIN_RUN_ID", "run-" + std::to_string(run));
      const ProcessSampler one = sampler(budget);
      count += one.left_out.empty();
      EXPECT_EQ(one.left_out.empty(), one.one_in > 0);
      if (one.left_out.empty()) stands_for_ += one.one_in;
    }
    return count;
  }

  std::string folder_;
  int stands_for_ = 0;
};

TEST_F(Draw, WithoutARecordEveryRunIsRecordedAndSaysSo) {
  const ProcessSampler first = sampler();
  EXPECT_EQ(first.left_out, "");
  EXPECT_EQ(first.one_in, 1);
  ASSERT_EQ(first.notes.size(), 1u);
  EXPECT_STREQ(first.notes[0].cause, "sample_auto");
  EXPECT_NE(first.notes[0].text.find(first.path), std::string::npos);
}

TEST_F(Draw, AutoIsWhatNothingSays) {
  leave(0.5);
  set("PURLIN_SAMPLE", "auto");
  const int automatic = captured(50);
  ::unsetenv("PURLIN_SAMPLE");
  EXPECT_EQ(captured(50), automatic);
  set("PURLIN_SAMPLE", "1");
  EXPECT_EQ(captured(50), 50);
}

TEST_F(Draw, RecordsAsManyRunsAsHoldTheBudget) {
  leave(0.04);
  EXPECT_NEAR(captured(2000), 333, 60);
  EXPECT_NEAR(stands_for_, 2000, 300) << "those recorded stand for all";
  EXPECT_NEAR(captured(2000, 0.02), 667, 70);
  EXPECT_EQ(captured(200, 0.05), 200);
  leave(0.009);
  EXPECT_EQ(captured(200), 200) << "held by every run: nothing changes";
  EXPECT_TRUE(sampler().notes.empty());
}

TEST_F(Draw, RanksOfARunAgree) {
  leave(0.033);
  set("PURLIN_RUN_ID", "job-17");
  int count = 0;
  for (int rank = 0; rank < 32; ++rank) {
    set("RANK", std::to_string(rank));
    const ProcessSampler one = sampler();
    count += one.left_out.empty();
    if (one.left_out.empty()) continue;
    EXPECT_NE(one.left_out.find("3.3 %"), std::string::npos) << one.left_out;
  }
  ::unsetenv("RANK");
  EXPECT_EQ(count, 6);
}

TEST_F(Draw, KnowsWhatIsRecordedApart) {
  const std::string usual = sampler().path;
  set("PURLIN_FULL", "1");
  const ProcessSampler full = sampler();
  EXPECT_NE(full.path, usual);
  EXPECT_FALSE(full.governed);
  set("PURLIN_FULL", "0");
  set("PURLIN_PROGRAM", "another\nline");
  EXPECT_NE(sampler().path, usual);
  EXPECT_EQ(sampler().identity.find("another\nline"), std::string::npos);
}

TEST_F(Draw, CopiesAreNotRecordedOfProgramsKnownForManyLaunches) {
  EXPECT_TRUE(sampler().copies);
  ::unsetenv("PURLIN_COPIES");  // injected without a word: what is not known is not risked
  const ProcessSampler unknown = sampler();
  EXPECT_FALSE(unknown.copies);
  ASSERT_EQ(unknown.notes.size(), 2u);
  EXPECT_STREQ(unknown.notes[0].cause, "no_copies");
  for (const char* copies : {"auto", "on", "off", ""}) {
    set("PURLIN_COPIES", copies);
    const bool on = std::string(copies) == "on", off = std::string(copies) == "off";
    leave(0.001, false);
    EXPECT_EQ(sampler().copies, !off) << copies;
    leave(0.001, true);
    const ProcessSampler bound = sampler();
    EXPECT_EQ(bound.copies, on) << copies;
    EXPECT_EQ(bound.notes.size(), on || off ? 0u : 1u) << copies;
    set("PURLIN_WINDOWS", "on");
    EXPECT_EQ(sampler().copies, on) << copies;
    ::unsetenv("PURLIN_WINDOWS");
    set("PURLIN_SAMPLE", "1");  // as `purlin profile` does: nothing is asked, nothing is kept
    EXPECT_EQ(sampler().copies, !off) << copies;
    EXPECT_EQ(sampler().path, "");
    ::unsetenv("PURLIN_SAMPLE");
  }
}

TEST_F(Draw, WindowsAreForProgramsKnownToHaveRoomForThem) {
  EXPECT_FALSE(sampler().windows) << "what is not known is not risked";
  for (const char* windows : {"auto", "on", "off", ""}) {
    set("PURLIN_WINDOWS", windows);
    const bool on = std::string(windows) == "on", off = std::string(windows) == "off";
    leave(0.001, false, false);
    EXPECT_EQ(sampler().windows, on) << windows << ": all of it is recorded";
    leave(0.001, true, false);
    EXPECT_EQ(sampler().windows, !off) << windows;
    EXPECT_FALSE(sampler().copies) << windows;
    leave(0.001, true, true);
    EXPECT_EQ(sampler().windows, on) << windows << ": launch-bound";
  }
  ::unsetenv("PURLIN_WINDOWS");
  leave(0.001, true, false);
  EXPECT_FALSE(sampler(0.005).windows) << "there was room within a larger budget";
  EXPECT_TRUE(sampler(0.02).windows);
  for (const char* off : {"0", "off"}) {
    set("PURLIN_WINDOWS", off);
    EXPECT_FALSE(sampler().windows) << off;
  }
  ::unsetenv("PURLIN_WINDOWS");
  set("PURLIN_FULL", "1");
  leave(0.001, true, false);
  EXPECT_FALSE(sampler().windows) << "every launch is recorded";
  ::unsetenv("PURLIN_FULL");
  set("PURLIN_SAMPLE", "1");
  EXPECT_FALSE(sampler().windows) << "no record is asked";
}

TEST_F(Draw, WhateverIsWrongTheRunIsRecorded) {
  leave(0.5);
  const std::string path = sampler().path;
  for (const std::string& text : {std::string("nonsense"), std::string("purlin-cost/4\n")}) {
    std::ofstream(path) << text;
    const ProcessSampler one = sampler();
    EXPECT_EQ(one.left_out, "");
    ASSERT_EQ(one.notes.size(), 1u);
    EXPECT_STREQ(one.notes[0].cause, "sample_record");
  }
  set("PURLIN_STATE", "relative");
  EXPECT_EQ(sampler().left_out, "");
  EXPECT_EQ(sampler().path, "");
}

TEST_F(Draw, WhatGoesByNoBudgetIsNotLeftOut) {
  leave(0.5);
  set("PURLIN_RUN_ID", "run-0");
  EXPECT_EQ(ProcessSampler::from_environment(0.01, false).one_in, 1);
  set("PURLIN_IDLE", "1");
  EXPECT_EQ(sampler().one_in, 1) << "it costs nothing until it is asked";
  ::unsetenv("PURLIN_IDLE");
}

}  // namespace
}  // namespace purlin::profile::capture
