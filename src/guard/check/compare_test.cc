// SPDX-License-Identifier: Apache-2.0
#include "guard/check/compare.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <map>

namespace purlin::guard {
namespace {

// An arm with simulated processes: each item has a time, noise and, perhaps, a failure.
class SimulatedArm : public Arm {
 public:
  SimulatedArm(std::string label, Random& random) : label_(std::move(label)), random_(random) {}
  void add(const Item& item, double time_ns) {
    items_.push_back(item);
    times[item] = time_ns;
  }

  std::string label() const override { return label_; }
  Status prepare() override { return prepared; }
  const std::vector<Item>& items() const override { return items_; }
  const std::vector<SkippedItem>& skipped() const override { return skips; }
  std::string fingerprint() const override { return code; }
  Json record() const override { return Json::object({{"label", label_}}); }
  std::size_t most_per_launch() const override { return most; }
  Result<Readings> rehearse(const std::vector<Item>& wanted) override {
    ++rehearsals;
    return say(wanted);
  }
  Result<Readings> launch(const std::vector<Item>& wanted) override {
    ++launches;
    if (log != nullptr) log->push_back(label_ + (wanted.size() > 1 ? " many" : " one"));
    if (dies_at == launches) return error(Code::kUnavailable, "the device is gone");
    return say(wanted);
  }

  std::map<Item, double> times;
  std::map<Item, std::string> failures, unfit;
  std::vector<SkippedItem> skips;
  std::string code = "c0de";
  Status prepared;
  std::size_t most = 16;
  int launches = 0, rehearsals = 0, dies_at = 0;
  std::vector<std::string>* log = nullptr;

 private:
  Readings say(const std::vector<Item>& wanted) {
    Readings readings;
    for (const Item& item : wanted) {
      if (times.count(item) == 0) continue;
      ItemReading reading;
      reading.item = item;
      if (failures.count(item) != 0) reading.status = Status(Code::kFailed, failures[item]);
      reading.process.reading.time_ns = times[item] * random_.uniform(0.995, 1.005);
      if (unfit.count(item) != 0) reading.process.unfit = unfit[item];
      readings.push_back(std::move(reading));
    }
    return readings;
  }
  std::string label_;
  Random& random_;
  std::vector<Item> items_;
};

class CompareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("guard-compare").value();
    design_.one_stage_if_small = false;  // as in a suite of many items
    for (SimulatedArm* arm : {&a_, &b_})
      for (const Item& item : {gemm_, softmax_}) arm->add(item, 1e6);
  }
  void TearDown() override { (void)remove_tree(folder_); }

  Result<Report> compare_now() {
    return compare({"test",
                    a_,
                    b_,
                    design_,
                    {},
                    filter_,
                    "code",
                    Environment{},
                    journal_,
                    options_,
                    coins_,
                    clock_});
  }
  Report report() {
    const Result<Report> report = compare_now();
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return report.value();
  }
  std::string journal_path() const { return join_path(folder_, "pairs.jsonl"); }

  const Item gemm_{"gemm", "M=64", ""}, softmax_{"softmax", "", "default"};
  Random noise_{3}, coins_{4};
  SimulatedArm a_{"A", noise_}, b_{"B", noise_};
  Design design_;
  FakeClock clock_;
  PairsOptions options_;
  std::string folder_, journal_, filter_;
};

TEST_F(CompareTest, NamesTheSlowerItemAndTheCauseAndSparesTheOther) {
  b_.times[gemm_] = 1.1e6;
  const Report result = report();
  ASSERT_EQ(result.items.size(), 2u);
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kRegression);
  EXPECT_EQ(result.items[0].result.cause, "code");
  EXPECT_NEAR(result.items[0].result.effect.ratio, 1.1, 0.01);
  EXPECT_EQ(result.items[1].result.verdict, Verdict::kPass);
  EXPECT_EQ(result.items[1].result.pairs, 8);
  EXPECT_EQ(result.items[1].variant, "default");
  // Both items share processes while they are screened; only the flagged one runs after that.
  EXPECT_EQ(result.measurement.launches, 2 * (8 + 10));
  EXPECT_EQ(a_.rehearsals, 1);
}

