// SPDX-License-Identifier: Apache-2.0
// On excerpts of AutoTuningAssociation/benchmark_hub (MIT): ten configs of convolution_milo.
#include "base/files.h"
#include "gpu/registry.h"
#include "gpu/replay/replay_device.h"

#include <gtest/gtest.h>

namespace purlin::gpu {
namespace {

std::string data(const std::string& name) {
  return std::string(PURLIN_SOURCE_DIR) + "/tests/data/spaces/convolution_milo-A100.excerpt" + name;
}

Config config(std::int64_t x, std::int64_t y, std::int64_t tx, std::int64_t ty, bool read_only,
              bool padding, bool shmem) {
  Config config;
  config.set("block_size_x", x);
  config.set("block_size_y", y);
  config.set("tile_size_x", tx);
  config.set("tile_size_y", ty);
  config.set("read_only", read_only);  // recorded as 0 and 1
  config.set("use_padding", padding);
  config.set("use_shmem", shmem);
  config.set("use_cmem", std::int64_t{1});
  config.set("filter_height", std::int64_t{15});
  config.set("filter_width", 15.0);  // recorded as 15
  return config;
}

Config first() { return config(16, 1, 1, 1, false, false, false); }

TEST(ReplaySpace, ReadsAKernelTunerCache) {
  auto space = ReplaySpace::read(data(".json"));
  ASSERT_TRUE(space.is_ok()) << space.status().message();
  EXPECT_EQ(space->device(), "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(space->kernel(), "convolution_kernel");
  ASSERT_EQ(space->parameters().size(), 10u);
  EXPECT_EQ(space->parameters()[0].name, "block_size_x");
  EXPECT_EQ(space->parameters()[0].values.size(), 16u);
  EXPECT_EQ(space->runs().size(), 10u);
  auto run = space->find(first());
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  ASSERT_EQ((*run)->samples_ms.size(), 32u);
  EXPECT_DOUBLE_EQ((*run)->samples_ms[0], 3.976191997528076);
  EXPECT_DOUBLE_EQ((*run)->compile_s, 0.9185990339610726);
  EXPECT_NEAR((*run)->cost_s(), 0.9185990 + 0.1263829 + 0.1052424, 1e-6);
}

TEST(ReplaySpace, ReadsGzipAndT4Alike) {
  auto plain = ReplaySpace::read(data(".json")), gzip = ReplaySpace::read(data(".json.gz")),
       t4 = ReplaySpace::read(data(".t4.json"));
  ASSERT_TRUE(plain.is_ok() && gzip.is_ok()) << gzip.status().message();
  ASSERT_TRUE(t4.is_ok()) << t4.status().message();
  ASSERT_EQ(gzip->runs().size(), plain->runs().size());
  ASSERT_EQ(t4->runs().size(), plain->runs().size());
  for (const RecordedRun& run : plain->runs()) {
    const RecordedRun& other = **t4->find(plain->config(run));
    EXPECT_EQ(other.samples_ms, run.samples_ms);
    EXPECT_EQ(other.status, run.status);
    EXPECT_EQ((*gzip->find(plain->config(run)))->samples_ms, run.samples_ms);
  }
  // T4 has no list of values; they are those that occur.
  EXPECT_EQ(to_text(t4->parameters()[0].values.front()), "16");
  EXPECT_EQ(to_text(t4->parameters()[0].values.back()), "80");
}

TEST(ReplaySpace, EveryParameterMustMatch) {
  auto space = ReplaySpace::read(data(".json"));
  Config extra = first();
  extra.set("UNROLL", std::int64_t{1});
  EXPECT_NE(space->find(extra).status().message().find("no parameter 'UNROLL'"), std::string::npos);
  Config few;
  few.set("block_size_x", std::int64_t{16});
  EXPECT_NE(space->find(few).status().message().find("'block_size_y'"), std::string::npos);
  auto other = space->find(config(16, 1, 1, 1, true, true, false));
  EXPECT_EQ(other.status().code(), Code::kInvalid);
  EXPECT_NE(other.status().message().find("no config"), std::string::npos);
}

TEST(ReplaySpace, DamagedFilesAreNamed) {
  const std::string good = *read_file(data(".json"));
  for (std::size_t cut = 0; cut < good.size(); cut += 97) {
    const auto read = ReplaySpace::parse(good.substr(0, cut));
    EXPECT_EQ(read.status().code(), read.is_ok() ? Code::kOk : Code::kInvalid) << cut;
    EXPECT_TRUE(!read.is_ok() || !read->recording().note.empty()) << cut;
  }
  EXPECT_EQ(ReplaySpace::parse(R"({"results": []})").status().code(), Code::kInvalid);
  EXPECT_EQ(ReplaySpace::parse(R"({"results": [{}, {"configuration": {"a": 1}}]})").status().code(),
            Code::kInvalid);
  EXPECT_EQ(ReplaySpace::parse(R"({"cache": {"1": {"a": 1}}, "tune_params_keys": ["a"],
                                   "tune_params": {}})")
                .status()
                .message(),
            "\"tune_params\" lacks the parameter 'a'");
  auto entry = ReplaySpace::parse(R"({"cache": {"1": {"b": 1}}, "tune_params_keys": ["a"],
                                      "tune_params": {"a": [1]}})");
  EXPECT_EQ(entry.status().message(), "\"cache\" entry \"1\": lacks the parameter 'a'");
}

constexpr const char* kHead =
    R"({"device_name": "d", "tune_params_keys": ["a"], "tune_params": {"a": [1, 2, 4]}, "cache": {)";

TEST(ReplaySpace, AnOpenCacheIsReadToItsLastCompleteConfig) {
  for (const char* tail : {",", "", ",\n", R"(, "4": {"a": 4, "times": [1], "time": 0.)"}) {
    const auto read = ReplaySpace::parse(
        std::string(kHead) + R"("1": {"a": 1, "time": 0.5}, "2": {"a": 2, "time": 0.25})" + tail);
    ASSERT_TRUE(read.is_ok()) << tail << read.status().message();
    EXPECT_EQ(read->runs().size(), 2u) << tail;
    EXPECT_NE(read->recording().note.find("has no end"), std::string::npos);
  }
  EXPECT_NE(ReplaySpace::parse(kHead).status().message().find("malformed JSON"), std::string::npos);
}

TEST(ReplaySpace, AFailureMayBeInAnyMember) {
  const auto read = ReplaySpace::parse(std::string(kHead) + R"(
      "1": {"a": 1, "time": 0.5, "GFLOP/s": NaN},
      "2": {"a": 2, "time": 0.1, "GFLOP/s": "RuntimeFailedConfig"},
      "4": {"a": 4, "__error__": "CompilationFailedConfig"},
      "8": {"a": 8, "time": 1e20, "times": [1e20, 1e20]}}})");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->recording().note, "");
  EXPECT_EQ(read->runs()[3].status, EvaluationStatus::kLaunch);
  EXPECT_EQ(read->runs()[0].samples_ms, std::vector<double>{0.5});
  EXPECT_EQ(read->runs()[1].status, EvaluationStatus::kLaunch);
  EXPECT_EQ(read->runs()[2].status, EvaluationStatus::kCompile);
}

