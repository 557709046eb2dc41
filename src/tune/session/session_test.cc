// SPDX-License-Identifier: Apache-2.0
#include "tune/session/session.h"

#include "base/files.h"
#include "model/document.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <thread>
#include <utility>

namespace purlin::tune {
namespace {

// A device in the test's hands: time by config, and a count of what was asked of it.
class ScriptedEvaluator : public Evaluator {
 public:
  const DeviceInfo& device() const override { return info_; }
  bool executes() const override { return true; }
  std::size_t lookahead() const override { return ahead; }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    ++calls;
    asked.push_back(config.text());
    if (stop_after >= 0 && calls > stop_after) return error(Code::kFailed, "killed");
    Evaluation evaluation;
    evaluation.config = config;
    evaluation.cost_s = 0.5;
    evaluation.time_ms = time(config);
    if (evaluation.time_ms < 0) {
      evaluation.status = EvaluationStatus::kCompile;
      evaluation.message = "no such register";
      evaluation.time_ms = 0;
      return evaluation;
    }
    give_ups.push_back(policy.give_up_ms);
    count_below.push_back(policy.count_below_ms);
    for (int i = 0; i < 7; ++i)
      evaluation.samples.push_back({evaluation.time_ms * (1 + 0.001 * (i - 3)), 0});
    return evaluation;
  }

  std::function<double(const Config&)> time = [](const Config& config) {
    const std::int64_t a = std::get<std::int64_t>(*config.find("a"));
    const std::int64_t b = std::get<std::int64_t>(*config.find("b"));
    return a == 3 && b == 1 ? -1 : 1.0 + static_cast<double>((a - 2) * (a - 2) + b);
  };
  std::size_t ahead = 1;
  int calls = 0, stop_after = -1;
  std::vector<std::string> asked;
  std::vector<double> give_ups, count_below;

 private:
  DeviceInfo info_;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    PublishedSpace made{"made"};
    made.knob("a", {0, 1, 2, 3}).knob("b", {0, 1, 2});
    space_ = build_space(made.parameters, made.constraints, Scope{}).value();
    // In memory where that exists: the tests sync thousands of times.
    if (is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    folder_ = make_temporary_directory("session").value();
    options_.budget.evaluations = 12;
    options_.default_config = space_.config(11);
  }
  ~SessionTest() override { static_cast<void>(remove_tree(folder_)); }

  Result<SessionResult> run(ScriptedEvaluator& evaluator, Journal* journal = nullptr,
                            const std::string& name = "local") {
    auto strategy = make_strategy(name, {space_, 5, options_.budget.evaluations}).value();
    return run_session(space_, *strategy, evaluator, journal, options_, clock_);
  }
  std::string path() const { return folder_ + "/journal.jsonl"; }
  Result<Journal> journal() const {
    return Journal::open(path(), Json::object({{"schema", "purlin.session/1"}}));
  }

  Space space_;
  std::string folder_;
  SessionOptions options_;
  FakeClock clock_;
};

TEST_F(SessionTest, EvaluatesTheDefaultFirstThenFindsTheBest) {
  ScriptedEvaluator evaluator;
  const Result<SessionResult> result = run(evaluator);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(evaluator.asked.front(), space_.config(11).text());
  EXPECT_EQ(result->evaluations.size(), 12u);
  EXPECT_EQ(result->default_evaluation, 0u);
  ASSERT_TRUE(result->verdict.has_value());
  EXPECT_EQ(result->evaluations[result->verdict->best().evaluation].config.text(), "a=2 b=0");
  ASSERT_TRUE(result->verdict->fallback.has_value());
  EXPECT_EQ(result->verdict->rounds, 2);  // without noise more would tell nothing
  EXPECT_DOUBLE_EQ(result->evaluations.back().cumulative_cost_s, 6);
}

TEST_F(SessionTest, RacesAgainstTheBestButNeverTheDefault) {
  ScriptedEvaluator evaluator;
  options_.finals.rounds = 0;
  ASSERT_TRUE(run(evaluator, nullptr, "exhaustive").is_ok());
  EXPECT_EQ(evaluator.give_ups.front(), 0);
  for (std::size_t i = 1; i < evaluator.give_ups.size(); ++i) EXPECT_GT(evaluator.give_ups[i], 0);
}

// Asks for counters of the first config, then of what is within a tenth of the best.
class Counting : public Strategy {
 public:
  explicit Counting(std::unique_ptr<Strategy> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return "counting"; }
  std::optional<std::size_t> ask() override { return inner_->ask(); }
  void tell(std::size_t index, const Outcome& outcome) override {
    ++told_;
    inner_->tell(index, outcome);
  }
  double count_within(std::size_t) const override {
    return told_ == 0 ? std::numeric_limits<double>::infinity() : told_ < 5 ? 1.1 : 0;
  }

