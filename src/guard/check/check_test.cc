// SPDX-License-Identifier: Apache-2.0
#include "guard/check/check.h"

#include "base/files.h"
#include "cache/store/store.h"
#include "model/spec/spec.h"

#include <gtest/gtest.h>

#include <functional>

namespace purlin::guard {
namespace {

// Simulates processes: `time_ns` gives the time of a kernel from its source.
class FakeRunner : public Runner {
 public:
  std::vector<Result<ProcessReading>> run(const std::vector<Target>& targets,
                                          bool verify) override {
    std::vector<Result<ProcessReading>> readings;
    for (const Target& target : targets) readings.push_back(run(target, verify));
    return readings;
  }
  Result<ProcessReading> run(const Target& target, bool verify) {
    launches.push_back(target.spec_path);
    clock->now_ns += 100'000'000;
    const std::string source = read_file(join_path(parent_path(target.spec_path), "k.cl")).value();
    if (source.find("broken") != std::string::npos && verify)
      return error(Code::kFailed, "compile: k.cl:1: no");
    if (machine_lost) return error(Code::kUnavailable, "the device is gone");
    ProcessReading reading;
    reading.reading.time_ns = (source.find("slow") != std::string::npos ? 1.2e6 : 1e6) *
                              (target.config.text().find("BM=32") != std::string::npos ? 1.5 : 1) *
                              random.uniform(0.99, 1.01) * drift;
    reading.p95_ns = reading.reading.time_ns * 1.02;
    reading.clock_mhz = 1980;
    reading.iterations = 20;
    return reading;
  }
  FakeClock* clock = nullptr;
  Random random{4};
  double drift = 1;
  bool machine_lost = false;
  std::vector<std::string> launches;
};

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("guard-check").value();
    put("k.cl", "#include \"k.h\"\n__kernel void k() {}\n");
    put("k.h", "// fast\n");
    put("k.toml", R"(schema = "purlin.spec/1"
name = "k"
op = "k"
[problem]
N = 64
[kernel]
entry = "k"
[kernel.opencl]
file = "k.cl"
[parameters]
BM = [16, 32]
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
)");
    runner_.clock = &clock_;
    device_.name = "opencl:0";
    device_.info.id = "opencl:0";
    device_.info.backend = "opencl";
    device_.info.name = "Toy";
    device_.info.arch = "toy1";
    device_.info.driver = "1";
    device_.info.toolkit = "OpenCL C";
    device_.info.clock_mhz = 2000;
    suite("config = \"default\"");
  }
  void TearDown() override { (void)remove_tree(folder_); }

  std::string in(const std::string& name) const { return join_path(folder_, name); }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_atomic(in(name), text).is_ok());
  }
  void suite(const std::string& config) {
    const auto parsed = parse_suite(
        "schema = \"purlin.suite/1\"\nname = \"s\"\n[[items]]\nspec = "
        "\"k.toml\"\n" +
            config + "\n",
        in("s.toml"));
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
    suite_ = *parsed;
  }
  GuardRun session() { return {suite_, device_, in("cache"), runner_, random_, clock_, options_}; }
  Baseline baseline() {
    const Result<Baseline> recorded = record_baseline(session(), 5, "first");
    EXPECT_TRUE(recorded.is_ok()) << recorded.status().message();
    // Through its file form, as a check reads it.
    const Result<Baseline> read =
        baseline_from_json(Json::parse(to_json(*recorded).dump(2)).value());
    EXPECT_TRUE(read.is_ok()) << read.status().message();
    return read.value();
  }
  Report check_against(const Baseline& baseline, CheckOptions options = {}) {
    const std::string scratch = in("scratch" + std::to_string(++scratches_));
    const Result<Report> report = check(session(), baseline, scratch, options);
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return report.value();
  }
  void store(int bm) {
    const KernelSpec spec = load_spec(in("k.toml")).value();
    cache::Entry entry;
    entry.key = cache::make_key(spec, spec.problem, device_.info, false).value();
    entry.problem = spec.problem;
    entry.config.set("BM", std::int64_t{bm});
    entry.time_ms = 1;
    // It replaces the earlier entry although it is no faster.
    ASSERT_TRUE(cache::Store::open(in("cache"))
                    .value()
                    .put(entry, {.replace = true, .reason = "test"})
                    .is_ok());
  }

  std::string folder_;
  FakeClock clock_;
  Random random_{9};
  FakeRunner runner_;
  ResolvedDevice device_;
  Suite suite_;
  PairsOptions options_;
  int scratches_ = 0;
};

