// SPDX-License-Identifier: Apache-2.0
#include "profile/import/csv.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

using Record = std::vector<std::string>;

std::vector<Record> read_all(std::string_view text, Status* failure = nullptr) {
  CsvReader reader(Input::from_bytes(text));
  std::vector<Record> records;
  while (true) {
    const Result<bool> more = reader.next();
    if (failure != nullptr) *failure = more.status();
    if (!more.is_ok() || !*more) return records;
    records.emplace_back(reader.fields().begin(), reader.fields().end());
  }
}

TEST(Csv, FieldsAndLineEnds) {
  const std::vector<Record> expected = {{"a", "b"}, {"1", ""}, {"", "2"}};
  EXPECT_EQ(read_all("a,b\n1,\n,2\n"), expected);
  EXPECT_EQ(read_all("a,b\r\n1,\r\n,2"), expected);
  EXPECT_EQ(read_all("\xEF\xBB\xBF"
                     "a,b\n\n1,\n\n,2\n\n"),
            expected);
  EXPECT_TRUE(read_all("").empty());
  EXPECT_TRUE(read_all("\n\r\n").empty());
}

TEST(Csv, SeparatorsOfTheHeader) {
  const std::vector<Record> expected = {{"a", "b, c", "d"}, {"f(int, int)", "1,5", ""}};
  EXPECT_EQ(read_all("a;b, c;d\nf(int, int);1,5;\n"), expected);
  EXPECT_EQ(read_all("\r\n\xEF\xBB\xBF;\n").size(), 1u);
  EXPECT_EQ(read_all("\n\r\na\tb, c\td\n\"f(int, int)\"\t1,5\t\n"), expected);
  EXPECT_EQ(read_all("\"a\",\"b, c\",\"d\"\n\"f(int, int)\",\"1,5\",\n"), expected);
  EXPECT_EQ(read_all("\"x;y;z\",b\n1;2,3\n"), (std::vector<Record>{{"x;y;z", "b"}, {"1;2", "3"}}));
  CsvReader reader(Input::from_bytes("it says; a; b\nID;Kernel Name\n0;f(int, int)\n"));
  ASSERT_TRUE(*reader.next_line());
  ASSERT_TRUE(*reader.next_line());  // the header is the last line read so
  EXPECT_EQ(reader.field(1), "Kernel Name");
  ASSERT_TRUE(*reader.next());
  EXPECT_EQ(reader.field(1), "f(int, int)");
}

TEST(Csv, Quotes) {
  const std::vector<Record> expected = {
      {"f(int, int)", "said \"so\"", "two\nlines"}, {"", "x"}, {"mid\"quote"}};
  EXPECT_EQ(
      read_all("\"f(int, int)\",\"said \"\"so\"\"\",\"two\nlines\"\n\"\",x\n\"mid\"\"quote\"\n"),
      expected);
}

TEST(Csv, RecordsThatSpanPieces) {
  std::string text;
  std::vector<Record> expected;
  for (int i = 0; i < 40'000; ++i) {
    text += fmt::format("{},\"name <{}, x>\"\n", i, i);
    expected.push_back({std::to_string(i), fmt::format("name <{}, x>", i)});
  }
  EXPECT_EQ(read_all(text), expected);
}

TEST(Csv, ErrorsNameThePlace) {
  Status status;
  EXPECT_EQ(read_all("a,b\n1,\"x\"y\n", &status).size(), 1u);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("line 2, column 6"), std::string::npos) << status.message();

  EXPECT_EQ(read_all("a,b\n\n1,\"x\n\ny", &status).size(), 1u);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("line 3"), std::string::npos) << status.message();
}

TEST(Csv, LinesCountInsideQuotes) {
  CsvReader reader(Input::from_bytes("a\n\"x\ny\nz\",2\nb,c"));
  std::vector<std::uint64_t> lines;
  while (reader.next().value_or(false)) {
    lines.push_back(reader.line());
    EXPECT_EQ(reader.cut(), reader.field(0) == "b");
  }
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 2, 5}));
}

TEST(Csv, ColumnsAreThoseOfTheFile) {
  CsvReader reader(Input::from_bytes("\"a\"\"b\",c,\"d\"\n"));
  ASSERT_TRUE(*reader.next());
  EXPECT_EQ(reader.column(0), 1u);
  EXPECT_EQ(reader.column(1), 8u);
  EXPECT_EQ(reader.column(2), 10u);
}

TEST(Csv, Bounds) {
  Status status;
  CsvReader::Limits limits;
  limits.max_record_bytes = 1000;
  limits.max_fields = 4;
  const std::string endless = "\"" + std::string(600'000, 'x');
  CsvReader longer(Input::from_bytes(endless), limits);
  EXPECT_EQ(longer.next().status().code(), Code::kInvalid);
  CsvReader wide(Input::from_bytes("1,2,3,4\n1,2,3,4,5\n"), limits);
  EXPECT_TRUE(*wide.next());
  EXPECT_NE(wide.next().status().message().find("line 2, column 9"), std::string::npos);
}

TEST(Csv, LinesBeforeATable) {
  CsvReader reader(Input::from_bytes("==PROF== said \"hello\nx,y\n\"ID\",\"Name\"\n1,\"a\nb\"\n"));
  ASSERT_TRUE(*reader.next_line());
  ASSERT_TRUE(*reader.next_line());
  EXPECT_EQ(reader.field(1), "y");
  ASSERT_TRUE(*reader.next_line());
  EXPECT_EQ(reader.field(0), "ID");
  ASSERT_TRUE(*reader.next());
  EXPECT_EQ(reader.line(), 4u);
  EXPECT_EQ(reader.field(1), "a\nb");
  EXPECT_FALSE(*reader.next());
}

}  // namespace
}  // namespace purlin::profile