 private:
  std::unique_ptr<Strategy> inner_;
  std::size_t told_ = 0;
};

TEST_F(SessionTest, CountersAreReadOfWhatTheStrategyWantsToKnow) {
  ScriptedEvaluator evaluator;
  options_.objective = Objective::kTime;
  Counting strategy(make_strategy("exhaustive", {space_, 5, 12}).value());
  const auto result = run_session(space_, strategy, evaluator, nullptr, options_, clock_);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  const std::vector<double>& below = evaluator.count_below;
  ASSERT_GT(below.size(), 8u);
  EXPECT_EQ(below[0], std::numeric_limits<double>::infinity());
  double best = result->evaluations[0].time_ms;
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(below[i], 1.1 * best) << i;
    if (result->evaluations[i].ok()) best = std::min(best, result->evaluations[i].time_ms);
  }
  EXPECT_EQ(below[7], 0);
  EXPECT_EQ(below.back(), 0) << "finals only time";
}

TEST_F(SessionTest, StopsWithinItsBudget) {
  ScriptedEvaluator evaluator;
  evaluator.ahead = 4;
  options_.budget.evaluations = 5;
  options_.finals.rounds = 0;
  const Result<SessionResult> result = run(evaluator, nullptr, "random");
  EXPECT_EQ(result->evaluations.size(), 5u);
  EXPECT_EQ(evaluator.calls, 5);
  EXPECT_EQ(result->end, SessionResult::End::kBudget);
}

TEST_F(SessionTest, ABudgetOfEvaluationsCountsWhatWasMeasured) {
  ScriptedEvaluator evaluator;
  evaluator.ahead = 4;
  options_.budget.evaluations = 4;
  options_.finals.rounds = 0;
  std::vector<std::size_t> done;
  options_.on_progress = [&](const SessionState& state) { done.push_back(state.done); };
  // Of the first ten configs, four work.
  evaluator.time = [&](const Config&) { return evaluator.calls % 3 == 1 ? 1.0 : -1.0; };
  Result<SessionResult> result = run(evaluator, nullptr, "random");
  EXPECT_EQ(result->evaluations.size(), 8u);  // as many are free as the budget has
  EXPECT_EQ(done.back(), 4u);
  evaluator.calls = 0;
  evaluator.time = [&](const Config&) { return evaluator.calls % 2 == 1 ? 1.0 : -1.0; };
  result = run(evaluator, nullptr, "random");
  EXPECT_EQ(result->evaluations.size(), 7u);
  EXPECT_EQ(done.back(), 4u);
}

// Each evaluation takes a tenth of a second on the session's clock.
class SlowEvaluator : public ScriptedEvaluator {
 public:
  explicit SlowEvaluator(FakeClock& clock) : clock_(clock) {}
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    limits.push_back(policy.limit_s);
    if (cancel_at > 0 && calls + 1 == cancel_at) {
      ++calls;
      return error(Code::kCancelled, "the budget is spent");
    }
    clock_.now_ns += 100'000'000;
    Result<Evaluation> made = ScriptedEvaluator::evaluate(config, policy);
    made->cost_s = made->measure_s = 0.1;
    return made;
  }
  void end_announced() override { ++ended; }
  int cancel_at = 0, ended = 0;
  std::vector<double> limits;

 private:
  FakeClock& clock_;
};

