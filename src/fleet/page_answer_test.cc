// SPDX-License-Identifier: Apache-2.0
#include "fleet/page_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::fleet {
namespace {

TEST(PageAnswer, OnlyTheRootIsAPage) {
  HttpHead head;
  head.method = "GET";
  head.target = "/";
  const std::optional<HttpAnswer> page = page_answer(head);
  ASSERT_TRUE(page.has_value());
  EXPECT_NE(page->body.find("<script>"), std::string::npos);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  const auto policy = std::find_if(page->headers.begin(), page->headers.end(), [](const auto& h) {
    return h.first == "Content-Security-Policy";
  });
  ASSERT_NE(policy, page->headers.end());
  EXPECT_NE(policy->second.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(policy->second.find("unsafe"), std::string::npos);
  head.method = "PUT";
  EXPECT_FALSE(page_answer(head).has_value());
  head.method = "GET";
  head.target = "/team/index";
  EXPECT_FALSE(page_answer(head).has_value());
}

}  // namespace
}  // namespace purlin::fleet
