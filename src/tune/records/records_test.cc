// SPDX-License-Identifier: Apache-2.0
// On excerpts of AutoTuningAssociation/benchmark_hub (MIT) in tests/data/spaces.
#include "base/files.h"
#include "tune/records/export.h"
#include "tune/records/prior_runs.h"
#include "tune/records/recordings.h"
#include "tune/records/stored_evaluations.h"
#include "tune/space/build.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

std::string data(const std::string& name) {
  return std::string(PURLIN_SOURCE_DIR) + "/tests/data/spaces/" + name;
}

std::string message_of(const std::string& text) {
  const auto recordings = parse_recordings(text);
  return recordings.is_ok() ? "" : recordings.status().message();
}

constexpr const char* kWisdom =
    R"({"version": "1.0", "objective": "time", "tunable_parameters": ["bx", "by"], "key": "add"}
{"config": [2, 1], "problem_size": [100, 100], "environment": {"device_name": "K20"}, "time": 0.5}

# comment
{"config": [3, 1], "problem_size": [100, 100], "environment": {"device_name": "K20"}, "time": 1.0}
{"config": [5, 1], "problem_size": [200], "environment": {"device_name": "Tesla V100"}, "time": 3}
)";

// Equal in what Kernel Tuner's cache and T4 both hold.
void expect_same(const gpu::Recording& a, const gpu::Recording& b) {
  ASSERT_EQ(a.runs.size(), b.runs.size());
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    const gpu::RecordedRun &x = a.runs[i], &y = b.runs[i];
    EXPECT_EQ(a.config(x), b.config(y)) << i;
    EXPECT_EQ(x.status, y.status) << i;
    EXPECT_EQ(x.samples_ms, y.samples_ms) << i;
    EXPECT_EQ(x.timestamp, y.timestamp) << i;
    EXPECT_EQ(x.metrics, y.metrics) << i;
    EXPECT_DOUBLE_EQ(x.compile_s, y.compile_s) << i;
    EXPECT_DOUBLE_EQ(x.verification_s, y.verification_s) << i;
    EXPECT_DOUBLE_EQ(x.overhead_s, y.overhead_s) << i;
  }
}

TEST(Records, KernelTunerAndT4ThereAndBack) {
  for (const char* file :
       {"convolution_milo-A100.excerpt.t4.json", "convolution_milo-A100.excerpt.json"}) {
    const auto read = read_recordings(data(file));
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    const gpu::Recording& original = read->front();
    for (const char* by : {"kernel-tuner", "t4"}) {
      const std::string other = by == std::string("t4") ? "kernel-tuner" : "t4";
      const auto there = parse_recordings(*export_recording(original, by));
      ASSERT_TRUE(there.is_ok()) << there.status().message();
      expect_same(original, there->front());
      const auto back = parse_recordings(*export_recording(there->front(), other));
      ASSERT_TRUE(back.is_ok()) << back.status().message();
      expect_same(original, back->front());
    }
  }
}

TEST(Records, AKernelTunerCacheKeepsItsHead) {
  const auto read = read_recordings(data("convolution_milo-A100.excerpt.json"));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->front().vendor, "nvidia");
  EXPECT_EQ(read->front().problem.text(), "x=4096,y=4096");
  const std::string text = *export_recording(read->front(), "kernel-tuner");
  const Json document = Json::parse(text).value();
  EXPECT_EQ(document["schema_version"].as_string(), "1.1.0");
  EXPECT_EQ(document["device_name"].as_string(), "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(document["problem_size"].dump(), "[4096,4096]");
  EXPECT_EQ(document["tune_params"]["block_size_x"].size(), 16u);
  const Json& entry = document["cache"].members().front().value;
  for (const char* field : {"time", "compile_time", "verification_time", "benchmark_time",
                            "strategy_time", "framework_time", "timestamp", "GFLOP/s"})
    EXPECT_NE(entry.find(field), nullptr) << field;
}

