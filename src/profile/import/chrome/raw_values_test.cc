// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/raw_values.h"

#include "base/random.h"
#include "profile/import/chrome/json_scan.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

TEST(RawValues, MicrosecondsAreExactToTheNanosecond) {
  EXPECT_EQ(us_to_ns("4320328734131.502"), 4320328734131502);
  EXPECT_EQ(us_to_ns("1606910596288053"), 1606910596288053000);
  EXPECT_EQ(us_to_ns("0.07"), 70);
  EXPECT_EQ(us_to_ns("5."), 5000);
  EXPECT_EQ(us_to_ns("1.2345678"), 1235);
  EXPECT_EQ(us_to_ns("12.487999999999"), 12488);
  EXPECT_EQ(us_to_ns("12.4874"), 12487);
  EXPECT_EQ(us_to_ns("0.9999"), 1000);
  EXPECT_EQ(us_to_ns("-2.5"), -2500);
  EXPECT_EQ(us_to_ns("1.5e3"), 1500000);
  EXPECT_EQ(us_to_ns("99999999999999999999"), std::nullopt);
  EXPECT_EQ(us_to_ns("1e300"), std::nullopt);
  EXPECT_EQ(us_to_ns("nan"), std::nullopt);
  EXPECT_EQ(us_to_ns(""), std::nullopt);
  EXPECT_EQ(us_to_ns("-"), std::nullopt);
  EXPECT_EQ(us_to_ns("12abc"), std::nullopt);
}

TEST(RawValues, IdsAreNumbersInWhateverFormTheyCome) {
  EXPECT_EQ(to_id("7"), 7u);
  EXPECT_EQ(to_id("stream 7"), 7u);
  EXPECT_EQ(to_id("0x10"), 16u);
  EXPECT_EQ(to_id("-1"), 1u);
  EXPECT_EQ(to_id("Spans"), std::nullopt);
  EXPECT_EQ(to_id(""), std::nullopt);
  EXPECT_EQ(to_int("9223372036854775808"), 9200000000000000000);  // clamped
  EXPECT_EQ(to_int("12x", 5), 5);
}

TEST(RawValues, InputsOfOpsAreRead) {
  const std::vector<OpInput> inputs = to_inputs(
      R"([[64, 1024], [], [[2, 3], [4]], [5]])",
      R"(["c10::BFloat16", "Scalar", "TensorList", "a, [b"])", R"(["", "1.5", "", "[1, 1]"])");
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs[0].dimensions, (std::vector<std::int64_t>{64, 1024}));
  EXPECT_EQ(inputs[0].dtype, "c10::BFloat16");
  EXPECT_TRUE(inputs[1].dimensions.empty());
  EXPECT_EQ(inputs[1].concrete, "1.5");
  EXPECT_EQ(inputs[2].dimensions, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(inputs[2].members.size(), 2u);
  EXPECT_EQ(inputs[3].dtype, "a, [b");
  EXPECT_EQ(inputs[3].concrete, "[1, 1]");
  EXPECT_EQ(dims_text(inputs), "64x1024,2x3,5");
  EXPECT_TRUE(to_inputs("", "", "").empty());
  EXPECT_EQ(to_inputs("[[1,", "[\"", "[").size(), 1u);
}

TEST(Names, AreHeldOnce) {
  Names names;
  const std::uint32_t a = names.of_raw("aten::mm");
  EXPECT_EQ(names.of_raw("aten::mm"), a);
  EXPECT_EQ(names.of_raw("aten\\u003a:mm"), a);
  EXPECT_EQ(names.of_text("aten::mm"), a);
  EXPECT_EQ(names.of_raw(""), 0u);
  EXPECT_EQ(names[a], "aten::mm");
}

// The 16-byte steps against one byte at a time.
TEST(JsonScan, FindsWhatASimpleScanFinds) {
  Random random(7);
  constexpr std::string_view kAlphabet = "\"\\[]{}a,";
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    const std::size_t size = random.below(80);
    for (std::size_t i = 0; i < size; ++i) text += kAlphabet[random.below(kAlphabet.size())];
    std::string padded = text + std::string(kScanPadding, '\0');
    const char* const begin = padded.data();
    const char* const end = begin + text.size();
    const char* expected_quote = nullptr;
    for (const char* p = begin; p < end && expected_quote == nullptr; ++p) {
      if (*p == '\\')
        ++p;
      else if (*p == '"')
        expected_quote = p;
    }
    EXPECT_EQ(find_quote(begin, end), expected_quote) << text;
    const char* expected_end = nullptr;
    std::int64_t depth = 1;
    bool in_text = false;
    for (const char* p = begin; p < end && expected_end == nullptr; ++p) {
      if (in_text) {
        if (*p == '\\')
          ++p;
        else if (*p == '"')
          in_text = false;
      } else if (*p == '"') {
        in_text = true;
      } else if (*p == '[' || *p == '{') {
        ++depth;
      } else if ((*p == ']' || *p == '}') && --depth == 0) {
        expected_end = p + 1;
      }
    }
    EXPECT_EQ(skip_nested(begin, end), expected_end) << text;
  }
}

}  // namespace
}  // namespace purlin::profile