TEST_F(CheckTest, GreenWhenNothingChanged) {
  const Report report = check_against(baseline());
  ASSERT_EQ(report.items.size(), 1u);
  EXPECT_EQ(report.verdict(), Verdict::kPass) << report.items[0].result.reason;
  EXPECT_EQ(report.items[0].kernel, "k");
  EXPECT_EQ(report.items[0].shape, "N=64");
}

TEST_F(CheckTest, RedWhenTheSourceIsSlower) {
  const Baseline recorded = baseline();
  put("k.cl", "// slow\n__kernel void k() {}\n");
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kRegression);
  EXPECT_EQ(report.items[0].result.cause, "code");
  EXPECT_NEAR(report.items[0].result.effect.ratio, 1.2, 0.02);
}

TEST_F(CheckTest, AChangedHeaderIsADifferenceOfCode) {
  const Baseline recorded = baseline();
  EXPECT_EQ(recorded.snapshots.begin()->second.files.size(), 3u);
  put("k.h", "// other\n");
  const KernelSpec spec = load_spec(in("k.toml")).value();
  EXPECT_NE(take_snapshot(spec).value().id(), recorded.items[0].snapshot);
}

TEST_F(CheckTest, RedWhenTheCachedConfigIsSlower) {
  store(16);
  suite("config = \"cached\"");
  const Baseline recorded = baseline();
  EXPECT_EQ(check_against(recorded).verdict(), Verdict::kPass);
  store(32);
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kRegression);
  EXPECT_EQ(report.items[0].result.cause, "config");
}

TEST_F(CheckTest, ACacheMissUsesTheBaselinesConfigAndSaysSo) {
  store(16);
  suite("config = \"cached\"");
  const Baseline recorded = baseline();
  put("k.cl", "// slow\n__kernel void k() {}\n");  // another source: another key
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kRegression);
  ASSERT_EQ(report.items[0].notes.size(), 1u);
  EXPECT_NE(report.items[0].notes[0].find("no winner"), std::string::npos);
}

TEST_F(CheckTest, AKernelThatFailsNowIsInvalidNotGreen) {
  const Baseline recorded = baseline();
  put("k.cl", "broken\n");
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kInvalid);
  EXPECT_NE(report.items[0].result.reason.find("k.cl:1: no"), std::string::npos);
  put("k.toml", "nonsense");
  EXPECT_EQ(check_against(recorded).verdict(), Verdict::kInvalid);
}

TEST_F(CheckTest, ABaselineThatNoLongerRunsIsInconclusive) {
  put("k.cl", "broken in a way that only today's compiler sees\n");
  Baseline recorded;
  {
    const KernelSpec spec = load_spec(in("k.toml")).value();
    Snapshot snapshot = take_snapshot(spec).value();
    put("k.cl", "__kernel void k() {}\n");
    recorded = baseline();
    recorded.items[0].snapshot = snapshot.id();
    recorded.snapshots[snapshot.id()] = snapshot;
  }
  EXPECT_EQ(check_against(recorded).verdict(), Verdict::kInconclusive);
}

TEST_F(CheckTest, AnotherEnvironmentProvesNothingUnlessAsked) {
  const Baseline recorded = baseline();
  device_.info.driver = "2";
  runner_.launches.clear();
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kInconclusive);
  EXPECT_NE(report.items[0].result.reason.find("driver: '1' then, '2' now"), std::string::npos);
  EXPECT_TRUE(runner_.launches.empty());
  const Report asked = check_against(recorded, {.allow_environment_change = true});
  EXPECT_EQ(asked.verdict(), Verdict::kPass);
  EXPECT_EQ(asked.notes.size(), 1u);
}

TEST_F(CheckTest, AnIncompleteRecordIsNoBaseline) {
  const Baseline complete = baseline();
  Baseline incomplete = complete;
  incomplete.device.driver.clear();
  EXPECT_EQ(check_against(incomplete).verdict(), Verdict::kInconclusive);
  device_.info.driver.clear();
  EXPECT_EQ(check_against(complete).verdict(), Verdict::kInvalid);  // nor a run with a verdict
  const Result<Baseline> recorded = record_baseline(session(), 3, "");
  ASSERT_FALSE(recorded.is_ok());
  EXPECT_NE(recorded.status().message().find("the driver's version"), std::string::npos);
}

