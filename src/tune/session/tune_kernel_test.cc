// SPDX-License-Identifier: Apache-2.0
// tune_kernel over a scripted device: winner, entry, confirmation, limits, journal and cache.
#include "tune/session/tune_kernel.h"

#include "base/files.h"
#include "cache/store/store.h"
#include "tune/session/entry_of.h"
#include "tune/session/store_winner.h"
#include "tune/space/build.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::tune {
namespace {

// 1 ms + (A - 2)^2, and a scale for the processes of the confirmation.
class ParabolaDevice : public Evaluator {
 public:
  explicit ParabolaDevice(double best_ms = 1) : best_ms_(best_ms) {
    info_.backend = "cuda";
    info_.name = "Scripted";
    info_.arch = "sm_90";
    info_.toolkit = "13.0";
  }
  const DeviceInfo& device() const override { return info_; }
  bool executes() const override { return true; }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy&) override {
    ++calls;
    if (sleep_ns > 0) system_clock().sleep_ns(sleep_ns);
    const std::int64_t a = std::get<std::int64_t>(*config.find("A"));
    Evaluation made;
    made.config = config;
    made.time_ms = a == 2 ? best_ms_ : 1 + static_cast<double>((a - 2) * (a - 2));
    made.samples.assign(7, {made.time_ms, 0});
    made.cost_s = 0.1;
    return made;
  }
  int calls = 0;
  std::int64_t sleep_ns = 0;

 private:
  DeviceInfo info_;
  double best_ms_;
};

class TuneKernelTest : public testing::Test {
 protected:
  TuneKernelTest() : log_(Level::kSilent) {
    if (is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    folder_ = make_temporary_directory("tune_kernel").value();
    KernelSpec spec;
    spec.name = spec.op = "parabola";
    spec.file = folder_ + "/parabola.toml";
    spec.parameters.push_back(
        {"A",
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{5}},
         Value{std::int64_t{0}}});
    subject_.problem.set("N", 1000);
    spec.problem = subject_.problem;
    subject_.name = spec.name;
    subject_.space = build_space(spec, subject_.problem, device_.device()).value();
    subject_.default_config = default_config(spec);
    subject_.device = device_.device();
    subject_.evaluators = {&device_};
    subject_.spec = std::move(spec);
    request_.strategy = "exhaustive";
    request_.budget.evaluations = 100;
    request_.finals = 2;
    request_.journal.root = folder_ + "/sessions";
    request_.cache.directory = folder_ + "/cache";
  }
  ~TuneKernelTest() override { static_cast<void>(remove_tree(folder_)); }

  TuneOutcome run() {
    Result<TuneOutcome> made = tune_kernel(subject_, request_, log_);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }
  std::vector<cache::Entry> stored() const {
    return cache::Store::open(request_.cache.directory).value().list();
  }

  Log log_;
  ParabolaDevice device_;
  std::string folder_;
  Subject subject_;
  TuneRequest request_;
};

TEST_F(TuneKernelTest, StoresTheWinnerWithDefaultAndRunnerUp) {
  const TuneOutcome made = run();
  EXPECT_TRUE(made.status().is_ok()) << made.status().message();
  ASSERT_TRUE(made.entry.has_value());
  const std::vector<cache::Entry> entries = stored();
  ASSERT_EQ(entries.size(), 1u);
  const cache::Entry& entry = entries.front();
  EXPECT_EQ(entry.config.text(), "A=2");
  EXPECT_DOUBLE_EQ(entry.time_ms, 1);
  EXPECT_EQ(entry.default_config.text(), "A=0");
  EXPECT_DOUBLE_EQ(entry.default_time_ms, 5);
  EXPECT_DOUBLE_EQ(entry.runner_up_ms, 2);
  EXPECT_TRUE(entry.runner_up.text() == "A=1" || entry.runner_up.text() == "A=3");
  EXPECT_EQ(entry.evaluations, 5);
  EXPECT_TRUE(entry.verified);
  EXPECT_EQ(entry.strategy, "exhaustive");
}

// The time of the entry that is in use may be one of a machine that did nothing else.
TEST_F(TuneKernelTest, AnEntryWhoseConfigLostInTheFinalsGivesWayToTheWinner) {
  cache::Entry in_use = *run().entry;
  ASSERT_TRUE(remove_tree(request_.cache.directory).is_ok());
  in_use.config.set("A", std::int64_t{0});
  in_use.time_ms = 0.5;
  cache::Store store = cache::Store::open(request_.cache.directory).value();
  ASSERT_TRUE(store.put(in_use).is_ok());
  EXPECT_EQ(run().entry->config.text(), "A=2");
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_EQ(stored().front().config.text(), "A=2");
}

