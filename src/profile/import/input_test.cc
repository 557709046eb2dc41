// SPDX-License-Identifier: Apache-2.0
#include "profile/import/input.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <zlib.h>

namespace purlin::profile {
namespace {

std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Text of a length that no buffer size divides.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 3'000'017; ++i) text += std::to_string(i * 2654435761u) + ",";
  return text;
}

struct Everything {
  std::string bytes;
  Status status;
};

Everything read_all(Input input, std::size_t step) {
  Everything result;
  std::string piece(step, '\0');
  while (true) {
    Result<std::size_t> got = input.read(piece.data(), step);
    result.status = got.status();
    if (!got.is_ok() || *got == 0) return result;
    result.bytes.append(piece, 0, *got);
    EXPECT_EQ(input.offset(), result.bytes.size());
  }
}

TEST(Input, GivesPlainAndCompressedBytesAlike) {
  const std::string text = long_text();
  const std::string packed = gzipped(text);
  ASSERT_LT(packed.size(), text.size());
  for (const std::size_t step : {std::size_t{1000}, std::size_t{1} << 20}) {
    EXPECT_EQ(read_all(Input::from_bytes(text), step).bytes, text);
    EXPECT_EQ(read_all(Input::from_bytes(packed), step).bytes, text);
  }
  EXPECT_TRUE(Input::from_bytes(packed).compressed());
  EXPECT_FALSE(Input::from_bytes(text).compressed());
}

TEST(Input, TakesShortFilesAndSeveralMembersAndTrailingBytes) {
  EXPECT_EQ(read_all(Input::from_bytes(""), 10).bytes, "");
  EXPECT_EQ(read_all(Input::from_bytes("x"), 10).bytes, "x");
  EXPECT_TRUE(read_all(Input::from_bytes("\x1f"), 10).status.is_ok());
  const Everything both = read_all(Input::from_bytes(gzipped("one ") + gzipped("two")), 10);
  EXPECT_EQ(both.bytes, "one two");
  EXPECT_TRUE(both.status.is_ok());
  const Everything trailed = read_all(Input::from_bytes(gzipped("one") + "garbage"), 10);
  EXPECT_EQ(trailed.bytes, "one");
  EXPECT_TRUE(trailed.status.is_ok());
}

TEST(Input, GivesWhatPrecedesTheDamageThenNamesThePlace) {
  const std::string text = long_text();
  std::string packed = gzipped(text);
  const Everything cut =
      read_all(Input::from_bytes(std::string_view(packed).substr(0, packed.size() / 2)), 1 << 16);
  EXPECT_GT(cut.bytes.size(), text.size() / 4);
  EXPECT_EQ(text.compare(0, cut.bytes.size(), cut.bytes), 0);
  EXPECT_EQ(cut.status.code(), Code::kCorrupt);
  EXPECT_NE(cut.status.message().find(std::to_string(packed.size() / 2)), std::string::npos);

  packed.replace(packed.size() / 2, 64, std::string(64, '\xff'));
  const Everything damaged = read_all(Input::from_bytes(packed), 1 << 16);
  EXPECT_GT(damaged.bytes.size(), text.size() / 4);
  EXPECT_EQ(damaged.status.code(), Code::kCorrupt);
}

TEST(Input, ReadsFilesAndSaysWhatItCannotOpen) {
  const std::string folder = make_temporary_directory("purlin-input").value();
  const std::string path = join_path(folder, "a.gz");
  ASSERT_TRUE(write_atomic(path, gzipped("contents")).is_ok());
  EXPECT_EQ(read_prefix(path, 4).value(), "cont");
  EXPECT_EQ(read_prefix(path, 400).value(), "contents");
  EXPECT_EQ(Input::open(path)->file_size(), gzipped("contents").size());
  EXPECT_EQ(Input::open(join_path(folder, "none")).status().code(), Code::kNotFound);
  EXPECT_EQ(Input::open(folder).status().code(), Code::kInvalid);
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

}  // namespace
}  // namespace purlin::profile
