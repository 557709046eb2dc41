// SPDX-License-Identifier: Apache-2.0
#include "measure/output/benchmark_output.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::measure {
namespace {

OutputRules rules(OutputFormat format) {
  OutputRules rules;
  rules.format = format;
  return rules;
}

TEST(BenchmarkOutput, GoogleBenchmarkGivesOneSampleARepetition) {
  const char* text = R"(Running ./bench
{"context": {"num_cpus": 2}, "benchmarks": [
 {"name": "BM_copy/8", "run_name": "BM_copy/8", "run_type": "iteration", "real_time": 1.5, "cpu_time": 1.25, "time_unit": "us"},
 {"name": "BM_copy/8", "run_name": "BM_copy/8", "run_type": "iteration", "real_time": 1.75, "cpu_time": 1.25, "time_unit": "us"},
 {"name": "BM_copy/8_mean", "run_name": "BM_copy/8", "run_type": "aggregate", "real_time": 9, "time_unit": "us"},
 {"name": "BM_bad", "run_type": "iteration", "error_occurred": true, "error_message": "no device"}]})";
  auto times = parse_benchmark_output(text, rules(OutputFormat::kGoogleBenchmark), "");
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[0].name, "BM_copy/8");
  EXPECT_EQ((*times)[0].times_ns, (std::vector<double>{1500, 1750}));
  EXPECT_EQ((*times)[1].skipped, "with an error: no device");
  OutputRules cpu = rules(OutputFormat::kGoogleBenchmark);
  cpu.time = "cpu_time";
  EXPECT_EQ((*parse_benchmark_output(text, cpu, ""))[0].times_ns[0], 1250);
}

TEST(BenchmarkOutput, NvbenchSamplesComeFromItsFilesElseItsSummaries) {
  const std::string folder = *make_temporary_directory("purlin-nvbench");
  const float samples[] = {1e-5f, 2e-5f}, clocks[] = {1.98e9f, 1.5e9f};
  ASSERT_TRUE(write_atomic(join_path(folder, "0.bin"),
                           {reinterpret_cast<const char*>(samples), sizeof samples})
                  .is_ok());
  ASSERT_TRUE(write_atomic(join_path(folder, "0-freqs.bin"),
                           {reinterpret_cast<const char*>(clocks), sizeof clocks})
                  .is_ok());
  const char* text = R"({"benchmarks": [{"name": "axpy", "states": [
   {"name": "Device=0 N=2^20", "is_skipped": false, "summaries": [
     {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "1.2e-05"}]},
     {"tag": "nv/json/bin:nv/cold/sample_times", "data": [{"name": "filename", "value": "0.bin"}, {"name": "size", "value": "2"}]},
     {"tag": "nv/json/freqs-bin:nv/cold/sample_freqs", "data": [{"name": "filename", "value": "0-freqs.bin"}, {"name": "size", "value": "2"}]}]},
   {"name": "Device=0 N=2^30", "is_skipped": true, "skip_reason": "too large"}]}]})";
  auto times = parse_benchmark_output(text, rules(OutputFormat::kNvbench), folder);
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  EXPECT_EQ((*times)[0].name, "axpy Device=0 N=2^20");
  ASSERT_EQ((*times)[0].times_ns.size(), 2u);
  EXPECT_NEAR((*times)[0].times_ns[1], 20000, 0.01);
  EXPECT_NEAR((*times)[0].clocks_mhz[1], 1500, 0.01);
  EXPECT_EQ((*times)[1].skipped, "too large");
  EXPECT_EQ((*times)[1].failure, "");
  times = parse_benchmark_output(text, rules(OutputFormat::kNvbench), "");
  ASSERT_TRUE(times.is_ok());
  EXPECT_EQ((*times)[0].times_ns.size(), 1u);
  EXPECT_NEAR((*times)[0].times_ns[0], 12000, 1e-6);
  // Cut short: not quietly fewer samples.
  ASSERT_TRUE(write_atomic(join_path(folder, "0.bin"), "1234").is_ok());
  EXPECT_FALSE(parse_benchmark_output(text, rules(OutputFormat::kNvbench), folder).is_ok());
  (void)remove_tree(folder);
}

TEST(BenchmarkOutput, HyperfineInSecondsAndItsFailures) {
  auto times = parse_benchmark_output(
      R"({"results": [{"command": "./a", "times": [0.5, 0.25], "exit_codes": [0, 0]},
                      {"command": "./b", "times": [0.5], "exit_codes": [3]}]})",
      rules(OutputFormat::kHyperfine), "");
  ASSERT_TRUE(times.is_ok());
  EXPECT_EQ((*times)[0].times_ns, (std::vector<double>{5e8, 2.5e8}));
  EXPECT_EQ((*times)[1].failure, "it ended with exit status 3");
}