TEST_F(CompareTest, CoinsOrderTheArmsInsideEachPair) {
  std::vector<std::string> log;
  a_.log = b_.log = &log;
  b_.times[gemm_] = 1.1e6;
  (void)report();
  ASSERT_EQ(log.size(), 36u);
  int b_first = 0;
  for (std::size_t i = 0; i < log.size(); i += 2) {
    EXPECT_NE(log[i][0], log[i + 1][0]);
    b_first += log[i][0] == 'B';
  }
  EXPECT_GT(b_first, 3);
  EXPECT_LT(b_first, 15);
}

TEST_F(CompareTest, AnArmMayTakeFewerItemsPerProcess) {
  a_.most = 1;
  EXPECT_EQ(report().measurement.launches, 2 * 2 * 8);
}

TEST_F(CompareTest, ItemsOfOneArmOnlyAreInconclusive) {
  const Item added{"added", "", ""};
  b_.add(added, 1e6);
  const Report result = report();
  ASSERT_EQ(result.items.size(), 3u);
  EXPECT_EQ(result.items[2].result.verdict, Verdict::kInconclusive);
  EXPECT_NE(result.items[2].result.reason.find("A does not have it"), std::string::npos);

  SimulatedArm other("C", noise_);
  other.add(added, 1);
  const CompareSetup setup{"test", a_, other, Design{}, {}, "", "", {}, "", {}, coins_, clock_};
  EXPECT_EQ(compare(setup).status().code(), Code::kInvalid);
}

TEST_F(CompareTest, WhatSkipsItselfInBothArmsIsNamedAndNotJudged) {
  const Item narrow{"narrow", "", ""}, same{"same", "", ""}, once{"once", "", ""},
      added{"added", "", ""};
  for (SimulatedArm* arm : {&a_, &b_})
    arm->skips = {{narrow, "it skips itself: narrowing"}, {same, "it skips itself: narrowing"}};
  const Report quiet = report();
  EXPECT_EQ(quiet.items.size(), 2u);
  EXPECT_EQ(quiet.verdict(), Verdict::kPass);
  ASSERT_FALSE(quiet.notes.empty());
  EXPECT_EQ(quiet.notes[0],
            "not compared in either arm, 2 items (it skips itself: narrowing): narrow, same");
  // In one arm only, it is judged: a measurement is lost, or there is none to compare with.
  a_.add(once, 1e6);
  b_.skips.push_back({once, "it skips itself: no memory"});
  b_.add(added, 1e6);
  a_.skips.push_back({added, "it skips itself: too old"});
  const Report loud = report();
  ASSERT_EQ(loud.items.size(), 4u);
  EXPECT_EQ(loud.items[2].result.verdict, Verdict::kInvalid);
  EXPECT_EQ(loud.items[2].result.reason,
            "it was measured before, and now it skips itself: no memory");
  EXPECT_EQ(loud.items[3].result.verdict, Verdict::kInconclusive);
  EXPECT_NE(loud.items[3].result.reason.find("A has no time of it (it skips itself: too old)"),
            std::string::npos);
}

TEST_F(CompareTest, AFilterLeavesOutItems) {
  filter_ = "soft*";
  ASSERT_EQ(report().items.size(), 1u);
  filter_ = "conv*";
  EXPECT_NE(compare_now().status().message().find("that matches 'conv*'"), std::string::npos);
}

TEST_F(CompareTest, FailuresBecomeVerdictsOfTheirItem) {
  b_.failures[gemm_] = "wrong result";
  a_.failures[softmax_] = "does not compile any more";
  const Report result = report();
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kInvalid);
  EXPECT_NE(result.items[0].result.reason.find("wrong result"), std::string::npos);
  EXPECT_EQ(result.items[1].result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.measurement.launches, 0);
}