TEST_F(CheckTest, DriftOfBothArmsIsSaidAndNotJudged) {
  const Baseline recorded = baseline();
  runner_.drift = 1.4;
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kPass);
  ASSERT_EQ(report.items[0].notes.size(), 1u);
  EXPECT_NE(report.items[0].notes[0].find("the machine moved"), std::string::npos);
}

TEST_F(CheckTest, TheOrderInsidePairsIsACoin) {
  const Baseline recorded = baseline();
  runner_.launches.clear();
  put("k.cl", "// slow\n__kernel void k() {}\n");
  (void)check_against(recorded);
  int current_first = 0;
  const int pairs = static_cast<int>(runner_.launches.size() / 2);
  for (std::size_t i = 0; i + 1 < runner_.launches.size(); i += 2) {
    EXPECT_NE(runner_.launches[i], runner_.launches[i + 1]);
    current_first += runner_.launches[i] == in("k.toml");
  }
  EXPECT_EQ(pairs, 1 + 10);
  EXPECT_GT(current_first, 1);
  EXPECT_LT(current_first, pairs - 1);
}

TEST_F(CheckTest, ATimeLimitEndsWithWhatThereIs) {
  const Baseline recorded = baseline();
  options_.time_limit_s = 1;
  const Report report = check_against(recorded);
  EXPECT_EQ(report.verdict(), Verdict::kInconclusive);
  EXPECT_LT(report.seconds, 2);
}

TEST_F(CheckTest, ALostMachineIsAnErrorNotAVerdict) {
  const Baseline recorded = baseline();
  runner_.machine_lost = true;
  EXPECT_EQ(check(session(), recorded, in("scratch"), {}).status().code(), Code::kUnavailable);
}

TEST_F(CheckTest, BaselinesFromOutsideAreChecked) {
  const Json good = to_json(baseline());
  const auto problem = [](const Json& json) { return baseline_from_json(json).status().message(); };
  Json other = good;
  other.set("schema", "purlin.report/1");
  EXPECT_NE(problem(other), "");
  other = good;
  other.set("snapshots", Json::object());
  EXPECT_NE(problem(other).find("is missing"), std::string::npos);
  // A snapshot with a file outside its folder.
  for (const char* path : {"../k.cl", "/etc/k.cl", "a/../../k.cl", "", "a//b"}) {
    Json snapshot =
        Json::parse(R"({"spec": "k.toml", "files": [{"path": "k.toml", "text": ""}]})").value();
    Json files = Json::array();
    files.push(Json::object({{"path", path}, {"text", ""}}));
    snapshot.set("files", files);
    EXPECT_NE(snapshot_from_json(snapshot).status().message().find("may lie outside of it"),
              std::string::npos)
        << path;
  }
  // A snapshot whose code was changed after the recording.
  std::string text = good.dump();
  text.replace(text.find("__kernel"), 8, "_other__");
  EXPECT_NE(problem(Json::parse(text).value()).find("altered"), std::string::npos);
}

TEST(Report, EscapesWhatOtherFormatsWouldMisread) {
  Report report;
  report.suite = "s";
  ReportItem item;
  item.kernel = "f<int & \"x\">|y";
  item.file = "a,b:c.toml";
  item.result.verdict = Verdict::kRegression;
  item.result.reason = "100 %\nsecond line";
  report.items.push_back(item);
  EXPECT_NE(render_junit(report).find("f&lt;int &amp; &quot;x&quot;&gt;|y"), std::string::npos);
  EXPECT_NE(render_junit(report).find("failures=\"1\""), std::string::npos);
  EXPECT_NE(render_markdown(report).find("&#124;y</code>"), std::string::npos);
  EXPECT_NE(render_annotations(report).find("file=a%2Cb%3Ac.toml"), std::string::npos);
  EXPECT_NE(render_annotations(report).find("100 %25%0Asecond"), std::string::npos);
  const Json json = to_json(report);
  EXPECT_EQ(json["verdict"].as_string(), "regression");
  EXPECT_EQ(json["exit_code"].as_int(), 1);
  EXPECT_TRUE(json["items"].items()[0]["ratio"].is_null());
}

}  // namespace
}  // namespace purlin::guard
