// SPDX-License-Identifier: Apache-2.0
#include "guard/history/history.h"

#include "base/files.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <thread>

namespace purlin::guard {
namespace {

class HistoryTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_directory("purlin-history"); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string path(std::string_view name) const { return join_path(folder_, name); }
  std::string folder_;
};

HistoryRun run(int number, double ns, const std::string& driver = "580.1") {
  HistoryRun run;
  run.suite = "gate";
  run.environment.build = fmt::format("build{:03}", number);
  run.environment.recorded_at = fmt::format("2026-11-20T00:{:02}:{:02}Z", number / 60, number % 60);
  DeviceInfo device;
  device.name = "NVIDIA H200";
  device.driver = driver;
  run.environment.devices = {device};
  run.items = {{{"gemm", "M=512", "cached"}, {ns, ns * 1.01, ns * 0.99}},
               {{"axpy", "", ""}, {5000}}};
  return run;
}

TEST_F(HistoryTest, FindsTheBuildAtWhichALevelMovedAndWhatMovedWithIt) {
  Random random(1);
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(
        append_history(path("h.jsonl"), run(i, (i < 25 ? 1000 : 1080) * random.uniform(0.99, 1.01),
                                            i < 25 ? "570.8" : "580.1"))
            .is_ok());
  const Result<History> history = load_history({path("h.jsonl")});
  ASSERT_TRUE(history.is_ok()) << history.status().message();
  EXPECT_EQ(history->runs.size(), 40u);
  const std::vector<Series> series = analyse_history(*history, {});
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].item.kernel, "axpy");
  EXPECT_TRUE(series[0].annotations.empty());
  ASSERT_EQ(series[1].annotations.size(), 1u);
  const Annotation& annotation = series[1].annotations[0];
  EXPECT_EQ(annotation.build_before, "build024");
  EXPECT_EQ(annotation.build_after, "build025");
  EXPECT_EQ(annotation.environment_change, "driver 570.8 -> 580.1");
  EXPECT_NEAR(annotation.change.ratio, 1.08, 0.01);
  EXPECT_TRUE(annotation.stands);
  EXPECT_NE(render_history(*history, series, Terminal(false, false, false, 100))
                .find("between build024 and build025"),
            std::string::npos);
  const Json document = history_document(*history, series);
  EXPECT_EQ(document["series"].items()[1]["annotations"].items()[0]["build_after"].as_string(),
            "build025");
  HistoryOptions filtered;
  filtered.filter = "gemm M=512";
  EXPECT_EQ(analyse_history(*history, filtered).size(), 1u);
}

TEST_F(HistoryTest, ATornLineIsSkippedAndCutOffByTheNextWriter) {
  ASSERT_TRUE(append_history(path("h.jsonl"), run(0, 1000)).is_ok());
  const std::string whole = *read_file(path("h.jsonl"));
  ASSERT_TRUE(write_atomic(path("h.jsonl"), whole + whole.substr(0, whole.size() / 2)).is_ok());
  const Result<History> torn = load_history({path("h.jsonl")});
  ASSERT_TRUE(torn.is_ok());
  EXPECT_EQ(torn->runs.size(), 1u);
  ASSERT_EQ(torn->notes.size(), 1u);
  EXPECT_NE(torn->notes[0].find("h.jsonl:2 is torn"), std::string::npos);
  ASSERT_TRUE(append_history(path("h.jsonl"), run(1, 1000)).is_ok());
  const Result<History> history = load_history({path("h.jsonl")});
  ASSERT_TRUE(history.is_ok());
  EXPECT_EQ(history->runs.size(), 2u);
  EXPECT_TRUE(history->notes.empty());
}

TEST_F(HistoryTest, WritersOfSeveralThreadsLoseNothing) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(append_history(path("h.jsonl"), run(writer * 10 + i, 1000)).is_ok());
    });
  for (std::thread& writer : writers) writer.join();
  const Result<History> history = load_history({folder_});
  ASSERT_TRUE(history.is_ok());
  EXPECT_EQ(history->runs.size(), 40u);
  EXPECT_EQ(history->runs[7].environment.build, "build007");  // by time, not by arrival
}

TEST_F(HistoryTest, ForeignFilesAreNamed) {
  EXPECT_EQ(load_history({path("none.jsonl")}).status().code(), Code::kNotFound);
  ASSERT_TRUE(write_atomic(path("x.json"), "{\"schema\": \"purlin.report/1\"}").is_ok());
  EXPECT_NE(load_history({path("x.json")}).status().message().find("is a 'purlin.report/1'"),
            std::string::npos);
  ASSERT_TRUE(write_atomic(path("x.json"), "hello").is_ok());
  EXPECT_EQ(load_history({path("x.json")}).status().code(), Code::kInvalid);
  ASSERT_TRUE(write_atomic(path("x.json"), "{\"schema\": \"purlin.history/2\"}\n").is_ok());
  EXPECT_FALSE(load_history({path("x.json")}).is_ok());
}

}  // namespace
}  // namespace purlin::guard