TEST_F(CompareTest, WhatFailsOnBothSidesDidNotBreakNow) {
  a_.failures[gemm_] = b_.failures[gemm_] = "has no time";
  a_.failures[softmax_] = "is old";
  b_.failures[softmax_] = "is new";
  const Report result = report();
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kInvalid);
  EXPECT_EQ(result.items[0].result.reason, "it fails on both sides: has no time");
  EXPECT_EQ(result.items[1].result.reason, "it fails on both sides: is old; now: is new");
}

TEST_F(CompareTest, UnfitPairsAreTakenAgainAndCountedUntilItIsHopeless) {
  b_.unfit[gemm_] = "thermal slowdown";
  const Report result = report();
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kInvalid);
  EXPECT_NE(result.items[0].result.reason.find("thermal slowdown"), std::string::npos);
  EXPECT_EQ(result.items[0].result.effect.pairs, 0);
  EXPECT_EQ(result.items[1].result.verdict, Verdict::kPass);
  EXPECT_EQ(result.measurement.rejected_pairs, options_.most_rejected);
  ASSERT_EQ(result.measurement.reasons.size(), 1u);
}

TEST_F(CompareTest, WithoutARecordOfTheDeviceNothingIsValid) {
  Environment environment;
  environment.devices.resize(1);
  environment.devices[0].name = "Toy";
  environment.devices[0].toolkit = "C";
  const CompareSetup setup{"test",      a_, b_,       design_, {},     "",  "code",
                           environment, "", options_, coins_,  clock_, true};
  const Result<Report> incomplete = compare(setup);
  ASSERT_TRUE(incomplete.is_ok());
  EXPECT_EQ(incomplete->verdict(), Verdict::kInvalid);
  EXPECT_NE(incomplete->items[0].result.reason.find("the driver's version"), std::string::npos);
  EXPECT_EQ(a_.launches + a_.rehearsals, 0);
}

TEST_F(CompareTest, AnArmThatCannotBeMadeReadyEndsIt) {
  b_.prepared = Status(Code::kFailed, "the build failed");
  EXPECT_EQ(compare_now().status().code(), Code::kFailed);
}

TEST_F(CompareTest, GoesOnFromTheJournal) {
  journal_ = journal_path();
  b_.times[gemm_] = 1.1e6;
  b_.dies_at = 13;  // in the middle of confirming
  EXPECT_EQ(compare_now().status().code(), Code::kUnavailable);
  b_.dies_at = 0;
  b_.launches = 0;
  const Report result = report();
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kRegression);
  EXPECT_EQ(result.items[0].result.pairs, 18);
  EXPECT_EQ(result.measurement.replayed, 8 + 8 + 4);
  EXPECT_EQ(b_.launches, 6);
  // Once finished, the same verdict comes from the journal alone, with no process started.
  a_.launches = b_.launches = a_.rehearsals = 0;
  const Report again = report();
  EXPECT_EQ(again.items[0].result.effect.ratio, result.items[0].result.effect.ratio);
  EXPECT_EQ(a_.launches + b_.launches + a_.rehearsals, 0);
}

TEST_F(CompareTest, AJournalAlsoKeepsWhatWasGivenUp) {
  journal_ = journal_path();
  b_.failures[softmax_] = "crashes";
  b_.times[gemm_] = 1.1e6;
  b_.dies_at = 11;
  EXPECT_FALSE(compare_now().is_ok());
  b_.dies_at = 0;
  const Report result = report();
  EXPECT_EQ(result.items[0].result.verdict, Verdict::kRegression);
  EXPECT_EQ(result.items[0].result.pairs, 18);
  EXPECT_EQ(result.items[1].result.verdict, Verdict::kInvalid);
}

TEST_F(CompareTest, AJournalOfAnotherComparisonIsRefused) {
  journal_ = journal_path();
  (void)report();
  b_.code = "other";
  const Status status = compare_now().status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("'current'"), std::string::npos) << status.message();
}

TEST_F(CompareTest, ADamagedJournalIsNotTrusted) {
  journal_ = journal_path();
  (void)report();
  std::string text = read_file(journal_).value();
  const std::size_t at = text.find("\"item\":1");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, "\"item\":9");
  ASSERT_TRUE(write_atomic(journal_, text).is_ok());
  EXPECT_EQ(compare_now().status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace purlin::guard
