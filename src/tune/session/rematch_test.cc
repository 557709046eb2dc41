// SPDX-License-Identifier: Apache-2.0
#include "tune/session/rematch.h"

#include "base/files.h"
#include "tune/session/session.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace purlin::tune {
namespace {

Space row_of(std::size_t configs) {
  PublishedSpace made{"made"};
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < configs; ++i) values.push_back(static_cast<std::int64_t>(i));
  made.knob("a", values);
  return build_space(made.parameters, made.constraints, Scope{}).value();
}

std::size_t number_of(const Config& config) {
  return static_cast<std::size_t>(std::get<std::int64_t>(*config.find("a")));
}

Evaluation measured(const Config& config, double ms, std::size_t samples = 7) {
  Evaluation evaluation;
  evaluation.config = config;
  evaluation.time_ms = ms;
  evaluation.samples.assign(samples, {ms, 0});
  evaluation.measure_s = 0.01;
  return evaluation;
}

// Rounds of configs whose times a test gives.
class RematchTest : public testing::Test {
 protected:
  void search(const std::vector<double>& times_ms) {
    space_ = row_of(times_ms.size());
    evaluations_.clear();
    for (std::size_t i = 0; i < times_ms.size(); ++i)
      evaluations_.push_back(measured(space_.config(i), times_ms[i]));
  }
  // As many whole rounds as there are, `most` at most; the order in which each measured.
  std::vector<std::vector<std::size_t>> hold(Rematches& rematches, int most,
                                             const std::function<double(std::size_t)>& time) {
    std::vector<std::vector<std::size_t>> rounds(1);
    while (static_cast<int>(rounds.size()) <= most) {
      const std::optional<std::size_t> next = rematches.next();
      if (!next) break;
      rounds.back().push_back(*next);
      if (rematches.report(measured(space_.config(*next), time(*next), 1))) rounds.emplace_back();
    }
    rounds.pop_back();
    return rounds;
  }

  Space space_;
  std::vector<Evaluation> evaluations_;
  FinalsOptions options_;
};