TEST_F(SessionTest, ABudgetInSecondsIncludesTheStartAndTheFinals) {
  options_.budget = {0, 2};
  options_.spent_s = 0.5;
  SlowEvaluator evaluator(clock_);
  const Result<SessionResult> result = run(evaluator, nullptr, "exhaustive");
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_GE(result->evaluations.size(), 7u);
  EXPECT_LT(result->evaluations.size(), 12u);
  ASSERT_TRUE(result->verdict.has_value());
  EXPECT_GE(result->verdict->rounds, 1) << "the search leaves time for them";
  EXPECT_LE(result->elapsed_s, 2.0 + 1e-9);
  EXPECT_GT(evaluator.ended, 0) << "nothing is compiled any more while finals are timed";
}

TEST_F(SessionTest, NoEvaluationButTheDefaultsMayOutlastTheBudget) {
  options_.budget = {0, 2};
  SlowEvaluator evaluator(clock_);
  ASSERT_TRUE(run(evaluator, nullptr, "exhaustive").is_ok());
  EXPECT_EQ(evaluator.limits.front(), 0);
  for (std::size_t i = 1; i < evaluator.limits.size(); ++i)
    EXPECT_NEAR(evaluator.limits[i], 2 - 0.1 * static_cast<double>(i), 1e-6) << i;
}

TEST_F(SessionTest, WhatWasStoppedIsNoResultAndEndsTheSearch) {
  options_.budget = {0, 20};
  SlowEvaluator evaluator(clock_);
  evaluator.cancel_at = 5;
  const Result<SessionResult> result = [&] {
    Journal kept = journal().value();
    return run(evaluator, &kept, "exhaustive");
  }();
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result->evaluations.size(), 4u);
  EXPECT_EQ(result->end, SessionResult::End::kBudget);
  EXPECT_EQ(evaluator.calls, 5) << "its time is over: no finals either";
  EXPECT_EQ(journal()->records().size(), 4u);
}

TEST_F(SessionTest, ProgressIsReportedWhenAnEvaluationBeginsAndInEachRoundOfTheFinals) {
  ScriptedEvaluator evaluator;
  std::set<int> rounds;
  bool first = true;
  options_.on_progress = [&](const SessionState& state) {
    if (std::exchange(first, false)) {
      EXPECT_EQ(state.done, 0u);
      ASSERT_NE(state.current, nullptr);
      EXPECT_EQ(*state.current, *options_.default_config);
    }
    rounds.insert(state.finals_round);
    EXPECT_LE(state.finals_round, state.finals_rounds);
  };
  ASSERT_TRUE(run(evaluator).is_ok());
  EXPECT_TRUE(rounds.contains(0) && rounds.contains(1) && rounds.contains(2));
}

TEST_F(SessionTest, StopsWhenAskedAndKeepsTheBestSoFar) {
  ScriptedEvaluator evaluator;
  std::atomic<bool> stop{false};
  options_.stop = &stop;
  options_.on_progress = [&](const SessionState& state) { stop = state.done >= 3; };
  const Result<SessionResult> result = run(evaluator);
  EXPECT_EQ(result->end, SessionResult::End::kStopped);
  EXPECT_EQ(result->evaluations.size(), 3u);
  EXPECT_TRUE(result->verdict.has_value());
}

TEST_F(SessionTest, NothingWorksIsNoVerdict) {
  ScriptedEvaluator evaluator;
  evaluator.time = [](const Config&) { return -1.0; };
  const Result<SessionResult> result = run(evaluator);
  ASSERT_TRUE(result.is_ok());
  EXPECT_FALSE(result->verdict.has_value());
}

