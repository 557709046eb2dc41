// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "profile/format/file.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

class Open : public ::testing::Test {
 protected:
  Open() : folder_(*make_temporary_directory("purlin-open")) {}
  ~Open() override { EXPECT_TRUE(remove_tree(folder_).is_ok()); }
  std::string file(const std::string& name, std::string_view contents) const {
    const std::string path = join_path(folder_, name);
    EXPECT_TRUE(write_atomic(path, contents).is_ok());
    return path;
  }
  std::string folder_;
};

TEST_F(Open, FormatsAreKnownByContentsAndNotByName) {
  EXPECT_EQ(*detect_format(file("a.sqlite", encode_profile(Profile{}))), Format::kPurlin);
  EXPECT_EQ(*detect_format(file("b.csv", R"({"traceEvents": [{"ph": "X", "cat": "kernel"}]})")),
            Format::kChrome);
  EXPECT_EQ(*detect_format(file("c.json", "program says, this\n\"ID\",\"Kernel Name\"\n")),
            Format::kNcuCsv);
  EXPECT_EQ(*detect_format(file("d.csv", "\"Name\",\"Calls\",\"TotalDurationNs\"\n")),
            Format::kRocprofCsv);
  EXPECT_EQ(*detect_format(file("e.txt", R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})")),
            Format::kExecutionTrace);
  EXPECT_EQ(*detect_format(folder_), Format::kRocprofCsv);
}

TEST_F(Open, TheTableOfNcuMayComeLate) {
  std::string printed;
  for (int i = 0; i < 40'000; ++i) printed += "a line of the program, \"quoted\n";
  EXPECT_EQ(*detect_format(file("late", printed + "\"ID\",\"Kernel Name\"\n")), Format::kNcuCsv);
}

TEST_F(Open, WhatIsForeignSaysWhatToDo) {
  const auto advice = [&](const std::string& name, std::string_view contents) {
    const Result<Format> format = detect_format(file(name, contents));
    EXPECT_EQ(format.status().code(), Code::kInvalid) << name;
    return format.status().message();
  };
  const auto says = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(says(advice("r.nsys-rep", "x"), "nsys export --type sqlite"));
  EXPECT_TRUE(says(advice("renamed", std::string_view("NVR\0x", 5)), "ncu --import"));
  EXPECT_TRUE(says(advice("t.pftrace", "\n\x01"), "traceconv json"));
  EXPECT_TRUE(says(advice("s.csv", "\"Time (%)\",\"Total Time (ns)\",\"Instances\",\"Name\"\n"),
                   "nsys stats"));
  EXPECT_TRUE(says(advice("t.csv", "\"Start (ns)\",\"Duration (ns)\",\"CorrId\",\"GrdX\"\n"),
                   "nsys export"));
  EXPECT_TRUE(says(advice("v.csv", "==12== Profiling result:\n\"Type\"\n"), "nvprof"));
  EXPECT_TRUE(
      says(advice("p.txt", "Name  Self CUDA  CUDA total  # of Calls\n"), "export_chrome_trace"));
  EXPECT_TRUE(
      says(advice("i.txt", "=== Device Timing Summary ===\n\nTotal Execution Time (ns): 9\n"),
           "--chrome-kernel-logging"));
  EXPECT_TRUE(says(advice("u.csv", "\xFF\xFE\"\1I\1D"), "iconv -f UTF-16"));
  EXPECT_TRUE(says(advice("b.csv", std::string_view("\xFE\xFF\0\"\0I", 6)), "iconv -f UTF-16"));
  EXPECT_TRUE(says(advice("n.txt", "hello"), "supported:"));
  EXPECT_TRUE(says(advice("e", ""), "empty"));
  EXPECT_TRUE(says(advice("j.json", "[1, 2]"), "no trace"));
  EXPECT_EQ(detect_format(folder_ + "/absent").status().code(), Code::kNotFound);
  EXPECT_EQ(detect_format("/dev/null").status().code(), Code::kInvalid);
  EXPECT_EQ(open_profile(folder_).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::profile
