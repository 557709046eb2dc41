// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/pair_journal.h"

#include "base/files.h"
#include "model/document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace purlin::guard {
namespace {

TEST(PairJournalFile, WhatIsWrittenCanBeReadAgain) {
  const std::string folder = make_temporary_directory("purlin-journal").value();
  const std::string path = join_path(folder, "pairs.jsonl");
  const Json identity = new_document("purlin.guard-pairs/1", Environment());
  {
    Result<PairJournal> journal = PairJournal::open(path, identity, 1);
    ASSERT_TRUE(journal.is_ok()) << journal.status().message();
    PairJournal::Event event;
    event.pair.baseline = {0, std::nan(""), -1};
    event.pair.current = {1e300, std::numeric_limits<double>::infinity(), 0};
    ASSERT_TRUE(journal->append({event}).is_ok());
  }
  const Result<PairJournal> again = PairJournal::open(path, identity, 1);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->events().size(), 1u);
  (void)remove_tree(folder);
}

}  // namespace
}  // namespace purlin::guard