// Three devices, one of them slow: the strategy sees what it sees with one, and nothing is measured
// twice.
TEST_F(SessionTest, SeveralDevicesGiveTheStrategyTheSameView) {
  options_.finals.rounds = 2;
  ScriptedEvaluator alone;
  alone.ahead = 3;
  const Result<SessionResult> expected = run(alone, nullptr, "exhaustive");
  std::array<ScriptedEvaluator, 3> devices;
  std::atomic<int> others{0};
  const auto time = devices[1].time;
  devices[1].time = [&](const Config& config) {
    // Until the others have made the rest of the lookahead.
    while (others.load() == 0) std::this_thread::yield();
    return time(config);
  };
  devices[2].time = [&](const Config& config) {
    ++others;
    return time(config);
  };
  auto strategy = make_strategy("exhaustive", {space_, 5, 12}).value();
  Journal kept = journal().value();
  const Result<SessionResult> result = run_session(
      space_, *strategy, {&devices[0], &devices[1], &devices[2]}, &kept, options_, clock_);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  ASSERT_EQ(result->evaluations.size(), expected->evaluations.size());
  EXPECT_EQ(kept.records().size(), 0u);  // of a session before; those of this one are in the file
  std::set<std::string> made;
  for (const Evaluation& evaluation : result->evaluations) made.insert(evaluation.config.text());
  EXPECT_EQ(made.size(), 12u);
  EXPECT_EQ(result->evaluations[result->verdict->best().evaluation].config.text(), "a=2 b=0");
  const std::size_t in_search = 12;
  EXPECT_GT(devices[1].calls + devices[2].calls, 0);
  EXPECT_GT(static_cast<std::size_t>(devices[0].calls + devices[1].calls + devices[2].calls),
            in_search);
  EXPECT_EQ(result->verdict->rounds, 2);
}

// The config that waits longest is not built before all others are made.
class SlowBuild : public ScriptedEvaluator {
 public:
  explicit SlowBuild(bool beside) : beside_(beside) {}
  bool runs_beside() const override { return beside_; }
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs) override {
    for (std::size_t i = 0; i < configs.size(); ++i)
      if (configs[i]->text() != "a=0 b=0" || configs.size() == 1) return i;
    return std::nullopt;
  }

 private:
  const bool beside_;
};

TEST_F(SessionTest, ABuiltConfigIsNotKeptWaitingByOneThatIsBeingBuilt) {
  options_.finals.rounds = 0;
  for (const bool beside : {false, true}) {
    SlowBuild evaluator(beside);
    evaluator.ahead = 5;
    const Result<SessionResult> result = run(evaluator, nullptr, "exhaustive");
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->evaluations.size(), 12u);
    EXPECT_EQ(evaluator.asked[1], "a=0 b=1");  // behind the default
    EXPECT_EQ(evaluator.asked.back(), "a=0 b=0");
  }
}

// The next one is chosen while one is evaluated, by what is known so far.
TEST_F(SessionTest, TheNextConfigIsHandedOverBesideAnEvaluation) {
  options_.finals.rounds = 0;
  SlowBuild evaluator(true);
  evaluator.ahead = 3;
  std::atomic<int> begun{0};
  options_.on_progress = [&](const SessionState& state) { begun += state.current != nullptr; };
  const auto time = evaluator.time;
  evaluator.time = [&](const Config& config) {
    // Not of the default, whose result comes before any choice, nor where nothing is left.
    const bool waits = evaluator.calls > 1 && evaluator.calls < 11;
    while (waits && begun.load() <= evaluator.calls) std::this_thread::yield();
    return time(config);
  };
  const Result<SessionResult> result = run(evaluator, nullptr, "exhaustive");
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result->evaluations.size(), 12u);
}