// What has a better time than the winner is withdrawn only where the finals judged it.
TEST_F(TuneKernelTest, OnlyWhatLostInTheFinalsGivesWay) {
  cache::Entry lost = *run().entry;
  ASSERT_TRUE(remove_tree(request_.cache.directory).is_ok());
  cache::Entry of_the_winner = lost;
  lost.config.set("A", std::int64_t{0});
  lost.time_ms = 0.4;
  of_the_winner.time_ms = 0.5;
  cache::Store store = cache::Store::open(request_.cache.directory).value();
  ASSERT_TRUE(store.put(of_the_winner).is_ok());
  const std::string record = store.put(lost).value().record;
  EXPECT_TRUE(run().entry.has_value());
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_EQ(stored().front().config.text(), "A=2");
  EXPECT_DOUBLE_EQ(stored().front().time_ms, 0.5);
  store = cache::Store::open(request_.cache.directory).value();
  EXPECT_EQ(store.record_set().statuses(), 1u);
  EXPECT_EQ(store.statuses(cache::Id128::parse(record)).size(), 1u);
}

// A winner that was withdrawn before comes into use by --replace only: nothing gives way to it.
TEST_F(TuneKernelTest, NothingGivesWayToAWithdrawnWinner) {
  const TuneOutcome made = run();
  cache::Store store = cache::Store::open(request_.cache.directory).value();
  const std::string record = store.put(*made.entry).value().record;
  ASSERT_TRUE(
      store.set_status(cache::new_status(record, cache::EntryState::kDemoted, "wrong")).is_ok());
  cache::Entry lost = *made.entry;
  lost.config.set("A", std::int64_t{0});
  ASSERT_TRUE(store.put(lost).is_ok());
  const auto again = store_winner(store, *made.entry, made.session);
  ASSERT_TRUE(again.is_ok());
  EXPECT_TRUE(again->displaced.empty());
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_EQ(stored().front().config.text(), "A=0");
}

TEST_F(TuneKernelTest, AnEntryThatTheFinalsDoNotJudgeStaysInUse) {
  subject_.spec->bucket["N"] = "pow2";
  cache::Entry in_use = *run().entry;
  in_use.time_ms = 0.5;  // of the winner's own config
  cache::Store store = cache::Store::open(request_.cache.directory).value();
  ASSERT_TRUE(store.put(in_use).is_ok());
  EXPECT_TRUE(run().entry.has_value());
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_DOUBLE_EQ(stored().front().time_ms, 0.5);
  in_use.problem.set("N", 1001);  // a larger problem of the same key
  in_use.config.set("A", std::int64_t{0});
  ASSERT_TRUE(store.put(in_use).is_ok());
  EXPECT_TRUE(run().entry.has_value());
  EXPECT_EQ(stored().front().config.text(), "A=0");
  request_.finals = 0;  // the search measures one after the other
  ASSERT_TRUE(remove_tree(request_.cache.directory).is_ok());
  in_use.problem = subject_.problem;
  store = cache::Store::open(request_.cache.directory).value();
  ASSERT_TRUE(store.put(in_use).is_ok());
  EXPECT_TRUE(run().entry.has_value());
  EXPECT_EQ(stored().front().config.text(), "A=0");
}

// A budget in seconds is that of all that was done.
TEST_F(TuneKernelTest, AConfirmationThatDoesNotHoldCountsAgainstTheBudget) {
  Config slow;
  slow.set("A", std::int64_t{5});
  request_.known = slow;
  device_.sleep_ns = 20'000'000;
  std::vector<double> begun_s;  // the confirmation, then the search
  request_.on_progress = [&](const SessionState& state) {
    if (state.last == nullptr) begun_s.push_back(state.elapsed_s);
  };
  EXPECT_EQ(run().entry->config.text(), "A=2");
  ASSERT_EQ(begun_s.size(), 2u);
  EXPECT_GE(begun_s[1], 0.04);
}

TEST_F(TuneKernelTest, AFinishedSessionStartsAgainAndAnotherSourceIsAnotherSession) {
  const TuneOutcome first = run();
  EXPECT_EQ(first.session.resumed, 0u);
  const TuneOutcome again = run();
  EXPECT_EQ(again.session_directory, first.session_directory);
  EXPECT_EQ(again.session.resumed, 0u);
  request_.journal.files = {"another text"};
  EXPECT_NE(run().session_directory, first.session_directory);
}

