// SPDX-License-Identifier: Apache-2.0
// Replays the corpora of the fuzz targets as tests: what a fuzzer once found stays mended.
#include "base/files.h"

#include <gtest/gtest.h>

#define CORPUS(NAME) \
  extern "C" int fuzz_##NAME(const std::uint8_t* data, std::size_t size);  // NOLINT
#include "corpora.inc"
#undef CORPUS

namespace {

void replay(const char* name, int (*target)(const std::uint8_t*, std::size_t)) {
  const std::string folder = purlin::join_path(PURLIN_CORPUS, name);
  const auto files = purlin::list_directory(folder);
  ASSERT_TRUE(files.is_ok()) << files.status().message();
  for (const std::string& file : *files) {
    const auto bytes = purlin::read_file(purlin::join_path(folder, file));
    ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
    EXPECT_EQ(target(reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()), 0)
        << file;
  }
}

#define CORPUS(NAME) \
  TEST(Corpus, NAME) { replay(#NAME, fuzz_##NAME); }
#include "corpora.inc"
#undef CORPUS

}  // namespace