TEST_F(RematchTest, LeadersAreMeasuredByTurnsAndEachRoundBeginsWithAnother) {
  search({1.00, 1.01, 1.02, 5});
  Rematches rematches(evaluations_, options_, 40);
  const auto rounds = hold(rematches, 3, [](std::size_t) { return 1.0; });
  ASSERT_EQ(rounds.size(), 3u);
  EXPECT_EQ(rounds[0], (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(rounds[1], (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(rounds[2], (std::vector<std::size_t>{2, 0, 1}));
  EXPECT_EQ(rematches.outcome().rounds, 3);
  EXPECT_EQ(rematches.outcome().configs, 3u);
  EXPECT_NEAR(rematches.outcome().seconds, 0.09, 1e-9);
}

TEST_F(RematchTest, RoundsEndOnceEachHasItsShareAndANewLeaderMeetsTheFastest) {
  search({1.00, 1.01, 1.02});
  Rematches rematches(evaluations_, options_, 6);
  const auto same = [](std::size_t) { return 1.0; };
  EXPECT_EQ(hold(rematches, 100, same).size(), 6u);
  EXPECT_FALSE(rematches.next().has_value());
  evaluations_.push_back(measured(space_.config(2), 1.005));
  const auto rounds = hold(rematches, 100, same);
  ASSERT_EQ(rounds.size(), 6u);
  for (const auto& round : rounds)
    EXPECT_EQ(std::set<std::size_t>(round.begin(), round.end()), (std::set<std::size_t>{0, 3}));
}

TEST_F(RematchTest, WhoLedByLuckIsOutAndANearTieIsNot) {
  // The first is 5 % slower than it seemed, and the last 1 % slower than the others.
  search({0.98, 1.00, 1.00, 1.00});
  Rematches rematches(evaluations_, options_, 40);
  const std::map<std::size_t, double> times = {{0, 1.05}, {1, 1.0}, {2, 1.0}, {3, 1.01}};
  int n = 0;
  const auto noisy = [&](std::size_t i) { return times.at(i) * (1 + 0.002 * (n++ % 5 - 2)); };
  hold(rematches, 7, noisy);
  EXPECT_FALSE(rematches.is_out(0)) << "so few rounds have no interval";
  hold(rematches, 33, noisy);
  EXPECT_TRUE(rematches.is_out(0));
  for (const std::size_t tie : {1, 2, 3}) EXPECT_FALSE(rematches.is_out(tie)) << tie;
  EXPECT_EQ(rematches.outcome().out, 1u);
}

TEST_F(RematchTest, DriftBetweenRoundsIsNoDifferenceOfConfigs) {
  search({1.00, 1.01, 1.02});
  Rematches rematches(evaluations_, options_, 40);
  int n = 0;
  // All become slower by a third while the clock throttles.
  hold(rematches, 40, [&](std::size_t) { return 1 + n++ * 0.003; });
  EXPECT_EQ(rematches.outcome().out, 0u);
}

TEST_F(RematchTest, WhoIsFarBehindIsOutAfterAFewRounds) {
  search({1.00, 1.01, 1.02});
  evaluations_[2].raced_out = true;
  Rematches rematches(evaluations_, options_, 40);
  int calls = 0;
  // A disturbed sample is in one round, not in all.
  hold(rematches, 3, [&](std::size_t i) {
    return i == 2 ? 1.3 : i == 1 && calls++ < 2 ? 3.0 : 1.0;
  });
  EXPECT_TRUE(rematches.is_out(2));
  EXPECT_FALSE(rematches.is_out(1));
}

TEST_F(RematchTest, WhoIsOutGivesItsPlaceInTheFinalsToTheNextButNoFurtherChance) {
  search({1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.2, 1.21, 1.22});
  for (const std::size_t i : {6, 7, 8}) {
    evaluations_[i].raced_out = true;
    evaluations_[i].samples.resize(1);
  }
  options_.second_chances = 2;
  const auto chosen = [&](const std::set<std::size_t>& out) {
    return finalists_of(evaluations_, std::nullopt, options_,
                        [&](std::size_t i) { return out.contains(i); });
  };
  EXPECT_EQ(chosen({}), (std::vector<std::size_t>{0, 1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(chosen({0, 6}), (std::vector<std::size_t>{1, 2, 3, 4, 5, 7}));
}

TEST_F(RematchTest, ABatchThatLoadedIsAskedForAgainAndAFailureIsOut) {
  search({1.00, 1.01, 1.02});
  Rematches rematches(evaluations_, options_, 40);
  ASSERT_EQ(rematches.next(), 0u);
  EXPECT_FALSE(rematches.report(measured(space_.config(0), 0, 0)).has_value());
  ASSERT_EQ(rematches.next(), 0u);
  EXPECT_FALSE(rematches.report(measured(space_.config(0), 1, 1)).has_value());
  Evaluation crashed = measured(space_.config(1), 0, 0);
  crashed.status = EvaluationStatus::kCrash;
  crashed.message = "gone";
  ASSERT_EQ(rematches.next(), 1u);
  EXPECT_FALSE(rematches.report(crashed).has_value());
  ASSERT_EQ(rematches.next(), 2u);
  const auto round = rematches.report(measured(space_.config(2), 1, 1));
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ((*round)[1].problem, "gone");
  EXPECT_TRUE(rematches.is_out(1));
}

// Each costs a worker its process, so the second failure is the last, and ends its round.
TEST_F(RematchTest, TwoFailuresEndTheRoundsThoughOthersAreLeft) {
  search({1.00, 1.01, 1.02, 1.03, 1.04, 1.05});
  Rematches rematches(evaluations_, options_, 40);
  Evaluation crashed = measured(space_.config(0), 0, 0);
  crashed.status = EvaluationStatus::kCrash;
  ASSERT_TRUE(rematches.next().has_value());
  EXPECT_FALSE(rematches.report(crashed).has_value());
  ASSERT_TRUE(rematches.next().has_value());
  const auto round = rematches.report(crashed);
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->size(), 2u);
  EXPECT_FALSE((*round)[0].problem.empty());
  EXPECT_FALSE(rematches.next().has_value());
  EXPECT_EQ(rematches.outcome().out, 2u);
}

// Slower in six of eight rounds by twice a tie, and faster in two: luck does as much.
TEST_F(RematchTest, WhoIsSlowerInMostRoundsIsNotOutForIt) {
  search({1.00, 1.01});
  Rematches rematches(evaluations_, options_, 40);
  int n = 0;
  hold(rematches, 8, [&](std::size_t i) { return i == 0 ? 1.0 : n++ % 4 == 0 ? 0.98 : 1.04; });
  EXPECT_EQ(rematches.outcome().rounds, 8);
  EXPECT_EQ(rematches.outcome().out, 0u);
}

// Of many leaders a round has the fastest and four others, so that it is short.
TEST_F(RematchTest, ARoundHasFiveConfigsAtMost) {
  search({1.00, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01});
  options_.candidates = 8;
  Rematches rematches(evaluations_, options_, 40);
  const auto rounds = hold(rematches, 1, [](std::size_t) { return 1.0; });
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_EQ(rounds[0].size(), 5u);
}

// Compilers that are not done before so many batches were measured meanwhile.
class WaitingEvaluator : public Evaluator {
 public:
  const DeviceInfo& device() const override { return info_; }
  bool executes() const override { return true; }
  bool runs_beside() const override { return true; }
  bool repeats() const override { return again; }
  std::size_t lookahead() const override { return 3; }
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs) override {
    const std::lock_guard lock(mutex_);
    // Where nothing is measured meanwhile, a build is over all the same.
    if (evaluated_ >= 4 && batches_ < batches && ++looks_ < most_looks) return std::nullopt;
    log_.push_back("built " + configs.front()->text());
    batches_ = looks_ = 0;
    ++built_;
    changed_.notify_all();
    return 0;
  }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    const std::lock_guard lock(mutex_);
    log_.push_back("evaluate " + config.text());
    give_ups.push_back(policy.give_up_ms);
    ++evaluated_;
    return measured(config, search_ms(number_of(config)));
  }
  Result<Evaluation> repeat(const Config& config, const measure::Policy&) override {
    std::unique_lock lock(mutex_);
    log_.push_back("repeat " + config.text());
    // The last one is under way until a build is over and known to the session.
    const int before = built_;
    if (++batches_ >= batches && holds)
      changed_.wait_for(lock, std::chrono::seconds(60), [&] { return built_ > before; });
    return measured(config, repeat_ms(number_of(config)), 1);
  }
  std::vector<std::string> of(std::string_view what) const {
    std::vector<std::string> found;
    for (const std::string& line : log_)
      if (line.starts_with(what)) found.push_back(line.substr(what.size() + 1));
    return found;
  }
  const std::vector<std::string>& log() const { return log_; }

  std::function<double(std::size_t)> search_ms = [](std::size_t i) {
    return 1 + 0.001 * static_cast<double>(i);
  };
  std::function<double(std::size_t)> repeat_ms = search_ms;
  bool again = true, holds = false;
  int batches = 12, most_looks = 1000;
  std::vector<double> give_ups;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
  int built_ = 0, evaluated_ = 0, batches_ = 0, looks_ = 0;
  DeviceInfo info_;
};

class RematchSessionTest : public testing::Test {
 protected:
  RematchSessionTest() {
    if (is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    folder_ = make_temporary_directory("rematch").value();
    options_.budget.evaluations = 10;
    options_.default_config = space_.config(11);
  }
  ~RematchSessionTest() override { static_cast<void>(remove_tree(folder_)); }

  SessionResult run(Evaluator& evaluator, const std::string& strategy = "exhaustive",
                    Journal* journal = nullptr) {
    auto made = make_strategy(strategy, {space_, 5, options_.budget.evaluations}).value();
    return run_session(space_, *made, evaluator, journal, options_).value();
  }
  Journal journal() const {
    return Journal::open(folder_ + "/journal.jsonl", Json::object({{"schema", "purlin.session/1"}}))
        .value();
  }

  Space space_ = row_of(12);
  std::string folder_;
  SessionOptions options_;
};

TEST_F(RematchSessionTest, LeadersAreMeasuredWhileCompilersWorkByAnyStrategy) {
  for (const char* strategy : {"exhaustive", "random", "local", "auto"}) {
    WaitingEvaluator evaluator;
    const SessionResult result = run(evaluator, strategy);
    EXPECT_EQ(result.evaluations.size(), 10u) << strategy;
    EXPECT_GT(result.rematched.rounds, 0) << strategy;
    EXPECT_GE(evaluator.of("repeat").size(), 2 * static_cast<std::size_t>(result.rematched.rounds));
  }
}

TEST_F(RematchSessionTest, ABuiltConfigWaitsForOneBatchAtMost) {
  WaitingEvaluator evaluator;
  evaluator.holds = true;
  evaluator.batches = 10;
  run(evaluator);
  int behind = -1, seen = 0;
  for (const std::string& line : evaluator.log()) {
    if (line.starts_with("built")) behind = 0;
    if (line.starts_with("repeat") && behind >= 0) ++behind;
    EXPECT_LE(behind, 0) << line << ": the one under way was all";
    if (line.starts_with("evaluate") && behind >= 0) behind = -1, ++seen;
  }
  EXPECT_GT(seen, 5);
}

TEST_F(RematchSessionTest, NothingIsMeasuredAgainWithoutWaitsOrWhereNobodyAsked) {
  const auto repeats = [&](WaitingEvaluator& evaluator) {
    evaluator.most_looks = 20;
    const SessionResult result = run(evaluator);
    EXPECT_EQ(result.rematched.rounds, 0);
    return evaluator.of("repeat").size();
  };
  WaitingEvaluator never_waits;
  never_waits.batches = 0;
  EXPECT_EQ(repeats(never_waits), 0u);
  WaitingEvaluator cannot;  // a [command], a device that is a CPU, a recording
  cannot.again = false;
  EXPECT_EQ(repeats(cannot), 0u);
  WaitingEvaluator once;
  options_.budget.evaluations = 1;
  EXPECT_EQ(repeats(once), 0u);
  options_.budget.evaluations = 10;
  WaitingEvaluator no_finals;
  options_.finals.rounds = 0;
  EXPECT_EQ(repeats(no_finals), 0u);
  options_.finals.rounds = 5;
  options_.objective = Objective::kEnergy;
  WaitingEvaluator energy;
  EXPECT_EQ(repeats(energy), 0u);
}

TEST_F(RematchSessionTest, WhoLedByLuckIsNeitherRacedAgainstNorInTheFinals) {
  WaitingEvaluator evaluator;
  evaluator.batches = 60;
  // The second config seems to be a fifth faster than it is.
  evaluator.search_ms = [&](std::size_t i) {
    return i == 1 ? 0.9 : 1 + 0.001 * static_cast<double>(i);
  };
  evaluator.repeat_ms = [](std::size_t i) {
    return i == 1 ? 1.1 : 1 + 0.001 * static_cast<double>(i);
  };
  const SessionResult result = run(evaluator);
  EXPECT_EQ(result.rematched.out, 1u);
  EXPECT_NEAR(evaluator.give_ups[9], 1.15 * 1.0, 1e-9) << "the best of those that hold";
  for (const Finalist& finalist : result.verdict->finalists)
    EXPECT_NE(number_of(result.evaluations[finalist.evaluation].config), 1u);
}

TEST_F(RematchSessionTest, AResumedSessionKnowsTheRoundsOfBefore) {
  options_.policy.min_samples = 1;
  options_.policy.max_samples = 4;  // and so many rounds
  options_.budget.evaluations = 6;
  int rounds = 0;
  {
    WaitingEvaluator evaluator;
    evaluator.batches = 200;
    evaluator.most_looks = 200;
    Journal kept = journal();
    rounds = run(evaluator, "exhaustive", &kept).rematched.rounds;
    EXPECT_GE(rounds, 4);
  }
  Journal kept = journal();
  EXPECT_EQ(kept.records().size(), 6u);
  EXPECT_EQ(static_cast<int>(kept.rematches().size()), rounds);
  WaitingEvaluator evaluator;
  evaluator.batches = 200;
  evaluator.most_looks = 200;
  options_.budget.evaluations = 9;
  const SessionResult result = run(evaluator, "exhaustive", &kept);
  EXPECT_EQ(result.resumed, 6u);
  EXPECT_GE(result.rematched.rounds, rounds);
  // Only the fastest is asked again, as the partner of new ones.
  const std::vector<std::string> again = evaluator.of("repeat");
  for (const RematchRound& round : kept.rematches())
    for (const Rematch& each : round)
      if (number_of(each.config) != 0) {
        EXPECT_EQ(std::count(again.begin(), again.end(), each.config.text()), 0)
            << each.config.text();
      }
}

}  // namespace
}  // namespace purlin::tune
