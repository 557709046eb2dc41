// SPDX-License-Identifier: Apache-2.0
#include "base/markup.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Markup, NothingOfATextIsMarkup) {
  EXPECT_EQ(markup_escaped("f<int &>(\"x\")"), "f&lt;int &amp;&gt;(&quot;x&quot;)");
  EXPECT_EQ(markup_escaped("a\nb\tc\r\x01\x1b[31md"), "a&#10;b\tc[31md");
  EXPECT_EQ(markup_escaped("2 \xC2\xB5s"), "2 \xC2\xB5s");
}

}  // namespace
}  // namespace purlin