TEST(BenchmarkOutput, HyperfinesResultsWithOneCommandAreToldApart) {
  const auto names = [](const std::string& results) {
    const auto times = parse_benchmark_output("{\"results\": [" + results + "]}",
                                              rules(OutputFormat::kHyperfine), "");
    std::vector<std::string> read;
    if (times.is_ok())
      for (const BenchmarkTimes& one : *times) read.push_back(one.name);
    return read;
  };
  const auto result = [](const std::string& command, const std::string& parameters) {
    return fmt::format(R"({{"command": "{}", "times": [1], "exit_codes": [0], "parameters": {}}})",
                       command, parameters);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(result("s", R"({"n": "1"})") + "," + result("s", R"({"n": "2", "k": 3})") + "," +
                  result("t", R"({"n": "1"})")),
            (Names{"s n=1", "s k=3 n=2", "t"}));
  EXPECT_EQ(names(result("", "{}") + "," + result("", "{}")), (Names{"#1", "#2"}));
  EXPECT_EQ(names(result("s", R"({"n": "1"})") + "," + result("s", R"({"n": "1"})")),
            (Names{"s n=1 #1", "s n=1 #2"}));
  // A name that is another's name with its parameters.
  EXPECT_EQ(
      names(result("s", R"({"n": "1"})") + "," + result("s", "{}") + "," + result("s n=1", "{}")),
      (Names{"s n=1 #1", "s", "s n=1 #2"}));
  EXPECT_EQ(parse_benchmark_output(
                R"({"results": [{"command": "./a", "times": [1, 2], "exit_codes": [0, null]}]})",
                rules(OutputFormat::kHyperfine), "")
                ->front()
                .failure,
            "a signal ended it");
}

TEST(BenchmarkOutput, BenchmarksWithOneNameAreNotPooled) {
  const auto google = [](const std::string& entries) {
    return parse_benchmark_output("{\"benchmarks\": [" + entries + "]}",
                                  rules(OutputFormat::kGoogleBenchmark), "");
  };
  const std::string one =
      R"({"name": "BM", "run_name": "BM", "run_type": "iteration", "repetition_index": 0, "real_time": 1})";
  EXPECT_NE(google(one + "," + one).status().message().find("'BM (repetition 0)' is there twice"),
            std::string::npos);
  const char* state = R"({"name": "N=1", "is_skipped": false, "summaries": [
     {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "value": "1.2e-05"}]}]})";
  EXPECT_NE(
      parse_benchmark_output(
          fmt::format(R"({{"benchmarks": [{{"name": "b", "states": [{}, {}]}}]}})", state, state),
          rules(OutputFormat::kNvbench), "")
          .status()
          .message()
          .find("'b N=1' is there twice"),
      std::string::npos);
  // Names that differ behind the length that is kept.
  OutputRules csv = rules(OutputFormat::kCsv);
  const std::string longest(1000, 'x');
  EXPECT_EQ(
      parse_benchmark_output(fmt::format("name,time_ns\n{}a,1\n{}b,2\n", longest, longest), csv, "")
          ->size(),
      2u);
}

TEST(BenchmarkOutput, AggregatesOfOldReleasesAreNoItems) {
  const auto names = [](const std::vector<std::string>& entries) {
    std::string list;
    for (const std::string& name : entries)
      list += (list.empty() ? "" : ",") + fmt::format(R"({{"name": "{}", "real_time": 5}})", name);
    const auto times = parse_benchmark_output("{\"benchmarks\": [" + list + "]}",
                                              rules(OutputFormat::kGoogleBenchmark), "");
    std::vector<std::string> read;
    if (times.is_ok())
      for (const BenchmarkTimes& one : *times) read.push_back(one.name);
    return read;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"BM_x", "BM_x", "BM_x_mean", "BM_x_median", "BM_x_stddev"}), (Names{"BM_x"}));
  EXPECT_EQ(names({"BM_x", "BM_x_BigO", "BM_x_RMS"}), (Names{"BM_x"}));
  EXPECT_EQ(names({"BM_x", "BM_x", "BM_x_p_90", "BM_x_wide", "BM_x_wide"}),
            (Names{"BM_x", "BM_x_wide"}));
  // Benchmarks whose names end like this, without the benchmark that they would be a mean of.
  EXPECT_EQ(names({"BM_mean", "BM_median"}), (Names{"BM_mean", "BM_median"}));
  EXPECT_EQ(names({"BM_x_mean", "BM_x_median", "BM_x_stddev"}), Names{});
}

TEST(BenchmarkOutput, CsvByColumnNamesWithTheUnitInOne) {
  OutputRules csv = rules(OutputFormat::kCsv);
  csv.time_column = "time_us";
  csv.clock_column = "mhz";
  auto times = parse_benchmark_output(
      "# x\nmhz,name,time_us\r\n1980,\"a, \"\"b\"\"\",2.5\r\n1500,\"a, \"\"b\"\"\",3\n", csv, "");
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  EXPECT_EQ((*times)[0].name, "a, \"b\"");
  EXPECT_EQ((*times)[0].times_ns, (std::vector<double>{2500, 3000}));
  EXPECT_EQ((*times)[0].clocks_mhz, (std::vector<double>{1980, 1500}));
  EXPECT_NE(parse_benchmark_output("name,time_us\na,soon\n", csv, "")
                .status()
                .message()
                .find("line 2: 'soon' is no time"),
            std::string::npos);
  EXPECT_NE(parse_benchmark_output("name,t\na,1\n", csv, "")
                .status()
                .message()
                .find("there is no column 'time_us'"),
            std::string::npos);
}