TEST(Records, T4HasWhatItsSchemaRequires) {
  const auto read = read_recordings(data("convolution_milo-A100.excerpt.json"));
  const Json document = Json::parse(*export_recording(read->front(), "t4")).value();
  EXPECT_EQ(document["schema_version"].as_string(), "1.0.0");
  for (const Json& result : document["results"].items()) {
    for (const char* field : {"configuration", "times", "invalidity", "correctness"})
      EXPECT_NE(result.find(field), nullptr) << field;
    EXPECT_TRUE(result["correctness"].is_number());
    EXPECT_TRUE(result["measurements"].is_array() && result["objectives"].is_array());
    const bool correct = result["invalidity"].as_string() == "correct";
    EXPECT_EQ(correct, result["times"]["runtimes"].is_array());
  }
}

TEST(Records, WisdomIsSplitByDeviceAndProblem) {
  const auto read = parse_recordings(kWisdom);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].device, "K20");
  EXPECT_EQ((*read)[0].kernel, "add");
  EXPECT_EQ((*read)[0].runs.size(), 2u);
  EXPECT_EQ((*read)[0].config((*read)[0].runs[1]).text(), "bx=3 by=1");
  EXPECT_EQ((*read)[1].problem.text(), "x=200");
  EXPECT_EQ((*read)[1].vendor, "nvidia");
}

TEST(Records, ErrorsNameThePlace) {
  std::string text = kWisdom;
  text += "{\"config\": [1], \"time\": 2}\n";
  EXPECT_EQ(message_of(text), "line 7: \"config\" has 1 values for 2 parameters");
  EXPECT_NE(message_of(R"({"schema": "purlin.session/1"})"
                       "\n{oops\n")
                .find("line 2"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"schema": "purlin.report/1"})").find("no results of tuning"),
            std::string::npos);
  EXPECT_NE(
      message_of(R"({"Metadata": {"TimeUnit": "Fortnights"}, "Results": [{}]})").find("Fortnights"),
      std::string::npos);
  EXPECT_NE(
      message_of(
          R"({"Metadata": {"TimeUnit": "Seconds"}, "Results": [{"Configuration": [{"Name": "A"}]}]})")
          .find("\"Results\" 0: the parameter 'A' has no Value"),
      std::string::npos);
  EXPECT_NE(message_of(R"({"schema": "purlin.evaluations/1", "parameters": [{"name": "a",
                           "values": [1]}], "configs": [[1]], "time_ms": [1], "status": ["ok"]})")
                .find("config 0: 'a' has no value 1"),
            std::string::npos);
  EXPECT_EQ(message_of("{\"cache\": {}, \"tune_params_keys\": [\"a\"], \"tune_params\": {\"a\": "
                       "[1]}}"),
            "it records no config");
}

TEST(Records, KttInItsUnit) {
  const auto read = parse_recordings(
      R"({"Metadata": {"Device": "NVIDIA GeForce RTX 2080 Ti", "TimeUnit": "Microseconds"},
          "Results": [
           {"KernelName": "Convolution", "Status": "Ok", "TotalDuration": 2500.0,
            "TotalOverhead": 1000000.0, "Configuration": [{"Name": "BLOCK", "Value": 32}],
            "ComputationResults": [{"ProfilingData": {"Counters": [
              {"Name": "dram__sectors_read.sum", "Type": "Double", "Value": 2112299.0},
              {"Name": "odd", "Type": "String", "Value": "x"}]}}]},
           {"KernelName": "Convolution", "Status": "ComputationFailed", "TotalDuration": 0.0,
            "TotalOverhead": 4000.0, "Configuration": [{"Name": "BLOCK", "Value": 64}]}]})");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const gpu::Recording& recording = read->front();
  EXPECT_EQ(recording.kernel, "Convolution");
  EXPECT_DOUBLE_EQ(recording.runs[0].time_ms(), 2.5);
  EXPECT_DOUBLE_EQ(recording.runs[0].cost_s(), 1.0025);
  EXPECT_EQ(recording.runs[0].counters,
            (std::map<std::string, double>{{"dram__sectors_read.sum", 2112299.0}}));
  EXPECT_TRUE(recording.runs[1].counters.empty());
  EXPECT_EQ(recording.runs[1].status, EvaluationStatus::kLaunch);
  EXPECT_DOUBLE_EQ(recording.runs[1].cost_s(), 0.004);
}

