// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/op_text.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::profile::capture {
namespace {

std::string read(std::string_view name, bool* is_op = nullptr) {
  OpText text;
  read_range_name(name, text);
  if (is_op != nullptr) *is_op = text.is_op;
  return std::string(text.view());
}

TEST(OpText, KeepsWhatRepeatsOfPyTorchsNames) {
  bool is_op = false;
  EXPECT_EQ(read("aten::mm, seq = 3, op_id = 12, sizes = [[8, 2], [2, 4]], "
                 "input_op_ids = [(7,0), (0,-1)]",
                 &is_op),
            "aten::mm, sizes = [[8, 2], [2, 4]]");
  EXPECT_TRUE(is_op);
  EXPECT_EQ(read("aten::addmm, op_id = 9, sizes = [[4], [8, 2], [2, 4], [], []]"),
            "aten::addmm, sizes = [[4], [8, 2], [2, 4], [], []]");
  EXPECT_EQ(read("AddmmBackward0, seq = 81, op_id = 4", &is_op), "AddmmBackward0");
  EXPECT_TRUE(is_op);
  EXPECT_EQ(read("aten::relu_", &is_op), "aten::relu_");
  EXPECT_TRUE(is_op);
  EXPECT_EQ(read("aten::zeros, sizes = []"), "aten::zeros, sizes = []");
}

TEST(OpText, APersonsNamesStayAsTheyAre) {
  bool is_op = true;
  EXPECT_EQ(read("forward, layer 3", &is_op), "forward, layer 3");
  EXPECT_FALSE(is_op);
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("a, b, c, "), "a, b, c, ");
}

TEST(OpText, SizesThatAreCutOffAreLeftOut) {
  EXPECT_EQ(read("aten::mm, sizes = [[8, 2], [2, "), "aten::mm");
  EXPECT_EQ(read("aten::mm, sizes = [[8, 2], [2, x]]"), "aten::mm");
  EXPECT_EQ(read("aten::mm, sizes = 8"), "aten::mm");
  std::string many = "aten::_foreach_add_, op_id = 3, sizes = [";
  for (int i = 0; i < 200; ++i) many += "[1024, 1024], ";
  EXPECT_EQ(read(many + "[]]"), "aten::_foreach_add_");
}

TEST(OpText, LongNamesAreCutBetweenCharacters) {
  std::string name(199, 'a');
  name += "\xc3\xa9";  // its first byte would be the last to fit
  EXPECT_EQ(read(name), std::string(199, 'a'));
  EXPECT_EQ(read(std::string(100'000, 'b')).size(), 200u);
}

TEST(OpText, WideNames) {
  OpText text;
  read_range_name(L"aten::mm, op_id = 2, sizes = [[8, 2], [2, 4]]", text);
  EXPECT_EQ(text.view(), "aten::mm, sizes = [[8, 2], [2, 4]]");
  read_range_name(L"pas à pas \u2192 \U0001F600", text);
  EXPECT_EQ(text.view(), "pas \xc3\xa0 pas \xe2\x86\x92 \xf0\x9f\x98\x80");
}

TEST(OpText, NameWithoutSizes) {
  EXPECT_EQ(op_name("aten::mm, sizes = [[8, 2]]"), "aten::mm");
  EXPECT_EQ(op_name("aten::mm"), "aten::mm");
}

}  // namespace
}  // namespace purlin::profile::capture