TEST(BenchmarkOutput, RegexLinesWithNameAndUnit) {
  OutputRules regex = rules(OutputFormat::kRegex);
  regex.pattern = R"((\w+): +([\d.]+) (us|ms))";
  auto times =
      parse_benchmark_output("warm up\ngemm:  1.5 ms\nsoftmax: 20 us\ngemm: 1.25 ms\n", regex, "");
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[0].times_ns, (std::vector<double>{1.5e6, 1.25e6}));
  EXPECT_EQ((*times)[1].times_ns, (std::vector<double>{2e4}));
  regex.pattern = "time=(\\d+)";
  regex.unit = "ms";
  EXPECT_EQ((*parse_benchmark_output("time=3", regex, ""))[0].times_ns[0], 3e6);
  EXPECT_TRUE(check_output_rules(regex).is_ok());
  for (const char* pattern : {"(", "no groups"}) {
    regex.pattern = pattern;
    EXPECT_FALSE(parse_benchmark_output("x", regex, "").is_ok());
    EXPECT_FALSE(check_output_rules(regex).is_ok());
    EXPECT_TRUE(check_output_rules({OutputFormat::kCsv, {}, {}, {}, {}, pattern}).is_ok());
  }
}

TEST(BenchmarkOutput, APatternCannotTakeForEver) {
  OutputRules regex = rules(OutputFormat::kRegex);
  // Each of them would take a matcher that goes back and forth longer than the universe is old.
  const std::string line = std::string(60, 'a') + "!";
  for (const char* pattern : {"(a+)+$", "(a|aa)+$", "(([a-z]*)*)*b"}) {
    regex.pattern = pattern;
    const auto times = parse_benchmark_output(line, regex, "");
    EXPECT_NE(times.status().message().find("no line matches"), std::string::npos) << pattern;
  }
  // A line of any length, of which the beginning counts.
  regex.pattern = "([0-9.]+) us";
  EXPECT_EQ((*parse_benchmark_output("7 us" + std::string(1'000'000, ' '), regex, ""))[0].name, "");
  regex.pattern = R"((a+)=\1([0-9]+))";
  EXPECT_NE(parse_benchmark_output("a=a1", regex, "").status().message().find("back-references"),
            std::string::npos);
  regex.pattern = "([0-9]+)" + std::string(1000, ' ');
  EXPECT_NE(parse_benchmark_output("1", regex, "").status().message().find("at most 1000"),
            std::string::npos);
  regex.pattern = "((((a{1,999}){1,999}){1,999}){1,999})";
  EXPECT_FALSE(parse_benchmark_output("a", regex, "").is_ok());
}

TEST(BenchmarkOutput, WhatHoldsNoTimesSaysWhatWasExpected) {
  for (const OutputFormat format : {OutputFormat::kGoogleBenchmark, OutputFormat::kNvbench,
                                    OutputFormat::kHyperfine, OutputFormat::kCsv}) {
    for (const char* text :
         {"", "Segmentation fault", "{}", "{\"benchmarks\": 3}", "{\"results\": [{}]}", "}{"})
      EXPECT_FALSE(parse_benchmark_output(text, rules(format), "").is_ok()) << text;
    EXPECT_EQ(*parse_output_format(to_text(format)), format);
  }
  // A document that was cut short names where it ends.
  const std::string cut =
      parse_benchmark_output(R"({"results": [)", rules(OutputFormat::kHyperfine), "")
          .status()
          .message();
  EXPECT_EQ(cut.find("column 0"), std::string::npos) << cut;
  EXPECT_NE(cut.find("malformed JSON"), std::string::npos) << cut;
}

TEST(BenchmarkOutput, ABenchmarkWithoutATimeFailsAlone) {
  const auto parsed = parse_benchmark_output(
      R"({"results": [{"command": "./a", "times": [0]}, {"command": "./b", "times": [1]}]})",
      rules(OutputFormat::kHyperfine), "");
  ASSERT_TRUE(parsed.is_ok());
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].failure, "it has a time of 0 ns; times must be positive");
  EXPECT_EQ((*parsed)[1].failure, "");
  const auto huge = parse_benchmark_output(
      R"({"results": [{"command": "./a", "times": [1e300]}, {"command": "./b", "times": [1]}]})",
      rules(OutputFormat::kHyperfine), "");
  ASSERT_TRUE(huge.is_ok());
  EXPECT_NE((*huge)[0].failure.find("of a real clock"), std::string::npos) << (*huge)[0].failure;
}

}  // namespace
}  // namespace purlin::measure
