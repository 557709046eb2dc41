// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_pieces.h"

#include "base/json/json.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

struct PiecesCut {
  std::vector<std::string> pieces;
  std::string rest;
  bool has_end = true;
};

PiecesCut cut_pieces(std::string_view text, std::size_t step) {
  PiecesCut result;
  JsonPieces pieces(
      {"runs", "cache"},
      [&](std::string_view piece) {
        result.pieces.emplace_back(piece);
        return Status::ok();
      },
      1 << 20);
  for (std::size_t i = 0; i < text.size(); i += step)
    EXPECT_TRUE(pieces.add(text.substr(i, step)).is_ok());
  result.rest = pieces.rest().value();
  result.has_end = pieces.has_end();
  return result;
}

constexpr std::string_view kPiecesDocument =
    R"({"a": [1, {"runs": [7]}], "runs" : [ {"x": "]},\"{"}, 5 ,[2]], "cache": {"k,{": {"y": 1},
        "l\"": 2}, "b\\": "runs", "empty": {}})";

TEST(JsonPieces, CutsMembersAndItemsWhateverThePartsAre) {
  for (std::size_t step = 1; step < kPiecesDocument.size(); step += 3) {
    const PiecesCut found = cut_pieces(kPiecesDocument, step);
    ASSERT_EQ(found.pieces.size(), 5u) << step;
    EXPECT_EQ(Json::parse(found.pieces[0])->find("x")->as_string(), "]},\"{");
    EXPECT_EQ(Json::parse(found.pieces[1])->as_int(), 5);
    EXPECT_EQ((*Json::parse(found.pieces[3]))["k,{"]["y"].as_int(), 1);
    EXPECT_EQ((*Json::parse(found.pieces[4]))["l\""].as_int(), 2);
    const Json rest = Json::parse(found.rest).value();
    EXPECT_EQ(rest.size(), 5u);
    EXPECT_EQ(rest["a"].items()[1]["runs"].size(), 1u);
    EXPECT_TRUE(rest["runs"].is_array() && rest["runs"].size() == 0);
    EXPECT_TRUE(rest["cache"].is_object() && rest["cache"].size() == 0);
    EXPECT_TRUE(found.has_end);
  }
}

TEST(JsonPieces, WithoutAnEndTheCompletePiecesCount) {
  for (const char* tail : {"", ",", ", {\"x\": [1", ", \"te", ", {\"x\": \"}"}) {
    const PiecesCut found =
        cut_pieces(R"({"a": 1, "runs": [{"x": 1}, {"x": 2})" + std::string(tail), 4);
    EXPECT_EQ(found.pieces.size(), 2u) << tail;
    EXPECT_FALSE(found.has_end) << tail;
    EXPECT_EQ(Json::parse(found.rest).value()["a"].as_int(), 1) << tail;
  }
  EXPECT_TRUE(cut_pieces(R"({"a": 1, "ru)", 4).has_end);  // and no JSON
}

TEST(JsonPieces, APieceOverTheLimitIsRefusedAndTheTakersErrorComesBack) {
  JsonPieces small({"runs"}, {}, 8);
  EXPECT_FALSE(small.add(R"({"runs": ["0123456789"]})").is_ok());
  JsonPieces failing(
      {"runs"}, [](std::string_view) { return error(Code::kInvalid, "no"); }, 100);
  EXPECT_EQ(failing.add(R"({"runs": [1, 2]})").message(), "no");
}

}  // namespace
}  // namespace purlin
