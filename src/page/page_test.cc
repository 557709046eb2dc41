// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include "base/gzip.h"
#include "page/assets.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::page {
namespace {

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

Page sample() {
  Page page;
  page.title = "a </script> & b";
  page.view = "overview";
  page.documents.emplace_back("report", Json::object({{"schema", "purlin.report/1"}}));
  Document arrays("timeline", Json::object({{"schema", "purlin.page-timeline/1"}}));
  const std::uint8_t odd[] = {1, 2, 3};
  const double even[] = {0.5, 2e18};
  arrays.add("odd", odd);
  arrays.add("even", even);
  page.documents.push_back(std::move(arrays));
  return page;
}

TEST(Page, ArraysAreAligned) {
  const Page page = sample();
  const Json places = page.documents[1].head()["arrays"];
  EXPECT_EQ(places["odd"]["at"].as_int(), 0);
  EXPECT_EQ(places["even"]["at"].as_int(), 8);
  EXPECT_EQ(places["even"]["count"].as_int(), 2);
  double second = 0;
  std::memcpy(&second, page.documents[1].bytes().data() + 16, 8);
  EXPECT_EQ(second, 2e18);
}

// A file that was cut off shows a line of text: the script that removes it is the last element.
TEST(Page, TextStaysWhereTheScriptIsCutOff) {
  const Result<std::string> text = render_file(sample());
  ASSERT_TRUE(text.is_ok());
  const std::size_t line = text->find("id=\"purlin-begin\"");
  ASSERT_NE(line, std::string::npos);
  EXPECT_LT(line, text->find("id=\"purlin-page\""));
  EXPECT_LT(line, text->rfind("<script>"));
}

// Nothing is loaded, and the policy names exactly the one style and the one script.
TEST(Page, AFileLoadsNothing) {
  const Result<std::string> text = render_file(sample());
  ASSERT_TRUE(text.is_ok());
  EXPECT_EQ(occurrences(*text, "<script type=\"application/json\" id=\"purlin-"), 3u);
  EXPECT_EQ(
      occurrences(*text, "<script type=\"application/octet-stream\" id=\"purlin-timeline.0\""), 1u);
  EXPECT_NE(text->find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_NE(text->find("connect-src 'none'"), std::string::npos);
  EXPECT_EQ(text->find("unsafe-"), std::string::npos);
  EXPECT_EQ(occurrences(*text, "</script>"), 6u);  // three heads, the arrays, two scripts
  EXPECT_EQ(occurrences(*text, "<script type=\"text/plain\" id=\"purlin-more\">"), 1u);
  for (const char* loader :
       {"@import", "insertAdjacentHTML", "document.write(", "eval(", "new Function"})
    for (const std::string_view script : {kScript, kMoreScript, kFleetScript})
      EXPECT_EQ(script.find(loader), std::string_view::npos) << loader;
  EXPECT_EQ(kStyle.find("url("), std::string_view::npos);
}

TEST(Page, OverHttpTheDocumentsAreTheSame) {
  const Page page = sample();
  const Result<std::string> shell = render_shell(page);
  ASSERT_TRUE(shell.is_ok());
  EXPECT_EQ(shell->find("octet-stream"), std::string::npos);
  EXPECT_NE(shell->find("documents/timeline"), std::string::npos);
  EXPECT_NE(served_policy().find("connect-src 'self'"), std::string::npos);
  const Result<std::optional<Served>> head = serve(page, "documents/timeline.json");
  ASSERT_TRUE(head.is_ok() && head->has_value());
  EXPECT_EQ(gunzip((*head)->body, 1 << 20).value(), page.documents[1].head().dump());
  const Result<std::optional<Served>> bytes = serve(page, "documents/timeline.bin");
  ASSERT_TRUE(bytes.is_ok() && bytes->has_value());
  EXPECT_EQ(gunzip((*bytes)->body, 1 << 20).value(), page.documents[1].bytes());
  const Result<std::optional<Served>> more = serve(page, "more.js");
  ASSERT_TRUE(more.is_ok() && more->has_value());
  EXPECT_EQ(gunzip((*more)->body, 1 << 20).value(), kMoreScript);
  EXPECT_EQ(shell->find("purlin-more"), std::string::npos);
  for (const char* absent : {"documents/other.json", "documents/../etc/passwd", ""})
    EXPECT_FALSE(serve(page, absent).value().has_value()) << absent;
}

// The first view's budget: style and script, as a server sends them. All views have one of 100 kB.
TEST(Page, StyleAndScriptAreSmall) {
  const std::string first = std::string(kStyle) + std::string(kScript);
  const Result<std::string> packed = gzip(first), all = gzip(first + std::string(kMoreScript));
  ASSERT_TRUE(packed.is_ok() && all.is_ok());
  EXPECT_LT(packed->size(), 60'000u);
  EXPECT_LT(all->size(), 100'000u);
}

}  // namespace
}  // namespace purlin::page
