// SPDX-License-Identifier: Apache-2.0
#include "cache/layers/layers.h"

#include "base/text.h"
#include "base/time.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace purlin::cache {
namespace {

Entry timed_layer(double time_ms, std::int64_t bm) {
  Entry entry = sample_entry(1024, bm);
  entry.time_ms = time_ms;
  return entry;
}

class LayersTest : public testing::Test {
 protected:
  Layers open() { return *Layers::open(mine, {fleet}); }
  TemporaryDirectory folder;
  const std::string mine = folder.file("mine"), fleet = folder.file("fleet");
  const Entry wanted = sample_entry();
};

TEST_F(LayersTest, ReadThroughAndTheUpperLayerFirst) {
  ASSERT_TRUE(Store::open(fleet)->put(timed_layer(0.1, 32)).is_ok());
  const Lookup through = open().get(wanted.key, wanted.problem);
  EXPECT_EQ(through.outcome, Outcome::kExact);
  EXPECT_EQ(through.layer, fleet);
  EXPECT_NE(join(through.explain, "\n").find("layer: '" + fleet + "'"), std::string::npos);
  ASSERT_TRUE(open().put(timed_layer(0.2, 64)).is_ok());  // into the first
  EXPECT_EQ(Store::open(fleet)->list().size(), 1u);
  EXPECT_EQ(open().get(wanted.key, wanted.problem).layer, mine);
}

TEST_F(LayersTest, ABetterMatchBelowWins) {
  ASSERT_TRUE(Store::open(fleet)->put(sample_entry(1000)).is_ok());
  ASSERT_TRUE(Store::open(mine)->put(sample_entry(1024)).is_ok());
  const Entry other = sample_entry(1000);
  EXPECT_EQ(open().get(other.key, other.problem).layer, fleet);  // exact beats bucket
}

TEST_F(LayersTest, ADemotionInOneLayerCountsInAll) {
  Store upper = *Store::open(mine), lower = *Store::open(fleet);
  const Result<Put> put = lower.put(timed_layer(0.1, 32));
  ASSERT_TRUE(upper.absorb(*lower.records()).is_ok());
  ASSERT_TRUE(upper.set_status(new_status(put->record, EntryState::kDemoted, "slow")).is_ok());
  const Lookup lookup = open().get(wanted.key, wanted.problem);
  EXPECT_EQ(lookup.outcome, Outcome::kMiss);
  EXPECT_NE(join(lookup.explain, "\n").find("withdrawn in '" + mine), std::string::npos);
}

TEST_F(LayersTest, ADemotionBelowCountsAboveAndIsTakenBackByALaterStatus) {
  Store upper = *Store::open(mine), lower = *Store::open(fleet);
  const Result<Put> put = upper.put(timed_layer(0.1, 32));
  ASSERT_TRUE(upper.put(timed_layer(0.2, 64)).is_ok());
  ASSERT_TRUE(lower.absorb(*upper.records()).is_ok());
  ASSERT_TRUE(lower.set_status(new_status(put->record, EntryState::kQuarantined, "wrong")).is_ok());
  const Lookup next = open().get(wanted.key, wanted.problem);  // the next best stands in
  ASSERT_TRUE(next.entry);
  EXPECT_NE(next.record, put->record);
  EntryStatus back = new_status(put->record, EntryState::kActive, "a false alarm");
  back.at = format_rfc3339_ns(system_clock().wall_ns() + 1'000'000'000);
  ASSERT_TRUE(upper.set_status(back).is_ok());
  EXPECT_EQ(open().get(wanted.key, wanted.problem).record, put->record);
}

TEST_F(LayersTest, WhatIsLearntAboutAnEntryBelowIsWrittenAbove) {
  const Result<Put> put = Store::open(fleet)->put(timed_layer(0.1, 32));
  Layers layers = open();
  ASSERT_TRUE(layers.set_status(new_status(put->record, EntryState::kDemoted, "slow")).is_ok());
  EXPECT_EQ(Store::open(mine)->record_set().statuses(), 1u);
  EXPECT_EQ(Store::open(fleet)->record_set().statuses(), 0u);
  EXPECT_EQ(open().get(wanted.key, wanted.problem).outcome, Outcome::kMiss);
  EntryStatus back = new_status(put->record, EntryState::kActive, "a false alarm");
  back.at = "2020-01-01T00:00:00Z";  // of a host whose clock is far behind
  ASSERT_TRUE(layers.set_status(back).is_ok());
  EXPECT_EQ(open().get(wanted.key, wanted.problem).outcome, Outcome::kExact);
  CacheKey other = wanted.key;
  other.driver = "590.01";
  EXPECT_EQ(open().get(other, wanted.problem).outcome, Outcome::kMiss);
  EntryStatus validated = new_status(put->record, EntryState::kValidated, "");
  validated.driver = other.driver;
  validated.toolkit = other.toolkit;
  ASSERT_TRUE(layers.set_status(validated).is_ok());
  EXPECT_EQ(open().get(other, wanted.problem).outcome, Outcome::kExact);
  EXPECT_EQ(layers.set_status(new_status(std::string(32, 'a'), EntryState::kDemoted, "")).code(),
            Code::kNotFound);
}

TEST_F(LayersTest, WritesGoToTheFirstThatTakesThem) {
  ASSERT_TRUE(write_atomic(folder.file("plain"), "x").is_ok());
  Layers layers = *Layers::open(folder.file("plain/below"), {fleet, fleet});
  EXPECT_EQ(layers.stores().size(), 2u);
  ASSERT_TRUE(layers.put(wanted).is_ok());
  EXPECT_EQ(Store::open(fleet)->list().size(), 1u);
  Layers none = *Layers::open(folder.file("plain/below"), {});
  EXPECT_EQ(none.put(wanted).status().code(), Code::kIo);
}

TEST_F(LayersTest, ALayerThatCannotBeReadIsPassedOver) {
  ASSERT_TRUE(write_atomic(folder.file("plain"), "x").is_ok());
  ASSERT_TRUE(Store::open(fleet)->put(wanted).is_ok());
  const Layers layers = *Layers::open(mine, {folder.file("plain"), fleet});
  ASSERT_EQ(layers.unread().size(), 1u);
  const Lookup lookup = layers.get(wanted.key, wanted.problem);
  EXPECT_EQ(lookup.outcome, Outcome::kExact);
  EXPECT_NE(join(lookup.explain, "\n").find("was not asked"), std::string::npos);
}

TEST_F(LayersTest, RepairTakesBackWhatWasLost) {
  Store upper = *Store::open(mine);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(upper.put(timed_layer(1 + i, i)).is_ok());
  ASSERT_TRUE(upper.write_index().is_ok());
  ASSERT_TRUE(Store::open(fleet)->absorb(*upper.records()).is_ok());
  ASSERT_TRUE(Store::open(fleet)->put(sample_entry(64)).is_ok());  // of another key: stays there
  std::string log = *read_file(mine + "/entries.log");
  log[log.size() / 2] ^= 1;
  ASSERT_TRUE(write_atomic(mine + "/entries.log", log).is_ok());
  Layers layers = open();
  const Result<std::size_t> back = layers.repair();
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(*back, 1u);
  EXPECT_EQ(Store::open(mine)->records()->size(), 50u);
}

}  // namespace
}  // namespace purlin::cache