TEST_F(SessionTest, AnEvaluationUnderWayIsKeptWhenAnotherDeviceDies) {
  ScriptedEvaluator dying, healthy;
  options_.default_config.reset();
  {
    Journal kept = journal().value();
    auto strategy = make_strategy("exhaustive", {space_, 5, 12}).value();
    dying.stop_after = 0;
    EXPECT_FALSE(
        run_session(space_, *strategy, {&healthy, &dying}, &kept, options_, clock_).is_ok());
  }
  EXPECT_EQ(static_cast<int>(journal()->records().size()), healthy.calls);
}

// Remembers how much of the budget each result used up.
class Listener : public Strategy {
 public:
  explicit Listener(const Space& space) : inner_(make_exhaustive({space})) {}
  std::string_view name() const override { return inner_->name(); }
  std::optional<std::size_t> ask() override { return inner_->ask(); }
  void tell(std::size_t index, const Outcome& outcome) override {
    used_ms.push_back(std::lround(1e3 * outcome.used_s()));
    left_ms.push_back(std::lround(1e3 * outcome.left_s.value_or(-1)));
    inner_->tell(index, outcome);
  }
  std::vector<long> used_ms, left_ms;

 private:
  std::unique_ptr<Strategy> inner_;
};

// Three are built at once for three seconds and then measured, each for 0.1 s.
TEST_F(SessionTest, TheStrategyLearnsHowMuchOfTheBudgetPassed) {
  options_.budget = {0, 60};
  options_.spent_s = 5;
  ScriptedEvaluator evaluator;
  const std::vector<long> used = {3100, 3100, 100, 100};  // the default has no company
  std::vector<long> left;
  {
    auto journal = this->journal().value();
    Listener strategy(space_);
    TuningSession session(space_, strategy, &journal, options_, {true, 3}, clock_);
    for (int batch = 0; batch < 2; ++batch) {
      std::vector<TuningSession::Request> out;
      while (auto request = session.next().value()) out.push_back(*request);
      clock_.now_ns += 3'000'000'000;
      for (const TuningSession::Request& request : out) {
        clock_.now_ns += 100'000'000;
        Evaluation made = evaluator.evaluate(request.config, request.policy).value();
        made.cost_s = 3.1;
        ASSERT_TRUE(session.report(request, made).is_ok());
      }
    }
    EXPECT_EQ(strategy.used_ms, used);
    left = strategy.left_ms;
  }
  options_.spent_s = 1;  // the next start is shorter
  auto journal = this->journal().value();
  Listener strategy(space_);
  TuningSession session(space_, strategy, &journal, options_, {true, 3}, clock_);
  static_cast<void>(session.next());
  EXPECT_EQ(strategy.used_ms, used);  // of the journal as well
  EXPECT_EQ(strategy.left_ms, left);
}

// Of 36 s, 12 s are over before the session, and the finals will measure each finalist five times.
TEST_F(SessionTest, TheStrategyLearnsWhatIsLeftForTheSearch) {
  options_.budget = {0, 36};
  options_.spent_s = 12;
  SlowEvaluator evaluator(clock_);
  Listener strategy(space_);
  ASSERT_TRUE(run_session(space_, strategy, evaluator, nullptr, options_, clock_).is_ok());
  ASSERT_GT(strategy.left_ms.size(), 4u);
  EXPECT_EQ(strategy.left_ms[0], 36'000 - 12'000 - 100 - 5 * 80);
  EXPECT_EQ(strategy.left_ms[1], 36'000 - 12'000 - 200 - 2 * 5 * 80);
  // What the start took does not change what the finals will: the next start may be shorter.
  options_.budget = {0, 14};
  Listener short_of_time(space_);
  ASSERT_TRUE(run_session(space_, short_of_time, evaluator, nullptr, options_, clock_).is_ok());
  ASSERT_GT(short_of_time.left_ms.size(), 2u);
  EXPECT_EQ(short_of_time.left_ms[2], 14'000 - 12'000 - 300 - 3 * 5 * 80);
  // A budget of evaluations leaves no seconds.
  options_.budget = {12, 0};
  Listener counting(space_);
  ASSERT_TRUE(run_session(space_, counting, evaluator, nullptr, options_, clock_).is_ok());
  EXPECT_EQ(counting.left_ms.front(), -1000);
}

