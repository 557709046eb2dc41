// SPDX-License-Identifier: Apache-2.0
#include "model/spec/python_list.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

std::string listed(std::string_view text) {
  const Result<std::vector<Value>> values = parse_python_list(text, 1000);
  if (!values.is_ok()) return "error: " + values.status().message();
  std::vector<std::string> out;
  for (const Value& value : *values) out.push_back(to_text(value));
  return join(out, " ");
}

// What python3 prints for the same texts.
TEST(PythonList, IsReadAsPythonReadsIt) {
  EXPECT_EQ(listed("[1, 2, 4]"), "1 2 4");
  EXPECT_EQ(listed(" [ 1 , ] "), "1");
  EXPECT_EQ(listed("[]"), "");
  EXPECT_EQ(listed("[1, 2] + list(range(32, 96+1, 32))"), "1 2 32 64 96");
  EXPECT_EQ(listed("[2**i for i in range(0, 6)]"), "1 2 4 8 16 32");
  EXPECT_EQ(listed("[i for i in range(1, 10+1) if 10 % i == 0]"), "1 2 5 10");
  EXPECT_EQ(listed("list(range(5, 0, -2))"), "5 3 1");
  EXPECT_EQ(listed("(0, 1)"), "0 1");
  EXPECT_EQ(listed("['a', \"b]\", 'c']"), "a b] c");
  EXPECT_EQ(listed("[True, False, 0.5, -3]"), "True False 0.5 -3");
  EXPECT_EQ(listed("[i * j for i in [1, 2] + [3] if i != 2]"), listed("[i * j for i in [1]]"));
  EXPECT_EQ(listed("[x // 2 for x in [4, 6]] + [min(1, 2)]"), "2 3 1");
}

TEST(PythonList, RefusesTheRest) {
  for (const char* text :
       {"", "1", "[1", "[1 2]", "[1,,2]", "range(1.5)", "range(1, 2, 0)", "range()", "open('x')",
        "[i for i in]", "[1, 2 for i in [1]]", "[1] - [2]", "list([1]", "[i for in [1]]"})
    EXPECT_EQ(listed(text).substr(0, 5), "error") << text;
  EXPECT_EQ(listed("list(range(1000000000))"), "error: a list of more than 1000 values");
  EXPECT_EQ(listed(std::string(3000, '[')).substr(0, 5), "error");
  EXPECT_EQ(listed(std::string(30, '(') + "list(").substr(0, 5), "error");
}

}  // namespace
}  // namespace purlin