TEST(ReplaySpace, EqualValuesOfOtherTypesAreOne) {
  const auto cache = ReplaySpace::parse(std::string(kHead) + R"("1": {"a": 1.0, "time": 1}}})");
  ASSERT_TRUE(cache.is_ok()) << cache.status().message();
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(*cache->config(cache->runs()[0]).find("a")));
  const auto t4 = ReplaySpace::parse(R"({"results": [
      {"configuration": {"a": 2.0, "b": 1}, "times": {"runtimes": [1]}, "invalidity": "correct"},
      {"configuration": {"a": 2, "b": 2}, "times": {"runtimes": [1]}, "invalidity": "correct"}]})");
  ASSERT_TRUE(t4.is_ok()) << t4.status().message();
  EXPECT_EQ(t4->parameters()[0].values.size(), 1u);
  for (const RecordedRun& run : t4->runs())
    EXPECT_TRUE(std::holds_alternative<std::int64_t>(*t4->config(run).find("a")));
}

TEST(ReplaySpace, TimesOfT4HaveTheStatedUnit) {
  const auto sample = [](const std::string& facts) {
    const auto read = ReplaySpace::parse(
        R"({"results": [{"configuration": {"a": 1}, "invalidity": "correct",
            "times": {"runtimes": [50], "compilation_time": 2000}, )" +
        facts + "}]}");
    return read.is_ok()
               ? fmt::format("{:g} {:g}", read->runs()[0].samples_ms[0], read->runs()[0].compile_s)
               : read.status().message();
  };
  EXPECT_EQ(sample(R"("measurements": [])"), "50 2");
  EXPECT_EQ(sample(R"("measurements": [{"name": "time", "value": 50, "unit": "ms"}])"), "50 2");
  EXPECT_EQ(sample(R"("objectives": ["TotalDuration"],
      "measurements": [{"name": "TotalDuration", "value": 50, "unit": "Microseconds"}])"),
            "0.05 0.002");
  // The unit of the objective that is a time, not that of another measurement.
  EXPECT_EQ(sample(R"("objectives": ["time"], "measurements": [
      {"name": "overhead", "value": 1, "unit": "s"}, {"name": "GFLOP/s", "value": 1, "unit": ""},
      {"name": "time", "value": 50, "unit": "ns"}])"),
            "5e-05 2e-06");
  EXPECT_EQ(sample(R"("measurements": [{"name": "time", "value": 50, "unit": "jiffies"}])"),
            "result 0: the time has the unit 'jiffies', which is no unit of time");
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    auto device = open_device("replay:" + data(".json.gz"));
    ASSERT_TRUE(device.is_ok()) << device.status().message();
    device_ = std::move(*device);
  }
  Result<Binary> compile(const Config& what) {
    CompileRequest request;
    request.config = what;
    return device_->compile(request);
  }
  std::unique_ptr<Device> device_;
};