TEST_F(SessionTest, CanBeDrivenStepByStep) {
  auto strategy = make_strategy("local", {space_, 5, 12}).value();
  ScriptedEvaluator evaluator;
  TuningSession session(space_, *strategy, nullptr, options_, {}, clock_);
  int finals = 0;
  while (true) {
    const auto request = session.next();
    ASSERT_TRUE(request.is_ok());
    if (!*request) break;
    EXPECT_FALSE(session.next()->has_value());  // one is out, and it is known no further ahead
    finals += (*request)->finals ? 1 : 0;
    ASSERT_TRUE(
        session
            .report(**request, evaluator.evaluate((*request)->config, (*request)->policy).value())
            .is_ok());
    EXPECT_FALSE(session.report(**request, Evaluation{}).is_ok());  // twice
    if (session.evaluations().size() == 5) {
      EXPECT_EQ(session.result()->end, SessionResult::End::kStopped);
    }
  }
  EXPECT_GT(finals, 0);
  const Result<SessionResult> result = session.result();
  EXPECT_EQ(result->end, SessionResult::End::kSpace);  // one of the twelve does not compile
  EXPECT_EQ(result->evaluations[result->verdict->best().evaluation].config.text(), "a=2 b=0");
}

// The promise: after a kill, any remaining part of the journal is enough to go on. The session
// repeats nothing that is in it, and ends with the result of an undisturbed session.
TEST_F(SessionTest, ResumesFromAJournalCutAtEveryByte) {
  ScriptedEvaluator undisturbed;
  options_.budget.evaluations = 6;  // each cut costs some syncs of a real disk
  std::string text;
  {
    Journal kept = journal().value();
    ASSERT_TRUE(run(undisturbed, &kept).is_ok());
    text = read_file(path()).value();
  }
  const std::vector<std::string> order(undisturbed.asked.begin(), undisturbed.asked.begin() + 7);
  options_.finals.rounds = 0;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text.substr(0, cut);
    Result<Journal> again = journal();
    ASSERT_TRUE(again.is_ok()) << "cut at " << cut << ": " << again.status().message();
    const std::size_t kept = again->records().size();
    ScriptedEvaluator evaluator;
    const Result<SessionResult> result = run(evaluator, &*again);
    ASSERT_TRUE(result.is_ok());
    ASSERT_EQ(result->evaluations.size(), 7u) << "cut at " << cut;  // one does not compile
    ASSERT_EQ(result->resumed, kept);
    ASSERT_EQ(evaluator.asked,
              std::vector<std::string>(order.begin() + static_cast<long>(kept), order.end()))
        << "cut at " << cut;
  }
}

TEST_F(SessionTest, AJournalSurvivesAnEvaluatorThatDies) {
  ScriptedEvaluator dying;
  dying.stop_after = 5;
  {
    Journal kept = journal().value();
    EXPECT_FALSE(run(dying, &kept).is_ok());
  }
  ScriptedEvaluator evaluator;
  options_.finals.rounds = 0;
  Journal again = journal().value();
  const Result<SessionResult> result = run(evaluator, &again);
  EXPECT_EQ(result->resumed, 5u);
  EXPECT_EQ(evaluator.calls, 7);
}

