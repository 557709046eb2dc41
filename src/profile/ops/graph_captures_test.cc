// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/graph_captures.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::profile {
namespace {

// "b" begins, "e" ends, others are launches; upper case is another process.
std::string inside(const std::string& calls) {
  const std::vector<bool> flags = inside_captures(calls.size(), [&](std::size_t i) {
    const char c = calls[i];
    const bool other = c >= 'A' && c <= 'Z';
    const char kind = other ? static_cast<char>(c - 'A' + 'a') : c;
    return CaptureCall{other ? 1u : 0u, kind == 'b'   ? CaptureEdge::kBegin
                                        : kind == 'e' ? CaptureEdge::kEnd
                                                      : CaptureEdge::kNone};
  });
  std::string text;
  for (const bool flag : flags) text += flag ? '1' : '0';
  return text;
}

TEST(GraphCaptures, NamesOfAllInterfaces) {
  for (const char* begin : {"cudaStreamBeginCapture", "cudaStreamBeginCapture_ptsz",
                            "cuStreamBeginCapture_v2", "hipStreamBeginCapture"})
    EXPECT_EQ(capture_edge(begin), CaptureEdge::kBegin) << begin;
  EXPECT_EQ(capture_edge("hipStreamEndCapture"), CaptureEdge::kEnd);
  EXPECT_EQ(capture_edge("hipStreamGetCaptureInfo"), CaptureEdge::kNone);
  EXPECT_EQ(capture_edge("cudaStreamIsCapturing"), CaptureEdge::kNone);
}

TEST(GraphCaptures, OnlyCallsOfTheProcessBetweenBeginAndEnd) {
  EXPECT_EQ(inside("xxx"), "");
  EXPECT_EQ(inside("xbxexX"), "001000");
  EXPECT_EQ(inside("bBxEXe"), "001000");
  EXPECT_EQ(inside("bbxexex"), "0010100");
}

TEST(GraphCaptures, AnEdgeThatWasNotRecorded) {
  EXPECT_EQ(inside("xxexx"), "11000");
  EXPECT_EQ(inside("xbxx"), "0011");
  EXPECT_EQ(inside("xexbx"), "10001");
}

}  // namespace
}  // namespace purlin::profile
