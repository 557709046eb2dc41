// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/page.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Profile one_kernel(const std::string& name, double ns) {
  Profile profile;
  KernelRow row;
  row.name = name;
  for (int i = 0; i < 20; ++i) row.duration.add(ns + i);
  profile.kernels.push_back(row);
  return profile;
}

TEST(DiffPage, ShowsTheChangeAndItsCause) {
  const Diff diff = diff_profiles(one_kernel("gemm", 1e6), one_kernel("gemm", 2e6)).value();
  const std::string page = render_diff_page(diff);
  EXPECT_NE(page.find("Kernel time per run: +"), std::string::npos);
  EXPECT_NE(page.find("longer or shorter launches"), std::string::npos);
  EXPECT_NE(page.find("class=\"more\""), std::string::npos);
  EXPECT_NE(page.find("style-src 'sha256-"), std::string::npos);
}

TEST(DiffPage, NothingOfAProfileIsMarkup) {
  const std::string evil = "<script>alert(1)</script><img src=x>";
  Diff diff = diff_profiles(one_kernel(evil, 1e6), one_kernel("b", 2e6)).value();
  diff.a.path = diff.b.build = evil;
  diff.notes = {evil};
  const std::string page = render_diff_page(diff);
  for (const char* bad : {"<script", "<img", "unsafe"})
    EXPECT_EQ(page.find(bad), std::string::npos) << bad;
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(DiffPage, LeavesRowsOut) {
  Profile a, b;
  for (int i = 0; i < 30; ++i) {
    a.kernels.push_back(one_kernel("kernel" + std::to_string(i), 1e6).kernels[0]);
    b.kernels.push_back(one_kernel("kernel" + std::to_string(i), 2e6 + i).kernels[0]);
  }
  const std::string page = render_diff_page(diff_profiles(a, b).value(), 10);
  EXPECT_NE(page.find("20 more"), std::string::npos);
}

}  // namespace
}  // namespace purlin::analyze