TEST_F(SessionTest, AJournalDamagedInTheMiddleIsRefusedAndOneIsHeldOnce) {
  {
    Journal kept = journal().value();
    ScriptedEvaluator evaluator;
    ASSERT_TRUE(run(evaluator, &kept).is_ok());
    EXPECT_EQ(kept.finished(), "space");  // one of the twelve does not compile
    const Result<Journal> second = journal();
    ASSERT_FALSE(second.is_ok());
    EXPECT_EQ(second.status().code(), Code::kUnavailable);
  }
  std::string text = read_file(path()).value();
  text[text.size() / 2] = '\x01';
  ASSERT_TRUE(write_atomic(path(), text).is_ok());
  const Result<Journal> damaged = journal();
  ASSERT_FALSE(damaged.is_ok());
  EXPECT_EQ(damaged.status().code(), Code::kCorrupt);
  EXPECT_NE(damaged.status().message().find("--fresh"), std::string::npos);
}

TEST(Finals, TiesGoToTheDefaultThenToSpaceOrderAndFlakyOnesAreOut) {
  PublishedSpace made{"made"};
  made.knob("a", {0, 1, 2, 3}).knob("b", {0});
  const Space space = build_space(made.parameters, made.constraints, Scope{}).value();
  ScriptedEvaluator evaluator;
  evaluator.time = [](const Config& config) {
    const std::int64_t a = std::get<std::int64_t>(*config.find("a"));
    return a == 0 ? -1.0 : 1.0 + 0.0001 * static_cast<double>(3 - a);
  };
  std::vector<Evaluation> evaluations;
  for (std::size_t i : {3, 2, 1, 0}) {
    Evaluation evaluation;
    evaluation.config = space.config(i);
    evaluation.time_ms = 1;
    evaluation.samples.assign(7, {1, 0});
    evaluations.push_back(evaluation);
  }
  const auto hold = [&](std::optional<std::size_t> fallback) {
    return **hold_finals(space, evaluations, fallback, evaluator, {}, {}, [] { return true; });
  };
  Verdicts verdict = hold(std::nullopt);
  EXPECT_EQ(evaluations[verdict.best().evaluation].config.text(), "a=1 b=0");
  EXPECT_EQ(verdict.ties.size(), 2u);
  EXPECT_EQ(verdict.finalists.back().problem, "no such register");
  verdict = hold(1);
  EXPECT_EQ(evaluations[verdict.best().evaluation].config.text(), "a=2 b=0");
}

TEST(Finals, OneDisturbedSampleIsNoDefeatAndWhoIsBeatenDropsOut) {
  PublishedSpace made{"made"};
  made.knob("a", {0, 1, 2, 3, 4, 5, 6, 7}).knob("b", {0});
  const Space space = build_space(made.parameters, made.constraints, Scope{}).value();
  ScriptedEvaluator evaluator;
  evaluator.time = [](const Config& config) {
    return std::get<std::int64_t>(*config.find("a")) == 7 ? 0.8 : 1.05;
  };
  std::vector<Evaluation> evaluations;
  for (std::size_t i = 0; i < 8; ++i) {
    Evaluation evaluation;
    evaluation.config = space.config(i);
    evaluation.raced_out = i == 7;
    evaluation.time_ms = i == 7 ? 1.3 : 1;  // the fastest, disturbed when it was looked at
    evaluation.samples.assign(i == 7 ? 1 : 7, {evaluation.time_ms, 0});
    evaluations.push_back(evaluation);
  }
  const auto hold = [&](const FinalsOptions& options) {
    return **hold_finals(space, evaluations, std::nullopt, evaluator, {}, options,
                         [] { return true; });
  };
  const Verdicts verdict = hold({});
  EXPECT_EQ(evaluations[verdict.best().evaluation].config.text(), "a=7 b=0");
  EXPECT_FALSE(verdict.best().beaten);
  EXPECT_TRUE(verdict.finalists.back().beaten);
  EXPECT_LT(verdict.finalists.back().samples.size(), verdict.best().samples.size());
  FinalsOptions none;
  none.second_chances = 0;
  EXPECT_NE(evaluations[hold(none).best().evaluation].config.text(), "a=7 b=0");
}

