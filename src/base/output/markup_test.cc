// SPDX-License-Identifier: Apache-2.0
#include "base/output/markup.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Markup, NothingOfATextIsMarkup) {
  EXPECT_EQ(markup_escaped("f<int &>(\"x\")"), "f&lt;int &amp;&gt;(&quot;x&quot;)");
  EXPECT_EQ(markup_escaped("a\nb\tc\r\x01\x1b[31md"), "a&#10;b\tc[31md");
  EXPECT_EQ(markup_escaped("2 \xC2\xB5s"), "2 \xC2\xB5s");
}

TEST(Markup, AStaticPageAllowsItsStyleAlone) {
  // The hash of the empty text, as browsers compute it.
  EXPECT_EQ(policy_source("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  const std::string page = static_page("<b>", "", "<p>x</p>");
  EXPECT_NE(page.find("<title>&lt;b&gt;</title>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'; style-src 'sha256-47DEQpj8HBSa"), std::string::npos);
  EXPECT_EQ(page.find("unsafe"), std::string::npos);
  EXPECT_EQ(svg_text(1, 2, "<a>", "end"),
            "<text x=\"1.0\" y=\"2.0\" text-anchor=\"end\">&lt;a&gt;</text>");
}

}  // namespace
}  // namespace purlin
