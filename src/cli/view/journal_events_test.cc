// SPDX-License-Identifier: Apache-2.0
#include "cli/view/journal_events.h"

#include "base/files.h"
#include "base/json/json.h"

#include <gtest/gtest.h>

#include <fstream>

namespace purlin::cli {
namespace {

Json event_of(const std::string& text) {
  EXPECT_EQ(text.substr(0, 6), "data: ");
  EXPECT_EQ(text.substr(text.size() - 2), "\n\n");
  return Json::parse(text.substr(6)).value_or(Json());
}

class JournalEventsTest : public testing::Test {
 protected:
  void add(const std::string& text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }
  static std::string evaluation(int n) {
    return "{\"evaluation\": {\"time_ms\": " + std::to_string(n) + "}, \"elapsed_s\": 1}\n";
  }
  void TearDown() override { static_cast<void>(remove_tree(folder_)); }
  const std::string folder_ = *make_temporary_directory("journal");
  const std::string path_ = join_path(folder_, "journal.jsonl");
};

TEST_F(JournalEventsTest, OnlyWhatThePageLacks) {
  add("{\"schema\": \"purlin.session/1\"}\n" + evaluation(1) + evaluation(2));
  JournalEvents events({{path_, "tune", 2}});
  EXPECT_EQ(events.next(), "");
  EXPECT_EQ(events.next(), "");
  add(evaluation(3) + "{\"evaluation\": {\"time");  // torn
  Json event = event_of(events.next());
  EXPECT_EQ(event["document"].as_string(), "tune");
  EXPECT_EQ(event["first"].as_int(), 2);
  ASSERT_EQ(event["evaluations"].size(), 1u);
  EXPECT_EQ(event["evaluations"].items()[0]["time_ms"].as_int(), 3);
  EXPECT_TRUE(event["end"].is_null());
  EXPECT_EQ(events.next(), "");
  add("_ms\": 4}}\n{\"finished\": \"budget\", \"budget\": \"4\"}\n");
  event = event_of(events.next());
  EXPECT_EQ(event["first"].as_int(), 3);
  EXPECT_EQ(event["evaluations"].size(), 1u);
  EXPECT_EQ(event["end"].as_string(), "budget");
}

TEST_F(JournalEventsTest, AJournalThatBeganAgainReplacesAll) {
  add(evaluation(1) + evaluation(2) + evaluation(3));
  JournalEvents events({{path_, "tune-1", 0}});
  EXPECT_EQ(event_of(events.next())["evaluations"].size(), 3u);
  std::ofstream(path_, std::ios::trunc) << evaluation(9);
  const Json event = event_of(events.next());
  EXPECT_EQ(event["first"].as_int(), 0);
  EXPECT_EQ(event["evaluations"].size(), 1u);
}

TEST_F(JournalEventsTest, WithoutAFileNothingComes) {
  JournalEvents events({{path_, "tune", 0}});
  EXPECT_EQ(events.next(), "");
}

}  // namespace
}  // namespace purlin::cli