TEST(Records, AJournalWithATornLine) {
  const auto read = parse_recordings(
      R"({"schema": "purlin.session/1", "kernel": "gemm", "problem": {"M": 64}})"
      "\n"
      R"({"evaluation": {"config": {"A": 1}, "status": "ok", "time_ms": 2, "samples_ms": [2, 3]}})"
      "\n"
      R"({"evaluation": {"config": {"A": 2}, "status": "crash", "message": "died"}})"
      "\n{\"evalu");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->front().runs.size(), 2u);
  EXPECT_EQ(read->front().runs[1].failure, "died");
  EXPECT_EQ(read->front().problem.text(), "M=64");
}

TEST(Records, StoredEvaluationsComeBack) {
  const auto directory = make_temporary_directory("purlin-records");
  ASSERT_TRUE(directory.is_ok());
  gpu::Recording recording = read_recordings(data("convolution_milo-A100.excerpt.json"))->front();
  recording.kernel = "conv<2>";
  const std::string path = evaluations_path(*directory, recording.kernel, "0123");
  ASSERT_TRUE(store_evaluations(path, recording).is_ok());
  ASSERT_TRUE(write_atomic(evaluations_path(*directory, "conv<2>", "4567"), "damaged").is_ok());
  std::size_t skipped = 0;
  const auto found = find_evaluations(*directory, "conv<2>", 10, skipped);
  EXPECT_EQ(skipped, 1u);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].runs.size(), recording.runs.size());
  for (std::size_t i = 0; i < recording.runs.size(); ++i) {
    EXPECT_EQ(found[0].config(found[0].runs[i]).text(), recording.config(recording.runs[i]).text());
    EXPECT_EQ(found[0].runs[i].status, recording.runs[i].status);
  }
  EXPECT_TRUE(find_evaluations(*directory, "conv_2_", 10, skipped).empty());  // same file name
  EXPECT_TRUE(remove_tree(*directory).is_ok());
}

TEST(PriorRuns, ConfigsAreFoundByNamesAndValues) {
  const std::vector<Parameter> parameters = {
      {"bx", {std::int64_t{2}, std::int64_t{3}}, std::nullopt},
      {"by", {true}, std::nullopt},                    // recorded as 1
      {"fixed", {std::string("only")}, std::nullopt},  // not recorded
  };
  const Space space = build_space(parameters, {}, {}).value();
  DeviceInfo device;
  device.name = "K20";
  ProblemShape problem;
  PriorReader reader(space, device, problem);
  const auto recordings = parse_recordings(kWisdom);
  for (const gpu::Recording& recording : *recordings) reader.add(recording, "w");
  const Priors priors = reader.take();
  ASSERT_EQ(priors.sources.size(), 2u);
  EXPECT_EQ(priors.sources[0].configs, 2u);
  EXPECT_EQ(priors.sources[1].left_out, 1u);  // bx=5
  ASSERT_EQ(priors.runs.size(), 1u);
  EXPECT_TRUE(priors.runs[0].same_device);
  EXPECT_TRUE(priors.runs[0].complete);
  EXPECT_EQ(to_text(*space.config(priors.runs[0].times.front().first).find("bx")), "2");
}

TEST(PriorRuns, VendorsByWhatDriversSay) {
  EXPECT_EQ(vendor_of("NVIDIA H200"), "nvidia");
  EXPECT_EQ(vendor_of("AMD Instinct MI300X"), "amd");
  EXPECT_EQ(vendor_of("gfx90a"), "amd");
  EXPECT_EQ(vendor_of("Intel(R) Data Center GPU Max 1550"), "intel");
  EXPECT_EQ(vendor_of("pthread-haswell"), "");
}

}  // namespace
}  // namespace purlin::tune
