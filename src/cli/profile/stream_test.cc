// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/stream.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>

namespace purlin::cli {
namespace {

// The reading end of a pipe that holds `text` and has ended.
int ended_pipe(std::string_view text) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  return ends[0];
}

TEST(StreamCopy, IsTheContentsAndGoesWithTheObject) {
  const int pipe = ended_pipe(std::string("a\0b", 3));
  std::string path;
  {
    const auto copy = StreamCopy::read(pipe, "standard input");
    ASSERT_TRUE(copy.is_ok()) << copy.status().message();
    path = (*copy)->path();
    EXPECT_EQ(read_file(path).value(), std::string("a\0b", 3));
  }
  EXPECT_FALSE(file_exists(path));
  EXPECT_FALSE(is_directory(parent_path(path)));
  ::close(pipe);
}

TEST(StreamCopy, IsBounded) {
  const int fits = ended_pipe("12345678");
  EXPECT_TRUE(StreamCopy::read(fits, "standard input", 8).is_ok());
  ::close(fits);
  const int larger = ended_pipe("123456789");
  EXPECT_EQ(StreamCopy::read(larger, "standard input", 8).status().message(),
            "standard input has more than 8 B: write it to a file and name that");
  ::close(larger);
}

}  // namespace
}  // namespace purlin::cli
