// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/html.h"
#include "analyze/report/html_assets.h"
#include "analyze/report/testing.h"
#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::analyze {
namespace {

constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"purlin-report\">";

Json embedded(const std::string& page) {
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  const Result<Json> document =
      Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_TRUE(document.is_ok()) << document.status().message();
  return document.value_or(Json());
}

std::string page_of(const Profile& profile, const HtmlLimits& limits = {}) {
  return render_html(build_report(profile, GroupBy::kKernel),
                     build_report(profile, GroupBy::kLaunch), limits);
}

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(ReportHtml, HoldsTheReport) {
  const Report report = full_report();
  const std::string page = render_html(report, full_report(GroupBy::kLaunch));
  if (const char* path = std::getenv("PURLIN_WRITE_PAGE")) {  // to look at it
    ASSERT_TRUE(write_atomic(path, page).is_ok());
  }
  const Json document = embedded(page);
  EXPECT_EQ(document["schema"].as_string(), "purlin.report/1");
  const Json wanted = to_json(report);
  for (const Json::Member& member : wanted.members())
    EXPECT_EQ(document[member.key], member.value) << member.key;
  EXPECT_EQ(document["page"]["rows"].as_int(), 4);
  ASSERT_EQ(document["page"]["details"].size(), 4u);
  const Json& first = document["page"]["details"].items()[0];
  EXPECT_EQ(first["shapes"].size(), 2u);
  double count = 0;
  for (const Json& bin : first["histogram"]["count"].items()) count += bin.as_double();
  EXPECT_EQ(count, 250);
}

// Nothing is loaded, and the policy names exactly the one style and the one script.
TEST(ReportHtml, LoadsNothing) {
  const std::string page = page_of(sketches_only());
  EXPECT_EQ(occurrences(page, "<script"), 2u);
  EXPECT_EQ(occurrences(page, "<style"), 1u);
  EXPECT_NE(page.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-inline"), std::string::npos);
  for (const char* loader : {" src=", "@import", "url(", "import(", "fetch(", "XMLHttpRequest",
                             "innerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    const std::string_view used = page;
    EXPECT_EQ(occurrences(used, loader), loader == std::string("url(") ? 1u : 0u) << loader;
  }
  EXPECT_EQ(occurrences(page, "url(#plot)"), 1u);  // a clip path of the drawing itself
}

TEST(ReportHtml, HostileNamesAreInert) {
  Profile profile = sketches_only();
  const std::string hostile =
      "k</script><script>alert(1)</script><!--<img src=x "
      "onerror=alert(2)>&lt;\xe2\x80\xa8\xff\x01\"'";
  profile.kernels[0].name = profile.kernels[0].op = profile.kernels[0].shape = hostile;
  profile.command = profile.environment.devices[0].name = profile.environment.build = hostile;
  profile.coverage.notes[0].text = profile.copies[0].kind = hostile;
  const std::string page = page_of(profile);
  EXPECT_EQ(occurrences(page, "<script"), 2u);
  EXPECT_EQ(occurrences(page, "</script>"), 2u);
  EXPECT_EQ(occurrences(page, "<img"), 0u);
  EXPECT_EQ(occurrences(page, "<!--"), 0u);
  bool found = false;
  const Json document = embedded(page);
  for (const Json& kernel : document["kernels"].items())
    found |= starts_with(kernel["name"].as_string(), "k</script><script>alert(1)</script>");
  EXPECT_TRUE(found);
}

TEST(ReportHtml, SizeIsBounded) {
  Profile profile;
  for (int i = 0; i < 700; ++i) {
    profile.kernels.push_back(
        row_of((std::string(9'000, 'x') + std::to_string(i)).c_str(), 1, 0, 1000 + i, 1));
    profile.kernels.push_back(profile.kernels.back());
    profile.kernels.back().launch.grid[0] = 2;
  }
  const std::string page = page_of(profile);
  EXPECT_LT(page.size(), 10u << 20);
  const Json document = embedded(page);
  EXPECT_EQ(document["kernels"].size(), 500u);
  EXPECT_EQ(document["page"]["rows"].as_int(), 700);
  EXPECT_EQ(document["page"]["other"]["rows"].as_int(), 200);
  double share = document["page"]["other"]["share"].as_double();
  for (const Json& kernel : document["kernels"].items()) share += kernel["share"].as_double();
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST(ReportHtml, AnEmptyProfileIsAPageToo) {
  const Json document = embedded(page_of({}));
  EXPECT_EQ(document["kernels"].size(), 0u);
  EXPECT_EQ(document["page"]["rows"].as_int(), 0);
  EXPECT_EQ(document["timeline"]["devices"].size(), 0u);
}

}  // namespace
}  // namespace purlin::analyze