// Power by config: the fastest, a=2, draws the most.
class MeteredEvaluator : public ScriptedEvaluator {
 public:
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    Result<Evaluation> made = ScriptedEvaluator::evaluate(config, policy);
    if (!made.is_ok() || !made->ok()) return made;
    made->raced_out = policy.give_up_ms > 0 && made->time_ms > policy.give_up_ms;
    if (made->raced_out) return made;
    const std::int64_t a = std::get<std::int64_t>(*config.find("a"));
    made->power_w = a == 2 ? 700 : 200;
    made->energy_mj = made->power_w * made->time_ms;
    return made;
  }
};

TEST_F(SessionTest, AnotherObjectiveHasAnotherWinner) {
  const auto winner = [&](Objective objective) {
    MeteredEvaluator evaluator;
    options_.objective = objective;
    const SessionResult result = *run(evaluator, nullptr, "exhaustive");
    const Finalist& best = result.verdict->best();
    EXPECT_EQ(best.value, objective == Objective::kTime     ? best.time_ms
                          : objective == Objective::kEnergy ? best.energy_mj
                                                            : best.energy_mj * best.time_ms);
    return result.evaluations[best.evaluation].config.text();
  };
  EXPECT_EQ(winner(Objective::kTime), "a=2 b=0");
  EXPECT_EQ(winner(Objective::kEnergy), "a=1 b=0");  // 2 ms of 200 W, not 1 ms of 700 W
  EXPECT_EQ(winner(Objective::kEdp), "a=2 b=0");
}

TEST_F(SessionTest, AnEnergySessionLetsSlowerConfigsRun) {
  MeteredEvaluator evaluator;
  options_.objective = Objective::kEnergy;
  ASSERT_TRUE(run(evaluator, nullptr, "exhaustive").is_ok());
  double most = 0;
  for (const double give_up : evaluator.give_ups) most = std::max(most, give_up);
  EXPECT_GE(most, 4.0);
}

TEST_F(SessionTest, AConfigThatBreaksALimitOfTheSessionCannotWin) {
  MeteredEvaluator evaluator;
  options_.accept = [](const Evaluation& made) {
    return made.power_w < 500 ? Status::ok()
                              : error(Code::kInvalid, "limit 'power_w < 500' is not met");
  };
  const SessionResult result = *run(evaluator, nullptr, "exhaustive");
  EXPECT_EQ(result.evaluations[result.verdict->best().evaluation].config.text(), "a=1 b=0");
  std::size_t refused = 0;
  for (const Evaluation& evaluation : result.evaluations)
    if (evaluation.message.find("power_w < 500") != std::string::npos) {
      ++refused;
      EXPECT_EQ(evaluation.status, EvaluationStatus::kInvalid);
    }
  EXPECT_EQ(refused, 2u);  // the third was out of the race, and its power is not known
}

TEST(ParseBudget, TakesEvaluationsAndTime) {
  EXPECT_EQ(parse_budget("200")->evaluations, 200u);
  EXPECT_EQ(parse_budget("2m")->seconds, 120);
  EXPECT_EQ(parse_budget("10, 60s")->text(), "10,60s");
  for (const char* wrong : {"", "0", "-3", "fast", "10,", "10,20", "9s,10,8s", "60"}) {
    const bool fine = parse_budget(wrong).is_ok();
    EXPECT_EQ(fine, std::string(wrong) == "60") << wrong;
  }
  EXPECT_EQ(parse_budget("4s")->reference_s(), 10);
  EXPECT_EQ(parse_budget("20s")->reference_s(), 20);
  EXPECT_EQ(parse_budget("20")->reference_s(), 0);
  EXPECT_TRUE(parse_budget("300")->exceeds(*parse_budget("200")));
  EXPECT_FALSE(parse_budget("200")->exceeds(*parse_budget("200")));
}

}  // namespace
}  // namespace purlin::tune
