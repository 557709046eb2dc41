// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <gtest/gtest.h>

#include <zlib.h>

namespace purlin {
namespace {

// Another's gzip, at another level.
std::string zipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gunzip, GivesBackWhatWentIn) {
  for (const std::size_t size : {0u, 1u, 65536u, 65537u, 1'000'000u}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i % 251);
    auto back = gunzip(zipped(text), size);
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(*back, text);
  }
}

TEST(Gunzip, ReadsSeveralMembers) { EXPECT_EQ(*gunzip(zipped("ab") + zipped("cd"), 100), "abcd"); }

TEST(Gunzip, RefusesABomb) {
  const std::string small = zipped(std::string(10'000'000, '\0'));
  ASSERT_LT(small.size(), 20'000u);
  auto result = gunzip(small, 1'000'000);
  ASSERT_FALSE(result.is_ok());
  EXPECT_NE(result.status().message().find("over the limit of 1000000"), std::string::npos);
}

TEST(Gunzip, NamesWhatIsWrong) {
  std::string data = zipped("hello hello hello hello");
  for (std::size_t cut = 0; cut < data.size(); ++cut)
    EXPECT_FALSE(gunzip(data.substr(0, cut), 100).is_ok()) << cut;
  EXPECT_NE(gunzip(data.substr(0, 12), 100).status().message().find("cut short"),
            std::string::npos);
  data[data.size() - 6] = static_cast<char>(~data[data.size() - 6]);  // in the checksum
  EXPECT_NE(gunzip(data, 100).status().message().find("damaged"), std::string::npos);
  EXPECT_FALSE(gunzip("plain text", 100).is_ok());
  EXPECT_TRUE(is_gzip(zipped("")));
  EXPECT_FALSE(is_gzip("{"));
}

TEST(Gunzip, TakesDataInParts) {
  const std::string data = zipped("ab") + zipped(std::string(300'000, 'c'));
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, data.size()}) {
    std::string back;
    Gunzip parts(
        [&](std::string_view part) {
          back += part;
          return Status::ok();
        },
        1 << 20);
    for (std::size_t i = 0; i < data.size(); i += step) {
      EXPECT_EQ(i > 0 && parts.finish().is_ok(), i > 0 && back == "ab" && i == zipped("ab").size());
      ASSERT_TRUE(parts.add(std::string_view(data).substr(i, step)).is_ok());
    }
    EXPECT_TRUE(parts.finish().is_ok());
    EXPECT_EQ(back, "ab" + std::string(300'000, 'c'));
  }
}

TEST(Gzip, IsReadBackAndAlwaysTheSame) {
  for (const std::size_t size : {0u, 1u, 65537u, 1'000'000u}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i % 251);
    const std::string data = gzip(text).value();
    EXPECT_EQ(data, gzip(text).value());
    EXPECT_EQ(gunzip(data, size).value(), text);
  }
}

}  // namespace
}  // namespace purlin
