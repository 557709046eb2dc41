// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_tuner.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace purlin::runtime {
namespace {

using Ints = std::vector<Value>;

std::int64_t at(const Config& config, const char* name) {
  return std::get<std::int64_t>(*config.find(name));
}

// A program whose kernel is fastest at BLOCK=64 UNROLL=4, and wrong at UNROLL=8.
struct Program {
  FakeClock clock;
  std::set<std::string> wrong_runs;
  int runs = 0;

  std::unique_ptr<ProgramTuner> tuner(const std::string& session = "", std::int64_t block = 16,
                                      std::int64_t unroll = 1) {
    ProgramTunerOptions options;
    options.kernel = "scale";
    options.strategy = "exhaustive";
    options.session = session;
    auto made = std::make_unique<ProgramTuner>(options, clock);
    EXPECT_TRUE(made->add_parameter("BLOCK", Ints{16, 32, 64, 128}, block).is_ok());
    EXPECT_TRUE(made->add_parameter("UNROLL", Ints{1, 2, 4, 8}, unroll).is_ok());
    EXPECT_TRUE(made->add_dimension("N", 1000, "pow2").is_ok());
    EXPECT_TRUE(made->add_constraint("BLOCK * UNROLL <= N").is_ok());
    EXPECT_TRUE(made->start().is_ok());
    return made;
  }
  double time(const Config& config) const {
    const double block = static_cast<double>(at(config, "BLOCK"));
    return 1 + std::abs(block - 64) / 64 + 1 / static_cast<double>(at(config, "UNROLL"));
  }
  // One call of the program's kernel.
  void call(ProgramTuner& tuner) {
    const Result<const Config*> config = tuner.next();
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    const Config now = **config;
    ++runs;
    clock.now_ns += 1'000'000;
    if (at(now, "UNROLL") == 8) {
      EXPECT_FALSE(tuner.over()) << "a wrong config is served";
      EXPECT_TRUE(wrong_runs.insert(now.text()).second) << "a wrong config ran twice";
      ASSERT_TRUE(tuner.reject(EvaluationStatus::kWrong, "outputs differ").is_ok());
      return;
    }
    ASSERT_TRUE(tuner.report(time(now)).is_ok());
  }
};

TEST(ProgramTuner, FindsTheBestWhileTheProgramRunsAndThenServesIt) {
  Program program;
  const auto tuner = program.tuner();
  EXPECT_EQ(tuner->space_size(), 15u);  // 128 * 8 > 1000
  EXPECT_EQ(tuner->best().text(), "BLOCK=16 UNROLL=1");
  for (int i = 0; i < 2000 && !tuner->over(); ++i) program.call(*tuner);
  ASSERT_TRUE(tuner->over());
  EXPECT_EQ(tuner->best().text(), "BLOCK=64 UNROLL=4");
  EXPECT_EQ(tuner->evaluations(), 15u);
  EXPECT_DOUBLE_EQ(tuner->best_time_ms(), 1.25);
  EXPECT_DOUBLE_EQ(tuner->default_time_ms(), 2.75);
  EXPECT_EQ((*tuner->next())->text(), "BLOCK=64 UNROLL=4");
  program.call(*tuner);
  EXPECT_EQ(tuner->evaluations(), 15u);
}

TEST(ProgramTuner, ADefaultThatCannotRunHasTheNearestConfigInItsPlace) {
  Program program;
  const auto tuner = program.tuner("", 128, 8);
  EXPECT_EQ(tuner->best().text(), "BLOCK=64 UNROLL=8") << "128 * 8 > 1000";
  EXPECT_EQ((*tuner->next())->text(), "BLOCK=64 UNROLL=8");
}

TEST(ProgramTuner, TheFirstRunOfAConfigIsNotCountedUnlessItIsHopeless) {
  Program program;
  const auto tuner = program.tuner();
  ASSERT_TRUE(tuner->next().is_ok());
  ASSERT_TRUE(tuner->report(1000).is_ok());  // compiled on first use
  for (int i = 0; i < 2000 && !tuner->over(); ++i) program.call(*tuner);
  EXPECT_DOUBLE_EQ(tuner->default_time_ms(), 2.75);
}

TEST(ProgramTuner, GoesOnWhereAKilledProgramWas) {
  const std::string folder = make_temporary_directory("tuner").value();
  Program undisturbed;
  {
    const auto tuner = undisturbed.tuner();
    while (!tuner->over()) undisturbed.call(*tuner);
  }
  Program program;
  std::size_t made = 0;
  {
    const auto tuner = program.tuner(folder);
    while (tuner->evaluations() < 7) program.call(*tuner);
    made = tuner->evaluations();
  }
  const auto again = program.tuner(folder);
  EXPECT_EQ(again->evaluations(), made);
  while (!again->over()) program.call(*again);
  EXPECT_EQ(again->best().text(), "BLOCK=64 UNROLL=4");
  EXPECT_LE(program.runs, undisturbed.runs);
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

TEST(ProgramTuner, TheWinnerIsAnEntryOfTheCache) {
  Program program;
  const auto tuner = program.tuner();
  DeviceInfo device;
  device.backend = "cuda";
  device.arch = "sm_90";
  EXPECT_EQ(tuner->entry(device, "f32", "abc", true).status().code(), Code::kInvalid);
  while (!tuner->over()) program.call(*tuner);
  const Result<cache::Entry> entry = tuner->entry(device, "f32", "abc", true);
  ASSERT_TRUE(entry.is_ok()) << entry.status().message();
  EXPECT_EQ(entry->key.op, "scale");
  EXPECT_EQ(entry->key.bucket, "N=1024");
  EXPECT_EQ(entry->key.source_hash, "abc");
  EXPECT_EQ(entry->config.text(), "BLOCK=64 UNROLL=4");
  EXPECT_EQ(entry->shape_constraints, std::vector<std::string>{"BLOCK * UNROLL <= N"});
  EXPECT_TRUE(entry->verified);
  EXPECT_GT(entry->runner_up_ms, entry->time_ms);
  EXPECT_EQ(entry->runner_up.text(), "BLOCK=64 UNROLL=2");
  EXPECT_EQ(entry->default_config.text(), "BLOCK=16 UNROLL=1");
  EXPECT_DOUBLE_EQ(entry->default_time_ms, 2.75);
  EXPECT_EQ(entry->strategy, "exhaustive");
  const Json json = cache::to_json(*entry);
  EXPECT_NE(json.find("default_config"), nullptr);
  EXPECT_NE(json.find("runner_up"), nullptr);
}

// By the rule of `purlin tune`: the time of an older entry may be one of a quieter machine.
TEST(ProgramTuner, AnEntryWhoseConfigLostInTheFinalsGivesWayToTheWinner) {
  const std::string folder = make_temporary_directory("tuner_store").value();
  DeviceInfo device;
  device.backend = "cuda";
  device.arch = "sm_90";
  Program program;
  const auto tuner = program.tuner();
  while (!tuner->over()) program.call(*tuner);
  const cache::Entry winner = tuner->entry(device, "f32", "abc", true).value();
  cache::Entry older = winner;
  older.config = winner.default_config;
  older.time_ms = 0.5;
  cache::Store store = cache::Store::open(folder).value();
  const std::string record = store.put(older).value().record;
  // The times of a winner are not enough where its outputs were not compared.
  cache::Entry unverified = winner;
  unverified.verified = false;
  const tune::StoredWinner refused = tuner->store(store, unverified).value();
  EXPECT_FALSE(refused.put.served);
  ASSERT_EQ(refused.notes().size(), 1u);
  EXPECT_NE(refused.notes()[0].find("outputs were verified"), std::string::npos);
  const tune::StoredWinner stored = tuner->store(store, winner).value();
  EXPECT_TRUE(stored.put.served);
  EXPECT_EQ(stored.displaced, std::vector<std::string>{record});
  ASSERT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.list().front().config.text(), winner.config.text());
  ASSERT_EQ(store.statuses(cache::Id128::parse(record)).size(), 1u);
  EXPECT_EQ(store.statuses(cache::Id128::parse(record))[0].state, cache::EntryState::kDemoted);
  // One of the winner's own config was judged by no finals.
  older.config = winner.config;
  ASSERT_TRUE(store.put(older).is_ok());
  const tune::StoredWinner again = tuner->store(store, winner).value();
  EXPECT_FALSE(again.put.served);
  EXPECT_TRUE(again.displaced.empty());
  ASSERT_EQ(again.notes().size(), 1u);
  EXPECT_NE(again.notes()[0].find("it is faster"), std::string::npos) << again.notes()[0];
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

TEST(ProgramTuner, WhereNothingWorksTheDefaultIsServed) {
  Program program;
  const auto tuner = program.tuner();
  while (!tuner->over()) {
    ASSERT_TRUE(tuner->next().is_ok());
    if (!tuner->over()) {
      ASSERT_TRUE(tuner->reject(EvaluationStatus::kLaunch, "no").is_ok());
    }
  }
  EXPECT_EQ(tuner->best().text(), "BLOCK=16 UNROLL=1");
  EXPECT_EQ(tuner->entry({}, "f32", "", false).status().code(), Code::kNotFound);
}

TEST(ProgramTuner, WhatIsOutBeforeItsRunCostsNoEvaluation) {
  for (const auto& [how, evaluations] : std::vector<std::pair<EvaluationStatus, std::size_t>>{
           {EvaluationStatus::kInvalid, 7}, {EvaluationStatus::kWrong, 4}}) {
    ProgramTunerOptions options{"scale"};
    options.strategy = "random";
    options.budget = "4";
    FakeClock clock;
    ProgramTuner tuner(options, clock);
    ASSERT_TRUE(tuner.add_parameter("A", Ints{1, 2, 3, 4, 5, 6, 7, 8}, std::int64_t{1}).is_ok());
    ASSERT_TRUE(tuner.start().is_ok());
    while (!tuner.over()) {
      const Config now = **tuner.next();
      clock.now_ns += 1'000'000;
      if (at(now, "A") == 1 || tuner.evaluations() % 2 == 0) {
        ASSERT_TRUE(tuner.report(1.0 + static_cast<double>(at(now, "A"))).is_ok());
      } else {
        ASSERT_TRUE(tuner.reject(how, "it spills").is_ok());
      }
    }
    EXPECT_EQ(tuner.evaluations(), evaluations);
  }
}

TEST(ProgramTuner, RefusesMistakes) {
  ProgramTuner tuner({"k"});
  EXPECT_FALSE(tuner.next().is_ok());
  EXPECT_FALSE(tuner.start().is_ok());
  EXPECT_FALSE(tuner.add_parameter("A", {}, std::int64_t{1}).is_ok());
  EXPECT_FALSE(tuner.add_parameter("A", Ints{1, 1}, std::int64_t{1}).is_ok());
  EXPECT_FALSE(tuner.add_parameter("A", Ints{1, 2}, std::int64_t{3}).is_ok());
  EXPECT_FALSE(tuner.add_parameter("A B", Ints{1, 2}, std::int64_t{1}).is_ok());
  EXPECT_FALSE(tuner.add_parameter("A", {std::string("1 -DB=2")}, std::string("1 -DB=2")).is_ok());
  EXPECT_FALSE(tuner.add_dimension("N M", 8, "").is_ok());
  EXPECT_FALSE(tuner.add_constraint("A <").is_ok());
  EXPECT_FALSE(tuner.add_dimension("N", 0, "").is_ok());
  EXPECT_FALSE(tuner.add_dimension("N", 8, "pow3").is_ok());
  ASSERT_TRUE(tuner.add_parameter("A", Ints{1, 2}, std::int64_t{2}).is_ok());
  EXPECT_FALSE(tuner.add_parameter("A", Ints{1, 2}, std::int64_t{2}).is_ok());
  EXPECT_FALSE(tuner.add_dimension("A", 8, "").is_ok());
  EXPECT_FALSE(tuner.report(1).is_ok());
  ASSERT_TRUE(tuner.start().is_ok());
  EXPECT_FALSE(tuner.add_constraint("A > 0").is_ok());
  ASSERT_TRUE(tuner.next().is_ok());
  EXPECT_FALSE(tuner.report(-1).is_ok());
  EXPECT_FALSE(tuner.report(std::nan("")).is_ok());
}

TEST(ProgramTuner, NextConfigsAreAnnouncedOnceBeforeTheyRun) {
  ProgramTunerOptions options;
  options.kernel = "scale";
  options.strategy = "exhaustive";
  options.budget = "100";
  options.lookahead = 4;
  FakeClock clock;
  ProgramTuner tuner(options, clock);
  EXPECT_EQ(tuner.announced(), nullptr);
  ASSERT_TRUE(
      tuner.add_parameter("BLOCK", Ints{16, 32, 64, 128, 256, 512}, std::int64_t{16}).is_ok());
  ASSERT_TRUE(tuner.start().is_ok());
  std::set<std::string> named;
  std::string now;
  std::size_t early = 0;
  while (!tuner.over()) {
    const Config config = **tuner.next();
    if (tuner.over()) break;
    while (const Config* later = tuner.announced()) {
      EXPECT_TRUE(named.insert(later->text()).second) << later->text() << " twice";
      early += later->text() != config.text();
    }
    ASSERT_TRUE(tuner.report(static_cast<double>(at(config, "BLOCK"))).is_ok());
  }
  EXPECT_GE(early, 3u);
  EXPECT_EQ(tuner.best().text(), "BLOCK=16");
}

// The configs in the order of their runs, for a program that waits so long for each compilation.
std::vector<std::string> order_of_runs(double wait_s) {
  ProgramTunerOptions options;
  options.kernel = "scale";
  options.budget = "60";
  options.lookahead = 16;
  FakeClock clock;
  ProgramTuner tuner(options, clock);
  for (const char* name : {"A", "B", "C", "D", "E"})
    EXPECT_TRUE(tuner.add_parameter(name, Ints{0, 1, 2, 3}, std::int64_t{0}).is_ok());
  EXPECT_FALSE(tuner.waited(1).is_ok()) << "before the start";
  EXPECT_TRUE(tuner.start().is_ok());
  EXPECT_FALSE(tuner.waited(-1).is_ok());
  EXPECT_FALSE(tuner.waited(std::nan("")).is_ok());
  std::vector<std::string> order;
  while (!tuner.over()) {
    const Config config = **tuner.next();
    if (tuner.over()) break;
    EXPECT_TRUE(tuner.waited(wait_s).is_ok());
    double time_ms = 1;
    for (const char* name : {"A", "B", "C", "D", "E"})
      time_ms += 0.1 * static_cast<double>(std::abs(at(config, name) - 2));
    EXPECT_TRUE(tuner.report(time_ms).is_ok());
    order.push_back(config.text());
  }
  return order;
}

TEST(ProgramTuner, MoreConfigsAreChosenAheadWhereCompilationsTakeLong) {
  const std::vector<std::string> patient = order_of_runs(0);
  EXPECT_EQ(order_of_runs(0.2), patient) << "each config is chosen by all results before it";
  EXPECT_NE(order_of_runs(0.3), patient);
  EXPECT_EQ(order_of_runs(30), order_of_runs(3)) << "seven at most";
}

TEST(ProgramTuner, ASearchStartsFromWhatEarlierOnesLeft) {
  const std::string cache = make_temporary_directory("tuner_transfer").value();
  DeviceInfo device;
  device.backend = "cuda";
  device.arch = "sm_90";
  device.name = "NVIDIA H100";
  // 1,024 configs; the fastest is far from the default.
  const auto tune = [&](std::int64_t extent, std::string_view dtype, std::size_t budget) {
    ProgramTunerOptions options;
    options.kernel = "scale";
    options.budget = std::to_string(budget);
    options.seed = 7;
    FakeClock clock;
    ProgramTuner tuner(options, clock);
    for (const char* name : {"A", "B", "C", "D", "E"})
      EXPECT_TRUE(tuner.add_parameter(name, Ints{0, 1, 2, 3}, std::int64_t{0}).is_ok());
    EXPECT_TRUE(tuner.add_dimension("N", extent, "").is_ok());
    EXPECT_TRUE(tuner.transfer({cache, device, std::string(dtype), "source"}).is_ok());
    EXPECT_TRUE(tuner.start().is_ok());
    EXPECT_FALSE(tuner.transfer({cache, device, "f16", "source"}).is_ok()) << "too late";
    while (!tuner.over()) {
      const Config config = **tuner.next();
      if (tuner.over()) break;
      double time = 1;
      for (const char* name : {"A", "B", "C", "D", "E"})
        time += std::abs(static_cast<double>(at(config, name)) - 3) * 0.7;
      EXPECT_TRUE(tuner.report(time).is_ok());
    }
    EXPECT_TRUE(tuner.keep_evaluations().is_ok());
    return tuner.best_time_ms();
  };
  EXPECT_DOUBLE_EQ(tune(1000, "f32", 300), 1);
  EXPECT_DOUBLE_EQ(tune(2000, "f16", 8), 1) << "eight evaluations are enough with the first's";
  EXPECT_EQ(list_directory(join_path(cache, "evaluations"))->size(), 2u);
}

}  // namespace
}  // namespace purlin::runtime