TEST_F(TuneKernelTest, AnInterruptedSessionContinues) {
  std::atomic<bool> stop{false};
  request_.opened.stop = &stop;
  request_.on_progress = [&](const SessionState& state) { stop = state.done >= 2; };
  const TuneOutcome first = run();
  EXPECT_TRUE(first.stopped());
  EXPECT_FALSE(first.entry.has_value()) << "an interrupted session stores nothing";
  stop = false;
  request_.on_progress = nullptr;
  const TuneOutcome rest = run();
  EXPECT_EQ(rest.session.resumed, 2u);
  EXPECT_TRUE(rest.entry.has_value());
}

// The search is over, so all its evaluations are there; without the finals, nothing is confirmed.
TEST_F(TuneKernelTest, ASessionInterruptedInItsFinalsStoresNothing) {
  std::atomic<bool> stop{false};
  request_.opened.stop = &stop;
  bool in_finals = false;
  request_.on_progress = [&](const SessionState& state) {
    in_finals = in_finals || state.finals_round > 0;
    stop = in_finals;
  };
  const TuneOutcome first = run();
  ASSERT_TRUE(in_finals);
  EXPECT_TRUE(first.stopped());
  EXPECT_FALSE(first.entry.has_value());
  stop = false;
  request_.on_progress = nullptr;
  const TuneOutcome rest = run();
  EXPECT_EQ(rest.session.resumed, first.session.evaluations.size());
  EXPECT_TRUE(rest.entry.has_value());
}

TEST_F(TuneKernelTest, StoresNothingWhenItMayNotOrWhenTimesDoNotCompare) {
  request_.cache.store = false;
  EXPECT_FALSE(run().entry.has_value());
  request_.cache.store = true;
  request_.policy.inputs = measure::Policy::Inputs::kRotate;
  const TuneOutcome made = run();
  EXPECT_NE(made.not_stored.find("rotate"), std::string::npos) << made.not_stored;
  EXPECT_FALSE(made.entry.has_value());
  EXPECT_TRUE(stored().empty());
}

TEST_F(TuneKernelTest, AParameterThatProgramsCannotReceiveIsKnownBeforeTheWork) {
  subject_.spec->parameters.push_back({"MODE", {std::string("a b")}, std::nullopt});
  subject_.space = build_space(*subject_.spec, subject_.problem, device_.device()).value();
  subject_.default_config = default_config(*subject_.spec);
  const TuneOutcome made = run();
  EXPECT_TRUE(made.worked());
  EXPECT_NE(made.not_stored.find("MODE"), std::string::npos) << made.not_stored;
  EXPECT_TRUE(stored().empty());
}

TEST_F(TuneKernelTest, AWinnerThatFailsItsConfirmationGivesItsPlaceToTheDefault) {
  int ended = 0, started = 0;
  request_.on_session_end = [&] { ++ended; };
  subject_.fresh = [&]() -> Result<std::unique_ptr<Evaluator>> {
    EXPECT_EQ(ended, 1) << "the confirmation follows the session";
    ++started;
    return std::unique_ptr<Evaluator>(std::make_unique<ParabolaDevice>(6));
  };
  subject_.default_config->set("A", std::int64_t{0});
  const TuneOutcome made = run();
  ASSERT_EQ(made.confirmations.size(), 2u) << "the winner, then the next";
  EXPECT_FALSE(made.confirmations[0].confirmation.holds);
  EXPECT_EQ(made.confirmations[0].config.text(), "A=2");
  EXPECT_TRUE(made.confirmations[1].confirmation.holds);
  EXPECT_GT(started, 1);
  ASSERT_TRUE(made.entry.has_value());
  EXPECT_EQ(made.entry->config, made.confirmations[1].config);
  EXPECT_EQ(to_json(made.confirmations).size(), 2u);
}

TEST_F(TuneKernelTest, WithoutAWorkingConfigTheStatusSaysWhy) {
  subject_.limits.push_back(parse_limit(*subject_.spec, "time_ms < 0.5").value());
  const TuneOutcome made = run();
  EXPECT_FALSE(made.worked());
  EXPECT_FALSE(made.status().is_ok());
  EXPECT_FALSE(made.entry.has_value());
  EXPECT_EQ(entry_of(made.session, {*subject_.spec, subject_.problem, subject_.device}, "x", true)
                .status()
                .code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace purlin::tune
