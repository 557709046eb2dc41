// SPDX-License-Identifier: Apache-2.0
#include "guard/check/winners.h"

#include "backlog/file.h"
#include "base/files.h"

#include <gtest/gtest.h>

#include <functional>

namespace purlin::guard {
namespace {

constexpr char kSpec[] = R"(schema = "purlin.spec/1"
name = "k"
op = "k"
[problem]
N = 64
[kernel]
entry = "k"
[kernel.opencl]
file = "k.cl"
[parameters]
BM = [16, 32, 64]
[launch]
grid = ["N"]
block = ["BM"]
[[arguments]]
name = "y"
role = "output"
dtype = "f32"
shape = ["N"]
[reference]
entry = "k"
[reference.opencl]
file = "k.cl"
[reference.launch]
grid = ["N"]
block = [1]
)";

// Simulated processes: each config has a time, with a little noise. BM <= 0 fails.
class FakeWinnerRunner : public Runner {
 public:
  std::vector<Result<ProcessReading>> run(const std::vector<Target>& targets, bool) override {
    std::vector<Result<ProcessReading>> readings;
    for (const Target& target : targets) {
      const double time = time_of(std::get<std::int64_t>(*target.config.find("BM")));
      if (time <= 0) {
        readings.emplace_back(error(Code::kFailed, "wrong_result: element 5"));
        continue;
      }
      ProcessReading reading;
      reading.reading.time_ns = time * random.uniform(0.995, 1.005);
      reading.iterations = 20;
      readings.emplace_back(reading);
    }
    return readings;
  }
  std::function<double(std::int64_t)> time_of;
  Random random{3};
};

class Winners : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("guard-winners").value();
    ASSERT_TRUE(write_atomic(folder_ + "/k.cl", "__kernel void k() {}\n").is_ok());
    ASSERT_TRUE(write_atomic(folder_ + "/k.toml", kSpec).is_ok());
    spec_ = {load_spec(folder_ + "/k.toml").value()};
    device_.backend = "opencl";
    device_.name = "Toy";
    device_.arch = "toy";
    device_.toolkit = "1";
    device_.driver = "1";
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(folder_).is_ok()); }

  cache::Store store() { return cache::Store::open(folder_ + "/cache").value(); }
  // The winner BM=64 over the runner-up BM=32 and the default BM=16.
  void put(std::int64_t n = 64) {
    ProblemShape problem;
    problem.set("N", n);
    cache::Entry entry = cache::new_entry(spec_[0], problem, device_, false).value();
    entry.config.set("BM", std::int64_t{64});
    entry.runner_up.set("BM", std::int64_t{32});
    entry.time_ms = 1;
    entry.verified = true;
    cache::Store opened = store();
    ASSERT_TRUE(opened.put(entry).is_ok());
  }
  WinnerSearch find(const WinnerFilter& filter = {}) {
    return find_winners(store(), spec_, device_, backlog::open_tasks(folder_ + "/cache").value(),
                        filter);
  }
  // The recorded verdict on the only winner.
  WinnerResult check(double bm16, double bm32, double bm64) {
    runner_.time_of = [=](std::int64_t bm) { return bm == 16 ? bm16 : bm == 32 ? bm32 : bm64; };
    const WinnerSearch search = find();
    EXPECT_EQ(search.winners.size(), 1u);
    const WinnerResult result =
        check_winners(search.winners, {runner_, device_, Design{}, {}, random_, clock_})
            .value()
            .at(0);
    cache::Store opened = store();
    EXPECT_TRUE(record_winner(opened, search.winners[0], result).is_ok());
    return result;
  }

  std::string folder_;
  std::vector<KernelSpec> spec_;
  DeviceInfo device_;
  FakeWinnerRunner runner_;
  Random random_{11};
  FakeClock clock_;
};

TEST_F(Winners, AreValidatedWhileNothingIsFaster) {
  put();
  const WinnerResult result = check(2e6, 1.2e6, 1e6);
  EXPECT_EQ(result.verdict, WinnerVerdict::kValidated);
  EXPECT_NEAR(result.winner_ns, 1e6, 1e4);
  EXPECT_NEAR(result.runner_up_ns, 1.2e6, 1e4);
  EXPECT_EQ(store().current().at(0).state, cache::EntryState::kValidated);
}

TEST_F(Winners, GiveWayToARunnerUpThatIsFaster) {
  put();
  EXPECT_EQ(check(2e6, 0.9e6, 1e6).verdict, WinnerVerdict::kReplaced);
  const cache::Entry entry = store().list().at(0);
  EXPECT_EQ(entry.config.text(), "BM=32");
  EXPECT_EQ(entry.runner_up.text(), "BM=64");
  EXPECT_NEAR(entry.time_ms, 0.9, 0.01);
}

TEST_F(Winners, AreWithdrawnWhenTheDefaultIsFasterOrTheyFail) {
  put();
  EXPECT_EQ(check(0.8e6, 0.9e6, 1e6).verdict, WinnerVerdict::kDemoted);
  EXPECT_TRUE(store().list().empty());
  EXPECT_EQ(backlog::open_tasks(folder_ + "/cache")->at(0).key.kind, "retune");
  put(128);
  const WinnerResult wrong = check(2e6, 3e6, 0);
  EXPECT_EQ(wrong.verdict, WinnerVerdict::kQuarantined);
  EXPECT_NE(wrong.reason.find("element 5"), std::string::npos);
}

TEST_F(Winners, OfAnotherDriverAreNotWithdrawnWhereTheyWereMeasured) {
  put();
  device_.driver = "2";
  EXPECT_EQ(check(0.8e6, 0.9e6, 1e6).verdict, WinnerVerdict::kDemoted);
  ASSERT_EQ(store().list().size(), 1u);
  EXPECT_TRUE(store().current().at(0).statuses.empty());
  EXPECT_EQ(backlog::open_tasks(folder_ + "/cache")->at(0).key.driver, "2");
}

TEST_F(Winners, AreFoundHottestFirst) {
  put(64);
  put(128);
  backlog::Task task;
  task.key.kind = "validate";
  task.key.kernel = "k";
  task.key.shape = "N=128";
  ASSERT_TRUE(backlog::queue(folder_ + "/cache", {task}).is_ok());
  const WinnerSearch search = find({.limit = 1});
  ASSERT_EQ(search.winners.size(), 1u);
  EXPECT_EQ(search.winners[0].text(), "k N=128");
  EXPECT_TRUE(search.winners[0].hot);
  EXPECT_TRUE(find({.changed_only = true}).winners.empty());
  device_.toolkit = "2";
  EXPECT_EQ(find({.changed_only = true}).winners.size(), 2u);
  device_.arch = "other";
  EXPECT_EQ(find().elsewhere, 2u);
}

TEST_F(Winners, OfAnotherSourceAreNamed) {
  put();
  ASSERT_TRUE(write_atomic(folder_ + "/k.cl", "__kernel void k() { }\n").is_ok());
  spec_ = {load_spec(folder_ + "/k.toml").value()};
  const WinnerSearch search = find();
  EXPECT_TRUE(search.winners.empty());
  ASSERT_EQ(search.skipped.size(), 1u);
  EXPECT_NE(search.skipped[0].find("changed since"), std::string::npos);
}

}  // namespace
}  // namespace purlin::guard