TEST_F(Replay, ServesTheRecordedSamplesInOrderAndWraps) {
  EXPECT_EQ(device_->info().name, "NVIDIA A100-PCIE-40GB");
  EXPECT_FALSE(device_->executes());
  auto binary = compile(first());
  ASSERT_TRUE(binary.is_ok()) << binary.status().message();
  EXPECT_DOUBLE_EQ(binary->compile_s, 0.9185990339610726);
  auto kernel = device_->load(*binary);
  const RecordedRun& run = ReplayDevice::recorded(**kernel);
  const Launch launch{kernel->get(), {}, {}};
  ASSERT_TRUE(device_->run(launch).is_ok());  // takes no sample
  std::vector<Sample> samples = *device_->time(launch, {20, 1, false, 0});
  const std::vector<Sample> more = *device_->time(launch, {20, 1, false, 0});
  samples.insert(samples.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(samples[i].ms, run.samples_ms[i % 32]) << i;
  const Sample mean = device_->time(launch, {1, 2, false, 0})->front();
  EXPECT_DOUBLE_EQ(mean.ms, (run.samples_ms[8] + run.samples_ms[9]) / 2);
  EXPECT_EQ(device_->time(launch, {100, 1, false, 0.01})->size(), 3u);  // of about 3.9 ms each
}

TEST_F(Replay, RecordedFailuresComeBackWhereTheyHappened) {
  auto broken = compile(config(80, 8, 3, 4, false, true, true));
  EXPECT_EQ(broken.status().code(), Code::kInvalid);
  EXPECT_EQ(broken.status().message(), "recorded as CompilationFailedConfig");
  auto binary = compile(config(32, 16, 2, 4, true, false, false));
  ASSERT_TRUE(binary.is_ok()) << binary.status().message();
  auto kernel = device_->load(*binary);
  const Launch launch{kernel->get(), {}, {}};
  EXPECT_EQ(device_->run(launch).message(), "recorded as RuntimeFailedConfig");
  EXPECT_EQ(device_->time(launch, {}).status().code(), Code::kInvalid);
  EXPECT_GT(ReplayDevice::recorded(**kernel).cost_s(), 0);
}

TEST_F(Replay, HasNoMemory) {
  EXPECT_EQ(device_->allocate(16).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace purlin::gpu
